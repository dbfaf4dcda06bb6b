"""`pysmpi extrapolate`: predict a larger run from recordings of smaller ones."""

from __future__ import annotations

import json

import click

from pysmpi import text
from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import RANKS


@click.command("extrapolate")
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...")
@click.option(
    "--ranks", "-n", type=RANKS, required=True, metavar="N", help="The number of ranks to predict."
)
@click.option("--json", "as_json", is_flag=True, help="Print the prediction as JSON.")
def command(traces: tuple[str, ...], ranks: int, as_json: bool) -> int:
    """Predict the time of N ranks from recordings of runs with at least three smaller numbers.

    Each TRACE is a recording (pysmpi run --trace FILE.jsonl), of one machine. Runs whose structure
    changes with the number of ranks are refused.
    """  # fmt: skip
    from pysmpi.analysis.extrapolation import extrapolate
    from pysmpi.analysis.graph import read

    found = extrapolate([read(trace) for trace in traces], ranks)
    if as_json:
        echo(json.dumps(found.report(), indent=1))
        return 0
    echo(
        f"predicted time {text.seconds(found.seconds)} of {text.count(ranks, 'rank')} "
        f"(runs predicted from the others: up to {found.error:.1%} off)"
    )
    for cause in found.laws:
        seconds = text.seconds(found.seconds_of(cause))
        echo(f"  {cause:10}  {seconds:>9}  {found.law_of(cause)}")
    return 0
