"""`pysmpi analyse`: the limits of a recorded run, and the effects of changes."""

from __future__ import annotations

import json
import os
import sys

import click

from pysmpi import text
from pysmpi.cli.echo import echo
from pysmpi.errors import UsageError


@click.command("analyse")
@click.argument("trace", metavar="TRACE")
@click.option("--compute", metavar="FACTOR", help="Predict with compute this much longer.")
@click.option("--latency", metavar="FACTOR", help="Predict with latencies this much longer.")
@click.option(
    "--transfer",
    metavar="FACTOR",
    help="Predict with transfers of bytes this much longer (2: half the bandwidth).",
)
@click.option(
    "--overhead", metavar="FACTOR", help="Predict with overheads of messages this much longer."
)
@click.option(
    "--rank",
    "ranks",
    multiple=True,
    metavar="RANK=FACTOR",
    help="Predict with the compute of a rank this much longer; repeatable.",
)
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="NAME=FACTOR",
    help="Predict with transfers over a link this much longer; repeatable.",
)
@click.option(
    "--json", "target", metavar="FILE", help="Write the analysis as JSON; - is the standard output."
)
@click.option(
    "--usage",
    metavar="FILE",
    help="Write the use of links and hosts over time: .csv, .json, .parquet, or .paje for Paje.",
)
def command(
    trace: str,
    compute: str | None,
    latency: str | None,
    transfer: str | None,
    overhead: str | None,
    ranks: tuple[str, ...],
    links: tuple[str, ...],
    target: str | None,
    usage: str | None,
) -> int:
    """Explain the time of a recorded run: its critical path and efficiencies.

    TRACE is a recording (pysmpi run --trace FILE.jsonl, pysmpi replay --trace, pysmpi.record). A
    factor predicts the run with other costs: 0.9 is 10 % less, 0 is nothing.
    """  # fmt: skip
    from pysmpi.analysis.graph import Scales
    from pysmpi.analysis.usage import suffix_of, write_usage
    from pysmpi.analysis.why import read_analysis
    from pysmpi.io.output import OutputFile

    suffix = "" if usage is None else suffix_of("--usage", usage)
    found = read_analysis(trace)
    graph = found.graph
    record = graph.record
    names = [name for name, _ in record.links]
    scales = Scales(
        compute=_factor("--compute", compute),
        latency=_factor("--latency", latency),
        transfer=_factor("--transfer", transfer),
        overhead=_factor("--overhead", overhead),
    )
    for given in ranks:
        key, factor = _pair("--rank", given, "3=2.0")
        rank = text.whole(key)
        if rank is None or rank >= record.ranks:
            raise UsageError(f"--rank {given}: expected a rank from 0 to {record.ranks - 1}")
        scales.ranks[rank] = factor
    for given in links:
        key, factor = _pair("--link", given, "NAME=2.0")
        if key not in names:
            known = ", ".join(sorted(names)[:10]) or "none that a message crossed"
            raise UsageError(f"--link {given}: no such link {key}, expected one of: {known}")
        scales.links[names.index(key)] = factor
    if usage is not None:
        with OutputFile("--usage", usage) as file:
            with file.writing():
                write_usage(file.path, suffix, graph)
            file.keep()
    changed = scales != Scales()
    if changed and target is None:
        seconds = graph.makespan(scales)
        change = f" ({seconds / graph.seconds - 1.0:+.2%})" if graph.seconds else ""
        echo(f"recorded {text.seconds(graph.seconds)}, predicted {text.seconds(seconds)}{change}")
        return 0
    if target is None:
        echo("\n".join(found.lines()))
        return 0
    data = found.report()
    if changed:
        data["predicted_seconds"] = graph.makespan(scales)
    written = json.dumps(data, indent=1) + "\n"
    if target == "-":
        sys.stdout.write(written)
        return 0
    with OutputFile("--json", os.fspath(target)) as file:
        with file.writing(), open(file.path, "w", encoding="utf-8") as stream:
            stream.write(written)
        file.keep()
    return 0


def _factor(option: str, value: str | None) -> float:
    if value is None:
        return 1.0
    factor = text.real(value)
    if factor is None or factor < 0.0 or factor > 1e100:
        raise UsageError(f"{option}: expected a factor such as 0.9, got {value!r}")
    return factor


def _pair(option: str, given: str, example: str) -> tuple[str, float]:
    key, equals, value = given.rpartition("=")
    if not equals:
        raise UsageError(f"{option}: expected {example}, got {given!r}")
    return key, _factor(f"{option} {key}", value)
