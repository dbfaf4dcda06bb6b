"""`pysmpi animate`: a page on which the messages of recorded runs move over their machines."""

from __future__ import annotations

import os

import click

from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import Seconds, WholeNumber
from pysmpi.errors import UsageError


@click.command("animate")
@click.argument("traces", nargs=-1, metavar="TRACE...")
@click.option(
    "-o",
    "--output",
    metavar="FILE.html",
    help="The page to write (default: the name of the first trace, with -animation.html).",
)
@click.option(
    "--call",
    metavar="N",
    type=WholeNumber(1),
    help="Show the Nth collective call that takes time; the page can show others.",
)
@click.option("--begin", metavar="SECONDS", type=Seconds(), help="Show the run from this time on.")
@click.option("--end", metavar="SECONDS", type=Seconds(), help="Show the run up to this time.")
def command(
    traces: tuple[str, ...],
    output: str | None,
    call: int | None,
    begin: float | None,
    end: float | None,
) -> int:
    """Write a page (HTML) on which the messages of a run move over its machine.

    TRACE is a recording (pysmpi run --trace FILE.jsonl, pysmpi replay --trace). Two recordings are
    shown side by side, with one clock. Times are simulated seconds. The page of pysmpi view has the
    animation too, below its timeline.
    """
    from pysmpi.analysis.animation import animate

    if len(traces) not in (1, 2):
        raise UsageError(f"animate: expected one, or two to compare, got {len(traces)} traces")
    name = output or os.path.splitext(traces[0])[0] + "-animation.html"
    try:
        shown = animate(*traces, call=call, begin=begin, end=end)
    except UsageError as error:
        raise UsageError(str(error).removeprefix("pysmpi.animate: ")) from None
    shown.save(name)
    echo(f"pysmpi: wrote {name}", err=True)
    return 0
