"""`pysmpi coherence pingpong`: the time to pass lines from one core to another."""

from __future__ import annotations

import json

import click

from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import WholeNumber
from pysmpi.errors import UsageError
from pysmpi.text import whole

NS = 1e-9
STATES = ("modified", "exclusive", "shared", "invalid")


@click.command("pingpong")
@click.option(
    "--machine",
    metavar="FILE|NAME",
    default="xeon-phi-5110p",
    show_default=True,
    help="A platform; its first described computer is used.",
)
@click.option(
    "--cores",
    type=WholeNumber(0, 1_000_000),
    metavar="N",
    default=0,
    help="The farthest two of the first N cores (default: of all).",
)
@click.option(
    "--lines",
    metavar="N,N...",
    default="2,8,32,128",
    show_default=True,
    help="Lengths of longer messages.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def command(machine: str, cores: int, lines: str, as_json: bool) -> None:
    """Show the time to pass one or several lines, by the states of the buffers."""
    from pysmpi.memory.lines.machine import costs_of
    from pysmpi.memory.lines.pingpong import multi_line, single_line

    counts = [whole(text, 6) or 0 for text in lines.split(",")]
    if min(counts) < 1:
        raise UsageError(f"--lines: expected whole numbers above 0, got {lines!r}")
    if cores and cores < 2:
        raise UsageError(f"--cores: expected at least 2, got {cores}")
    costs = costs_of(machine, cores)
    one = {
        send: {
            receive: single_line(costs, send, receive, simplified=False) / NS
            for receive in STATES[:-1]
        }
        for send in STATES
    }
    many = {
        n: {state: multi_line(costs, n, state) / NS for state in ("exclusive", "invalid")}
        for n in counts
    }
    if as_json:
        found = {"machine": machine, "one_line_ns": one, "lines_ns": many}
        echo(json.dumps(found, indent=1))
        return
    echo(f"{machine}: nanoseconds from one core to another")
    echo("one line, send buffer  " + "".join(f"receive {s}".rjust(19) for s in STATES[:-1]))
    for send, row in one.items():
        echo(send.rjust(21) + "  " + "".join(f"{ns:19.1f}" for ns in row.values()))
    echo("lines, both buffers    " + "exclusive".rjust(19) + "invalid".rjust(19))
    for n, pair in many.items():
        echo(str(n).rjust(21) + "  " + "".join(f"{ns:19.1f}" for ns in pair.values()))
