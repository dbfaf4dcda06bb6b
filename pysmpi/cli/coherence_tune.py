"""`pysmpi coherence tune`: the collectives that are tuned to a node's cache lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import RANKS
from pysmpi.errors import UsageError

if TYPE_CHECKING:
    from pysmpi.memory.lines.costs import LineCosts

NS = 1e-9


@click.command("tune")
@click.option(
    "--machine",
    metavar="FILE|NAME",
    default="xeon-phi-5110p",
    show_default=True,
    help="A platform; its first described computer is used.",
)
@click.option("--threads", type=RANKS, metavar="N", help="Ranks of the node (default: its cores).")
@click.option(
    "--bytes",
    "nbytes",
    metavar="SIZE",
    default="8KiB",
    show_default=True,
    help="Size of the large broadcast.",
)
@click.option(
    "--contention", metavar="TIME", help="Slope of contention, e.g. 54ns, instead of the machine's."
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def command(
    machine: str, threads: int | None, nbytes: str, contention: str | None, as_json: bool
) -> None:  # fmt: skip
    """Show the tuned collectives of a node: parameters, best and worst case.

    The slopes are the range of the slope of contention (ns) in which the parameters are the best.
    """
    from dataclasses import replace

    from pysmpi.memory.lines.machine import costs_of, described
    from pysmpi.platform.units import parse_size, parse_time

    cores = described(machine).cores
    count = cores if threads is None else threads
    if count < 2:
        raise UsageError(f"--threads: expected at least 2, got {count}")
    costs = costs_of(machine, min(count, cores))
    if contention is not None:
        costs = replace(costs, contention=parse_time(contention))
    size = int(parse_size(nbytes))
    rows = table(costs, count, size)
    if as_json:
        echo(json.dumps({"machine": machine, "threads": count, "costs_ns": known(costs),
                               "collectives": rows}, indent=1))  # fmt: skip
        return
    shown = "  ".join(f"{name} {value:.1f}" for name, value in known(costs).items())
    echo(f"{machine}, {count} threads; nanoseconds: {shown}")
    show(rows)


def known(costs: LineCosts) -> dict[str, float]:
    """The costs in nanoseconds that tuning uses."""
    return {
        "R_L": costs.R_L / NS, "R_R": costs.R_R / NS, "R_I": costs.R_I / NS,
        "c": costs.contention / NS, "o": costs.per_line() / NS,
    }  # fmt: skip


def table(costs: LineCosts, threads: int, nbytes: int) -> list[dict[str, Any]]:
    """The tuned collectives, one row each; times in nanoseconds."""
    from pysmpi.memory.lines import barrier, broadcast, ranges, reduction

    lines = costs.lines(nbytes)

    def row(
        name: str, parameters: str, best: float, worst: float, **more: object
    ) -> dict[str, Any]:
        return {"collective": name, "parameters": parameters, "best_ns": best / NS,
                "worst_ns": worst / NS, **more}  # fmt: skip

    rows = []
    trees: tuple[tuple[str, Any], ...] = (
        ("small broadcast", broadcast.small),
        ("small reduction", reduction.reduction),
    )
    for name, seconds in trees:
        tree, low, high = ranges.best_slopes(costs, threads, seconds)
        shape = f"d={len(tree)}, k={','.join(map(str, tree))}"
        slopes = [low / NS, None if high == ranges.INFINITY else high / NS]
        rows.append(
            row(name, shape, seconds(costs, tree), seconds(costs, tree, True), slopes_ns=slopes)
        )
    for name, shape_seconds in (("flat", broadcast.flat), ("pipelined", broadcast.pipelined)):
        rows.append(
            row(f"broadcast of {nbytes} B", name, shape_seconds(costs, threads, lines),
                shape_seconds(costs, threads, lines, True))
        )  # fmt: skip
    for name, printed in (("barrier", False), ("barrier, r=ceil(log_m n)", True)):
        m, r = barrier.best_partners(costs, threads, printed=printed)
        rows.append(
            row(name, f"m={m}, r={r}", barrier.barrier(costs, threads, m, printed=printed),
                barrier.barrier(costs, threads, m, True, printed=printed))
        )  # fmt: skip
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    head = ("collective", "parameters", "best ns", "worst ns", "slopes")
    cells = [head]
    for row in rows:
        slopes = row.get("slopes_ns")
        span = ""
        if slopes is not None:
            span = f"{slopes[0]:.1f}.." + ("" if slopes[1] is None else f"{slopes[1]:.1f}")
        cells.append((row["collective"], row["parameters"], f"{row['best_ns']:.1f}",
                      f"{row['worst_ns']:.1f}", span))  # fmt: skip
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    for line in cells:
        texts = [
            text.rjust(width) if i in (2, 3) else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        echo("  ".join(texts).rstrip())
