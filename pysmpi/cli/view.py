"""`pysmpi view`: a page that shows a recorded run, or compares several."""

from __future__ import annotations

import os

import click

from pysmpi.errors import UsageError


@click.command("view")
@click.argument("traces", nargs=-1, metavar="TRACE...")
@click.option("-o", "--output", metavar="FILE.html",
              help="The page to write (default: the name of the first trace, with .html).")
@click.option("--text", "as_text", is_flag=True, help="Print the analysis instead of a page.")
def command(traces: tuple[str, ...], output: str | None, as_text: bool) -> int:
    """Write a page (HTML) that shows a recorded run; with two records, it compares them.

    TRACE is a record that pysmpi run --trace FILE.npz wrote. The page needs no network.
    """  # fmt: skip
    from pysmpi.analysis.graph import read
    from pysmpi.analysis.page import write_page
    from pysmpi.analysis.why import analyse
    from pysmpi.output import OutputFile

    if len(traces) not in (1, 2):
        raise UsageError(f"view: found {len(traces)} traces, expected one, or two to compare")
    runs = []
    for trace in traces:
        graph = read(trace)
        runs.append((os.path.basename(trace), graph.record, analyse(graph)))
    if as_text:
        for name, _, analysis in runs:
            click.echo("\n".join([f"{name}:"] * (len(runs) > 1) + analysis.lines()))
        return 0
    name = output or os.path.splitext(traces[0])[0] + ".html"
    with OutputFile("--output", name) as file:
        write_page(file.path, runs)
        file.keep()
    click.echo(f"pysmpi: wrote {name}", err=True)
    return 0
