"""`pysmpi view`: a page that shows a recorded run, or compares several."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from pysmpi.cli.echo import echo
from pysmpi.errors import UsageError

if TYPE_CHECKING:
    from pysmpi.analysis.page import Run


@click.command("view")
@click.argument("traces", nargs=-1, metavar="TRACE...")
@click.option(
    "-o",
    "--output",
    metavar="FILE.html",
    help="The page to write (default: the name of the first trace, with .html), or a "
    "picture of the timeline (.png, .svg, .pdf; needs matplotlib).",
)
@click.option("--text", "as_text", is_flag=True, help="Print the analysis instead of a page.")
def command(traces: tuple[str, ...], output: str | None, as_text: bool) -> int:
    """Write a page (HTML) that shows a recorded run; with two recordings, it compares them.

    TRACE is a recording (pysmpi run --trace FILE.jsonl, pysmpi replay --trace, pysmpi.record).
    The page needs no network.
    """  # fmt: skip
    from pysmpi.analysis.graph import READING
    from pysmpi.analysis.steps import steps
    from pysmpi.analysis.why import read_analysis

    if len(traces) not in (1, 2):
        raise UsageError(f"view: expected one, or two to compare, got {len(traces)} traces")
    with steps(len(traces) * len(READING) + (not as_text)) as step:
        runs = [(os.path.basename(trace), read_analysis(trace, step)) for trace in traces]
        name = "" if as_text else _write(traces, runs, output, step)
    if as_text:
        for name, analysis in runs:
            echo("\n".join([f"{name}:"] * (len(runs) > 1) + analysis.lines()))
    else:
        echo(f"pysmpi: wrote {name}", err=True)
    return 0


def _write(
    traces: tuple[str, ...],
    runs: Sequence[Run],
    output: str | None,
    step: Callable[[str], object],
) -> str:
    """Write the page or the picture, and return its name."""
    from pysmpi.analysis.figure import SUFFIXES, write_figure
    from pysmpi.analysis.page import write_page
    from pysmpi.io.output import OutputFile

    name = output or os.path.splitext(traces[0])[0] + ".html"
    suffix = os.path.splitext(name)[1].lower().removeprefix(".")
    if suffix in SUFFIXES and len(runs) > 1:
        raise UsageError(f"--output {name}: a picture shows one run, expected a page (.html)")
    step("page")
    with OutputFile("--output", name) as file, file.writing():
        if suffix in SUFFIXES:
            write_figure(file.path, suffix, runs[0][1])
        else:
            write_page(file.path, runs, traces)
        file.keep()
    return name
