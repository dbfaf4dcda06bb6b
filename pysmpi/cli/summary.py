"""The few lines on standard error after a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysmpi import text
from pysmpi.kernel import engine
from pysmpi.python.installed import compiled_elsewhere
from pysmpi.version import HOME

if TYPE_CHECKING:
    from pysmpi.reports.result import Result
    from pysmpi.time.figures import (
        EnergyFigures,
        FoldingFigures,
        IntervalFigures,
        ShadowFigures,
        SteadyFigures,
    )


def interpreted() -> bool:
    """Whether the kernel runs from its sources."""
    return engine.__file__.endswith(".py")


def _interpreted() -> str:
    """The remark that the kernel is slow, and how to get a fast one."""
    if not interpreted():
        return ""
    other = compiled_elsewhere()
    if other is None:
        return "; the kernel is interpreted, not compiled"
    return (
        f"; the kernel of {HOME} is interpreted, that of {other} is compiled: "
        "run it from another directory"
    )


def summary(result: Result) -> str:
    """The lines of the summary: the prediction, the machine, and the cost of the simulation."""
    if result.schedule is not None and not result.schedule.startswith("noise"):
        return _untimed(result)
    rate = result.events / result.wall_seconds if result.wall_seconds > 0.0 else 0.0
    lines = [
        f"{_outcome(result)} {text.seconds(result.seconds)}: {text.count(result.nprocs, 'rank')} "
        f"on {text.count(result.hosts, 'host')} of {result.platform}",
        f"model {result.model}"
        + (f", preset {result.preset}" if result.preset else "")
        + f", selector {result.selector}, compute {_compute(result)}",
        f"simulated in {result.wall_seconds:.3g} s "
        f"({text.count(result.events, 'event')}, {rate:,.0f} a second)" + _interpreted(),
        f"{text.count(result.messages, 'message')}, {text.size(result.bytes)}",
    ]
    ended = result.ranks
    whole = all(rank["state"] == "finished" for rank in ended)
    if whole and result.seconds > 0.0:
        lines.append(_shares(result))
    if whole and len(ended) > 1:
        first = min(ended, key=lambda rank: rank["end_seconds"])
        last = max(ended, key=lambda rank: rank["end_seconds"])
        if last["end_seconds"] > first["end_seconds"]:
            lines.append(
                f"first to end: rank {first['rank']} ({first['host']}) at "
                f"{text.seconds(first['end_seconds'])}; last: rank {last['rank']} "
                f"({last['host']}) at {text.seconds(last['end_seconds'])}"
            )
    if result.analysis is not None:
        lines += result.analysis["text"]
    elif result.limit is not None:
        lines.append(f"limit: {result.limit}")
    lines += [f"failed: {one}" for one in result.lost]
    if result.unreceived is not None:
        lines.append(f"warning: {result.unreceived}")
    lines += [f"warning: {one}" for one in result.remarks]
    if result.energy is not None:
        lines.append(_energy(result.energy))
    if result.twin is not None:
        lines.append(result.twin)
    if result.no_effect:
        lines.append(f"without effect: {', '.join(result.no_effect)} (why: pysmpi run --help-cfg)")
    if result.host_speed is not None:
        from pysmpi.time.host_speed import doubt

        doubts = doubt()
        if doubts is not None:
            lines.append(doubts)
    if result.steady is not None:
        lines.append(_steady(result.steady))
    if result.intervals is not None and result.intervals["sampling"] is not None:
        lines.append(_sampling(result.intervals["sampling"]))
    if result.shadow is not None:
        lines += _shadow(result, result.shadow)
    if result.folding is not None:
        lines += _folding(result.folding)
    if result.data != "all":
        which = "messages" if result.data == "none" else f"messages above {result.data}"
        lines.append(f"{which} carried no data: results that depend on it are wrong")
    return "\n".join(f"pysmpi: {line}" for line in lines)


def _untimed(result: Result) -> str:
    """The lines of a run in which no event takes time."""
    ended = "ended" if result.exit_status == 0 else "failed"
    lines = [
        f"{ended}: {text.count(result.nprocs, 'rank')}, {text.count(result.messages, 'message')}, "
        f"{text.size(result.bytes)}; no time, the schedule decides",
        f"schedule {result.schedule}",
    ]
    if result.schedule_note is not None:
        lines.append(result.schedule_note)
    lines += [f"failed: {one}" for one in result.lost]
    if result.unreceived is not None:
        lines.append(f"warning: {result.unreceived}")
    return "\n".join(f"pysmpi: {line}" for line in lines)


def _outcome(result: Result) -> str:
    """The meaning of the time: a prediction, or the end of a program that failed."""
    return "predicted time" if result.exit_status == 0 else "ended at"


def _compute(result: Result) -> str:
    """The mode of compute, and the factor by which it was scaled."""
    speed, factor = result.host_speed, result.compute_factor
    blocks = result.blocks
    if blocks is not None:
        fewest, most = blocks["fewest"], blocks["most"]
        many = text.count(most, "block") if fewest == most else f"{fewest:,} to {most:,} blocks"
        return f"{result.compute} for each block between two calls, {many} a rank"
    if speed is None:
        own = " x 1 (cores as fast as this computer's)"
        return result.compute + (own if factor == 1.0 else "")
    recorded = result.compute not in ("native", "steady")
    computer = "recorded on a computer of" if recorded else "this computer:"
    here = f"{computer} {speed / 1e9:.3g} Gflop/s a core"
    if factor is None:
        return f"{result.compute} scaled to cores of several speeds ({here})"
    return f"{result.compute} x {factor:.3g} ({here}, simulated: {speed / factor / 1e9:.3g})"


def _energy(energy: EnergyFigures) -> str:
    """The joules of hosts and links, and the part that they take without work."""
    parts = [*energy["hosts"], *energy["links"]]
    idle = sum(one["idle_joules"] for one in parts)
    hosts = sum(one["joules"] for one in energy["hosts"])
    links = sum(one["joules"] for one in energy["links"])
    said = [f"energy {energy['joules']:.4g} J"]
    if energy["hosts"] and energy["links"]:
        said.append(f"hosts {hosts:.4g} J, links {links:.4g} J")
    said.append(f"{idle / energy['joules'] if energy['joules'] else 0.0:.1%} without any work")
    return ", ".join(said)


def _steady(steady: SteadyFigures) -> str:
    """The charged and the measured seconds of compute."""
    measured, rare = steady["measured_seconds"], steady["rare_seconds"]
    return (
        f"steady: of {measured:.3g} s of compute {steady['charged_seconds']:.3g} s were charged; "
        f"{rare:.3g} s were in blocks that took far longer than usual"
    )


def _sampling(interval: IntervalFigures) -> str:
    """The interval of the time of the same run in full."""
    low, high = interval["low_seconds"], interval["high_seconds"]
    assert low is not None and high is not None
    return (
        f"90 % interval of the time in full, if the calls are the same: "
        f"{text.range_of_seconds(low, high)}"
    )


def _folding(folding: FoldingFigures) -> list[str]:
    """The memory that folding saved, and its effect on the program's results."""
    resident, job = folding["resident_bytes"], folding["job_bytes"]
    whole = (
        ""
        if resident is None or job is None
        else (f"; {text.size(resident)} resident, where the job needs {text.size(job)}")
    )
    return [
        f"folded {text.size(folding['needed_bytes'])} of arrays into "
        f"{text.size(folding['taken_bytes'])}{whole}",
        "folded arrays hold the last values of any rank: the program's results are wrong unless "
        "they are the same on every rank",
    ]


