"""`pysmpi replay`: predict the time of recorded runs on a machine."""

from __future__ import annotations

import json
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import click

from pysmpi import text
from pysmpi.cli.arguments import pairs
from pysmpi.cli.echo import echo
from pysmpi.cli.run_options import machine_options
from pysmpi.errors import UsageError

if TYPE_CHECKING:
    from pysmpi.replay import ReplayResult


@click.command("replay")
@click.argument("traces", nargs=-1, metavar="TRACE...")
@machine_options
@click.option(
    "--begin",
    "begins",
    multiple=True,
    metavar="TIME",
    help="Begin of a trace, such as 2.5s; once for each trace (default: 0s).",
)
@click.option(
    "--core-speed",
    metavar="FLOPS",
    help="Speed of every core, such as 4Gf (default: that of the machine's hosts).",
)
@click.option("--trace", metavar="FILE", help="Record the replay, as pysmpi run --trace.")
@click.option("--view", metavar="FILE.html", help="Write a page that shows the replay.")
@click.option("--explain", is_flag=True, help="Explain the time of the replay.")
@click.option("--report", metavar="FILE.json", help="Write the figures of the replay as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No summary.")
def command(
    traces: tuple[str, ...],
    begins: tuple[str, ...],
    core_speed: str | None,
    trace: str | None,
    view: str | None,
    explain: bool,
    report: str | None,
    quiet: bool,
    coll: tuple[str, ...],
    cfg: tuple[str, ...],
    **rest: object,
) -> int:
    """Replay recorded runs on a simulated machine, without their programs.

    TRACE is a recording of pysmpi (--trace FILE.jsonl), a schedule in GOAL, as LogGOPSim and
    ATLAHS write it, or a time-independent trace of SMPI: an
    index that names a file for each rank, as smpirun -trace-ti writes it, or one
    file in which each line begins with its rank. The ranks of several traces share the machine.
    Without options of a machine, a recording is replayed on the machine that it was made on.
    """  # fmt: skip
    from pysmpi.io.output import OutputFile
    from pysmpi.platform.config import parse
    from pysmpi.platform.units import parse_speed, parse_time
    from pysmpi.replay import Replay
    from pysmpi.trace.formats import find_format, is_packed
    from pysmpi.trace.messages import Both
    from pysmpi.trace.model import Recording

    if not traces:
        raise UsageError("replay: expected a trace")
    if len(begins) not in (0, len(traces)):
        raise UsageError(
            f"--begin: expected one time for each of {text.count(len(traces), 'trace')}, got "
            f"{len(begins)}"
        )
    dates = [_value("--begin", begin, parse_time) for begin in begins] or [0.0] * len(traces)
    speed = None if core_speed is None else _value("--core-speed", core_speed, parse_speed)
    replay = Replay(
        list(zip(traces, dates)), core_speed=speed,
        cfg=parse(cfg), coll=pairs(coll, "--coll", "bcast=binomial_tree"), **rest,
    )  # fmt: skip
    with ExitStack() as stack:
        target = page = file = None
        if report is not None:
            target = stack.enter_context(OutputFile("--report", report))
        if view is not None:
            page = stack.enter_context(OutputFile("--view", view))
        format: Any = None
        kept = None
        if trace is not None:
            chosen = find_format(trace)
            direct = chosen.streams or chosen.several
            file = stack.enter_context(OutputFile("--trace", trace, direct=direct))
            format = chosen.open(file.path, is_packed(trace))
            writer = format
            stack.callback(_close, writer)
        if view is not None or explain:
            kept = Recording(operations=False)
            format = kept if format is None else Both(format, kept)
        if file is None:
            result = replay.run(format)
        else:
            with file.writing():
                result = replay.run(format)
                writer.close()
            file.keep()
        analysis = None
        if kept is not None:
            from pysmpi.analysis.graph import READING, graph_of
            from pysmpi.analysis.page import write_page
            from pysmpi.analysis.steps import steps
            from pysmpi.analysis.why import analyse

            with steps(2 + (page is not None), len(kept.calls)) as step:
                step(READING[1])
                graph = graph_of(kept)
                step(READING[2])
                analysis = analyse(graph)
                if page is not None:
                    step("page")
                    with page.writing():
                        write_page(page.path, [(traces[0], analysis)])
                    page.keep()
        if target is not None:
            with target.writing(), open(target.path, "w", encoding="utf-8") as stream:
                data = result.report()
                if analysis is not None:
                    data["analysis"] = analysis.report()
                json.dump(data, stream, indent=1)
                stream.write("\n")
            target.keep()
    if not quiet:
        echo(summary(result), err=True)
        if explain and analysis is not None:
            echo("\n".join(f"pysmpi: {line}" for line in analysis.lines()), err=True)
    return 0


def _close(writer: Any) -> None:
    """Close a trace whose last part may not be written after an error, which is reported."""
    with suppress(OSError):
        writer.close()


def _value(option: str, word: str, parse: Any) -> float:
    try:
        value: float = parse(word)
    except ValueError as error:
        raise UsageError(f"{option} {word}: {error}") from None
    return value


def summary(result: ReplayResult) -> str:
    """The lines on standard error: the prediction, the machine, the cost of the replay."""
    rate = result.events / result.wall_seconds if result.wall_seconds > 0.0 else 0.0
    lines = [
        f"predicted time {text.seconds(result.seconds)}: {text.count(result.nprocs, 'rank')} "
        f"on {result.platform}",
        f"model {result.model}, selector {result.selector}",
        f"replayed in {result.wall_seconds:.3g} s "
        f"({text.count(result.events, 'event')}, {rate:,.0f} a second)",
        f"{text.count(result.messages, 'message')}, {text.size(result.bytes)}",
    ]
    if len(result.instances) > 1:
        for one in result.instances:
            lines.append(
                f"{one['trace']}: {text.count(one['nprocs'], 'rank')}, from "
                f"{text.seconds(one['begin_seconds'])} to {text.seconds(one['end_seconds'])}"
            )
    for one in result.instances:
        if not one["complete"]:
            lines.append(f"{one['trace']}: has no end, and was replayed as far as it goes")
    return "\n".join(f"pysmpi: {line}" for line in lines)
