"""The result of a job whose ranks have ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from pysmpi import text
from pysmpi.job.options import Options
from pysmpi.kernel.process import Process
from pysmpi.machine import Machine
from pysmpi.mpi.base.exporting import ON_DEVICES
from pysmpi.mpi.base.ranks import Rank, Universe
from pysmpi.platform.placement import Slot
from pysmpi.ranks.outcomes import Outcome, RankState
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.result import Result, plain
from pysmpi.reports.unreceived import unreceived
from pysmpi.shadow import interval
from pysmpi.shadow.passes import Shadow
from pysmpi.time.cpu_time import OTHER_THREADS
from pysmpi.time.figures import RankFigures
from pysmpi.time.host_speed import had_to_wait
from pysmpi.time.timing import (
    MEASURED,
    ComputeTiming,
    ConstantTiming,
    NativeTiming,
    PlaybackTiming,
    SteadyTiming,
)


class EndedJob(Protocol):
    """A job whose ranks have ended."""

    options: Options
    machine: Machine
    simulation: Simulation
    timing: ComputeTiming
    compute: str | float
    remarks: list[str]
    command: str | None


def result_of(job: EndedJob, wall: float, status: int, error: str | None) -> Result:
    """The figures of a run of `wall` seconds; the parts of the run add theirs."""
    simulation, machine = job.simulation, job.machine
    engine, universe, outcomes = simulation.engine, simulation.universe, simulation.outcomes
    ranks = [
        _figures(rank, process, outcome)
        for rank, process, outcome in zip(universe.ranks, universe.processes, outcomes)
    ]
    timing = job.timing
    scaled = timing if isinstance(timing, NativeTiming | PlaybackTiming) else None
    factors = set() if scaled is None else scaled.factors
    if isinstance(timing, PlaybackTiming) and status == 0:
        left = timing.left_over()
        if left is not None:
            job.remarks.append(left)
    return Result(
        nprocs=job.options.nprocs,
        seconds=max((outcome.time for outcome in outcomes), default=engine.now),
        wall_seconds=wall,
        hosts=len({slot.host.name for slot in machine.slots}),
        platform=machine.platform.name,
        model=machine.model.name,
        preset=machine.preset(),
        selector=machine.selection.selector,
        seed=job.options.seed,
        compute=str(job.compute),
        host_speed=scaled.known_speed if scaled is not None else None,
        compute_factor=next(iter(factors)) if len(factors) == 1 else None,
        messages=engine.messages,
        bytes=engine.bytes,
        events=engine.events,
        returns=[outcome.value for outcome in outcomes[: job.options.nprocs]],
        ranks=ranks,
        exit_status=status,
        error=error,
        steady=timing.report() if isinstance(timing, SteadyTiming) else None,
        blocks=timing.report() if isinstance(timing, ConstantTiming) else None,
        remarks=[*job.remarks, *_shared_cores(machine.slots), *_on_devices(universe)],
        data=job.options.data,
        unreceived=unreceived(simulation) if status == 0 else None,
        lost=list(simulation.lost),
        no_effect=machine.settings.foreign,
        options=plain(job.options.given()),
        command=job.command,
    )


def _on_devices(universe: Universe) -> list[str]:
    """A remark if programs have buffers in memory of accelerators."""
    types = sorted(ON_DEVICES.of(universe))
    if not types:
        return []
    return [
        f"buffers on accelerators ({', '.join(types)}) are in the memory of the host here: the "
        "links of accelerators to each other and to network cards are not modelled"
    ]


def add_interval(result: Result, shadow: Shadow, ranks: Sequence[Rank]) -> None:
    """Add the interval of the time of the same run in full, if the run skipped or folded work."""
    sampled = result.shadow is not None and any(
        point["skipped"] for point in result.shadow["sampled"]
    )
    folded = result.folding is not None
    # A program that checks its results ends with a status of its own.
    ended = all(rank["state"] == RankState.FINISHED.value for rank in result.ranks)
    if not ended or not (sampled or folded):
        return
    measured = result.compute in MEASURED
    longest = max((rank["compute_seconds"] for rank in result.ranks), default=0.0)
    steady = result.steady is not None
    busy = 0.0
    if measured and had_to_wait():
        busy = interval.BUSY_STEADY if steady else interval.BUSY
    below, above = interval.around(
        [shadow.skipped_of(rank) for rank in ranks], longest if measured else 0.0, folded, busy
    )
    sources = ["deviations of measured passes", "compute with other memory"] if measured else []
    if busy:
        sources.append("a busy computer")
    result.intervals = {
        "prediction": None,
        "sampling": {
            "level": interval.LEVEL,
            "low_seconds": max(0.0, result.seconds - below),
            "high_seconds": result.seconds + above,
            "errors": {},
            "sources": sources,
            "unknown": [],
        },
    }


def _shared_cores(slots: Sequence[Slot]) -> list[str]:
    """A remark if ranks share cores."""
    cores = Counter((slot.host.name, slot.core) for slot in slots)
    sharing = sum(count for count in cores.values() if count > 1)
    if not sharing:
        return []
    return [
        f"{text.count(len(slots), 'rank')} on {text.count(len(cores), 'core')}: {sharing:,} ranks "
        "share their core with others, and compute in turns"
    ]


def _figures(rank: Rank, process: Process, outcome: Outcome) -> RankFigures:
    """The figures of a rank, whose main thread is `process`; they add up to its time at most.

    Other threads may compute while the main one waits: this time is compute, not waiting.
    """
    # Differences of dates, whose rounding may leave less than nothing.
    compute, communication = process.compute_seconds, max(0.0, process.comm_seconds)
    core_wait = process.core_wait_seconds
    others = OTHER_THREADS.peek(rank)
    if others is not None:
        compute += others.compute_seconds
        left = max(0.0, outcome.time - rank.world.begin - compute)
        communication = min(communication, left)
        core_wait = min(core_wait, left - communication)
    return {
        "rank": rank.pid,
        "host": rank.host.name,
        "begin_seconds": rank.world.begin,
        "end_seconds": outcome.time,
        "compute_seconds": compute,
        "communication_seconds": communication,
        "wait_seconds": max(0.0, communication - process.overhead_seconds),
        "core_wait_seconds": core_wait,
        "state": outcome.state.value,
    }