def _shadow(result: Result, shadow: ShadowFigures) -> list[str]:
    """The sampled functions, those that ran once, and the effect on the program's results."""
    lines = []
    sampled = shadow["sampled"]
    for point in sampled:
        error = point["largest_relative_error"]
        lines.append(
            f"sampled {point['place']} ({point['scope']}): {point['ran']:,} passes ran, "
            f"{point['skipped']:,} were skipped, which saved {point['saved_seconds']:.3g} s"
            + ("" if not error else f"; standard error up to {error:.1%}")
        )
        if point["trend"] is not None:
            longer = "longer" if point["trend"] > 0.0 else "shorter"
            lines.append(
                f"warning: passes of {point['place']} take {longer} and {longer}, up to "
                f"{point['trend']:+.0%} while they were measured: such passes ran in full"
            )
    if any(point["skipped"] for point in sampled):
        lines.append(
            "skipped passes left the values of earlier passes: "
            "the program's results are wrong, and its time is an estimate"
            + ("; it may have failed because of that" if result.exit_status else "")
        )
    for one in shadow["once"]:
        lines.append(
            f"once {one['place']}: ran {text.count(one['ran'], 'time')}, shared "
            f"{text.count(one['shared'], 'time')}, which saved {one['saved_seconds']:.3g} s"
            + ("; all ranks hold the same object" if one["one_object_for_all"] else "")
        )
    for name in shadow["not_loaded"]:
        lines.append(f"{name} was never loaded, so its functions were not replaced")
    for left in shadow.get("not_sampled", [])[:5]:
        lines.append(
            f"not sampled: {left['place']}, which {left['reason']} ({left['host_seconds']:.3g} s)"
        )
    return lines


def _shares(result: Result) -> str:
    """The shares of compute, communication and waiting in the time of all ranks."""
    compute = sum(rank["compute_seconds"] for rank in result.ranks)
    wait = sum(rank["wait_seconds"] for rank in result.ranks)
    communication = sum(rank["communication_seconds"] for rank in result.ranks)
    total = sum(rank["end_seconds"] - rank["begin_seconds"] for rank in result.ranks)
    core = sum(rank["core_wait_seconds"] for rank in result.ranks)
    other = max(0.0, total - compute - communication - core)
    timed = "" if result.compute == "none" else f"compute {compute / total:.1%}, "
    parts = [f"{timed}communication {communication / total:.1%} ({wait / total:.1%} waiting)"]
    if core > 0.0005 * total:
        parts.append(f"wait for a core {core / total:.1%}")
    if other > 0.0005 * total:
        parts.append(f"sleep and waits outside MPI {other / total:.1%}")
    if not timed:
        parts.append("no compute was timed")
    return ", ".join(parts)
