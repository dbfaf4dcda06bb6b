"""A job: a program on a simulated machine, from its options to its result.

`pysmpi.run` and the command line use this module.
"""

from __future__ import annotations

import math
import os
import sys
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pysmpi.collectives import cache, order
from pysmpi.errors import UsageError
from pysmpi.folding.setup import Folding
from pysmpi.isolation import collection, unclosed_files
from pysmpi.isolation.kinds.exits import HardExit
from pysmpi.isolation.kinds.rank_environment import Invocation, RankEnvironment
from pysmpi.isolation.loading.loader import RankProgram
from pysmpi.isolation.loading.mpi4py_package import has_options
from pysmpi.job import heap
from pysmpi.job.interpreter import Interpreter
from pysmpi.job.options import Options
from pysmpi.job.spawning import ProgramPart, Segment, Spawner
from pysmpi.kernel.choices import Control
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.plan import Transport
from pysmpi.kernel.process import Process
from pysmpi.machine import Machine
from pysmpi.mpi.base.attributes import LAUNCH, PROGRAM
from pysmpi.mpi.base.options import ENVIRONMENT, RcOptions
from pysmpi.mpi.base.ranks import FreeTransport, Rank, Universe, World, current
from pysmpi.mpi.base.settings import CallSettings
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers import copying
from pysmpi.mpi.buffers import locations as whereabouts
from pysmpi.mpi.buffers.payload import NEVER, PAYLOAD
from pysmpi.mpi.files.disks import DISKS, Disks, disk_options
from pysmpi.mpi.point_to_point import envelopes
from pysmpi.mpi.processes import environment, spawning
from pysmpi.platform.config import Settings
from pysmpi.platform.units import parse_size
from pysmpi.ranks import address_space
from pysmpi.ranks.simulation import Outcome, Simulation
from pysmpi.reports.deadlock import DeadlockReport, find_deadlock
from pysmpi.reports.exit_status import USAGE, exit_status
from pysmpi.reports.glances import Glances, limit
from pysmpi.reports.result import Result, plain
from pysmpi.reports.unreceived import unreceived
from pysmpi.shadow.setup import Shadowing
from pysmpi.time.cpu_time import OTHER_THREADS
from pysmpi.time.figures import RankFigures
from pysmpi.time.host_speed import host_speed
from pysmpi.time.recordings import JobIdentity
from pysmpi.time.timing import (
    ComputeTiming,
    ConstantTiming,
    NativeTiming,
    NoTiming,
    PlaybackTiming,
    SteadyTiming,
    find_timing,
)
from pysmpi.time.touched_memory import followed_by
from pysmpi.waiting.progress.beats import Beats
from pysmpi.waiting.progress.spins import Spins
from pysmpi.waiting.stalls.judging import Signalled, StallWatch

if TYPE_CHECKING:
    from pysmpi.reports.explain_speed import WallMeter

# The options of mpi4py in all ranks that have set none.
_COMMON_OPTIONS: StateSlot[Universe, RcOptions] = StateSlot(Universe)


class Job:
    """One run of a program: `run` returns its `Result`, also if the program fails.

    `segments` are the programs of a job with several programs in one world; the first is `program`.
    """

    def __init__(
        self, program: RankProgram, options: Options, segments: Sequence[Segment] = ()
    ) -> None:
        self.program = program
        self.options = options
        self.segments = list(segments) or [Segment(program, options.nprocs)]
        self.machine = machine = Machine(
            options.nprocs,
            platform=_text(options.platform),
            hostfile=_text(options.hostfile),
            map_by=options.map_by,
            rank_by=options.rank_by,
            model=options.model,
            memory_model=options.memory_model,
            selector=_text(options.selector),
            coll=options.coll,
            cfg=options.cfg,
        )
        self.platform, self.settings = machine.platform, machine.settings
        self.slots, self.selection = machine.slots, machine.selection
        self.compute: str | float = _text(options.compute)
        threshold = self.settings.number("smpi/cpu-threshold")
        if not self.settings.flag("smpi/simulate-computation") or threshold == math.inf:
            self.compute = "none"
        if options.schedule != "time" or options.replay_schedule is not None:
            self.compute = "none"
        speed: str | float = options.host_speed
        if speed == "auto" and self.settings.text("smpi/host-speed"):
            speed = self.settings.text("smpi/host-speed")
        if speed != "auto":
            speed = host_speed(speed)  # checked also if nothing is measured
        self.timing = find_timing(self.compute, speed, _text(options.record_compute), threshold)
        self.remarks: list[str] = []  # on compute
        if isinstance(self.timing, PlaybackTiming):
            self.remarks += self.timing.check(self._identity())
        if isinstance(self.timing, NativeTiming):
            if self.timing.record is not None:
                self.timing.job = self._identity()
            # Here no rank runs, so the clock and the host name are the real ones.
            for known in {slot.host.speed for slot in self.slots}:
                self.timing.factor(known)
        self.shadowing = Shadowing(
            options.sample, options.once, self.timing, options.nprocs, options.seed,
            orders=bool(options.check),
        )  # fmt: skip
        self.folding = Folding(options.fold, self.timing.stopwatch)
        self.most_data = _most_data(options.data)
        self.deadlock: DeadlockReport | None = None
        self.command: str | None = None  # the command that repeats the run
        self.last = False  # whether the process ends after the run
        self.on_start: Callable[[Simulation], object] | None = None
        # How a signal ends the process, and its exit status, if the run cannot end by itself.
        self.signalled: Signalled | None = None
        self.meter: WallMeter | None = None  # of the wall time of the run
        self.on_ready: Callable[[Simulation], object] | None = None  # before the first rank begins
        # After the last rank has ended, before the process is restored.
        self.on_result: Callable[[Result], object] | None = None
        # The choices of the run; with them, no event takes time.
        self._control: Callable[[Engine], Control] | None = None
        self._most_polls = 0
        self._perturb: Callable[[Transport], Transport] | None = None
        self._locals: dict[str, int] = {}

    def untimed(self, control: Callable[[Engine], Control], most_polls: int) -> None:
        """Have a control decide the order of events, and no clock.

        `most_polls` failed tests in a row are a livelock.
        """
        self._control = control
        self._most_polls = most_polls
        self._time_with(NoTiming())

    def perturbed(self, transport: Callable[[Transport], Transport], timing: ComputeTiming) -> None:
        """Change the times of messages and of compute."""
        self._perturb = transport
        self._time_with(timing)

    def _time_with(self, timing: ComputeTiming) -> None:
        self.compute = "none"
        self.timing = timing
        options = self.options
        self.shadowing = Shadowing(
            options.sample, options.once, timing, options.nprocs, options.seed,
            orders=bool(options.check) or self._control is not None,
        )  # fmt: skip
        self.folding = Folding(options.fold, timing.stopwatch)

    def run(self) -> Result:
        """Simulate the program to its end."""
        measured = isinstance(self.timing, NativeTiming)
        if self.last and not measured:
            heap.extend_by_little()
        # What a copy leaves in the cache makes the compute after it shorter.
        copying.LIMITS.suit(0 if measured else self.options.nprocs)
        try:
            with (
                collection.rarely(self.options.nprocs, self.last),
                unclosed_files.written_out(self.last),
            ):
                return self._run()
        except address_space.OutOfMemory:
            raise
        except MemoryError:
            raise address_space.OutOfMemory(address_space.UNKNOWN) from None
        finally:
            copying.LIMITS.suit(0)
            cache.forget()
            order.forget()

    def _run(self) -> Result:
        begun = time.perf_counter()
        self.hosts = [slot.host for slot in self.slots]
        self.places = list(self.slots)
        transport = self._transport()
        simulation = Simulation(transport, self.slots, self._deadlock)
        self.simulation = simulation
        if self.meter is not None:
            self.meter.attach(simulation)
        universe = simulation.universe
        universe.selection = self.selection
        universe.tolerant = self.options.on_failure == "continue"
        universe.settings = _call_settings(self.settings, self.options.reduction_order)
        DISKS.put(universe, Disks(disk_options(self.settings)))
        simulation.watch.most = self.settings.value("smpi/most-polls")
        Beats(simulation)
        simulation.limit_memory(address_space.limited())
        spawner = Spawner(simulation, self.platform, self.options, self.start_world)
        spawning.SPAWN.put(universe, spawner)
        envelopes.install(simulation.engine)
        simulation.engine.by_arrival = self.settings.value("smpi/matching") == "arrival"
        if self._control is not None:
            simulation.engine.decide_by(self._control(simulation.engine))
            simulation.watch.most = min(simulation.watch.most, self._most_polls)
        self.glances = Glances(simulation)
        self.glances.begin()
        mpi = import_module("pysmpi.mpi.MPI")
        if self.on_start is not None:
            self.on_start(simulation)
        with (
            simulation.silence,
            self.timing,
            followed_by(transport),
            Interpreter(
                self.program,
                mpi=mpi,
                arrive=_arrive,
                private=self.options.private,
                shared=self.options.shared,
                poll_cost=self.settings.number("smpi/wtime"),
                stopwatch=self.timing.stopwatch,
                start_fiber=self._start_thread,
                shadowing=self.shadowing,
            ) as self.interpreter,
            self.folding,
            PAYLOAD.skipping(self.most_data),
            Spins(simulation),
            StallWatch(
                simulation,
                self.signalled if self.last else None,
                lambda: self.interpreter.children.end(well=False),
            ),
        ):
            simulation.door.exchange = self.interpreter.exchange
            simulation.shared_state = self.interpreter.shared_state
            simulation.on_end = self.interpreter.forget
            self.universe_size = spawner.universe_size()
            parts = self._parts()
            slots = range(len(self.slots))
            world = simulation.add_world(slots, ProgramLifecycle(self, parts))
            LAUNCH.of(world).universe_size = self.universe_size
            if self.on_ready is not None:
                self.on_ready(simulation)
            simulation.run()
            ending = exit_status(simulation, simulation.outcomes, self.deadlock)
            self.interpreter.children.end(well=ending[0] == 0)
            simulation.let_go()
            if self.on_result is not None:
                self.on_result(self._result(time.perf_counter() - begun, *ending))
        return self._result(time.perf_counter() - begun, *ending)

    def _identity(self) -> JobIdentity:
        """The identity of the job, for recordings of its compute."""
        programs = [
            {**segment.program.identity(), "ranks": segment.ranks} for segment in self.segments
        ]
        threads = os.environ.get("OMP_NUM_THREADS")
        return {"ranks": self.options.nprocs, "programs": programs, "threads": threads}

    def _transport(self) -> Transport:
        if self._control is not None:
            return FreeTransport()
        transport = self.machine.transport(self.hosts, self.places, whereabouts.locate)
        return transport if self._perturb is None else self._perturb(transport)

    def _parts(self) -> list[ProgramPart]:
        """The parts of the first world, one for each program."""
        parts: list[ProgramPart] = []
        begin = 0
        for number, segment in enumerate(self.segments):
            if segment.program is not self.program:
                segment.program.prepare()
                self.interpreter.admit(segment.program)
            end = begin + segment.ranks
            slots = self.slots[begin:end]
            directory = None if segment.directory is None else os.path.abspath(segment.directory)
            parts.append(ProgramPart(segment.program, slots, number, directory, segment.variables))
            begin = end
        return parts

    def start_world(self, parts: Sequence[ProgramPart]) -> World:
        """Start ranks in the places of some parts; they first wait for their command."""
        simulation = self.simulation
        slots = [slot for part in parts for slot in part.slots]
        known = set(simulation.slots)
        new = [slot for slot in dict.fromkeys(slots) if slot not in known]
        self.places += new
        self.hosts += [slot.host for slot in new]
        numbers = simulation.slots_for(slots)
        for part in parts:
            self.interpreter.admit(part.program)
        world = simulation.add_world(numbers, ProgramLifecycle(self, parts, spawning.arrive))
        LAUNCH.of(world).universe_size = self.universe_size
        return world

    def _start_thread(
        self, rank: Rank, body: Callable[[], object], ended: Callable[[], object]
    ) -> object:
        def folded() -> object:
            self.folding.enter(rank)
            return body()

        return self.simulation.start_thread(rank, folded if self.folding.rules else body, ended)

    def _deadlock(self, simulation: Simulation) -> bool:
        if self._control is not None or self._perturb is not None:
            simulation.command = ""  # the schedule is part of it
        found = find_deadlock(simulation)
        if self.options.on_deadlock == "raise":
            return simulation.break_deadlock(found)
        self.deadlock = found
        return False

    def _result(self, wall: float, status: int, error: str | None) -> Result:
        simulation = self.simulation
        engine = simulation.engine
        outcomes = simulation.outcomes
        ranks: list[RankFigures] = []
        universe = simulation.universe
        for rank, process, outcome in zip(universe.ranks, universe.processes, outcomes):
            ranks.append(_figures(rank, process, outcome))
        timing = self.timing
        scaled = timing if isinstance(timing, NativeTiming | PlaybackTiming) else None
        factors = set() if scaled is None else scaled.factors
        if isinstance(timing, PlaybackTiming) and status == 0:
            left = timing.left_over()
            if left is not None:
                self.remarks.append(left)
        if self.shadowing.failure is not None:
            status, error = USAGE, f"pysmpi: error: {self.shadowing.failure}"
        return Result(
            nprocs=self.options.nprocs,
            seconds=max((outcome.date for outcome in outcomes), default=engine.now),
            wall_seconds=wall,
            hosts=len({slot.host.name for slot in self.slots}),
            platform=self.platform.name,
            model=self.machine.model.name,
            preset=self.machine.preset(),
            selector=self.selection.selector,
            seed=self.options.seed,
            compute=str(self.compute),
            host_speed=scaled.known_speed if scaled is not None else None,
            compute_factor=next(iter(factors)) if len(factors) == 1 else None,
            messages=engine.messages,
            bytes=engine.bytes,
            events=engine.events,
            returns=[outcome.value for outcome in outcomes[: self.options.nprocs]],
            ranks=ranks,
            exit_status=status,
            error=error,
            deadlock=self.deadlock,
            shadow=self.shadowing.report(),
            folding=self.folding.report(),
            steady=timing.report() if isinstance(timing, SteadyTiming) else None,
            blocks=timing.report() if isinstance(timing, ConstantTiming) else None,
            remarks=list(self.remarks),
            data=self.options.data,
            limit=limit(ranks, self.glances) if status == 0 else None,
            unreceived=unreceived(simulation) if status == 0 else None,
            lost=list(simulation.lost),
            no_effect=self.settings.foreign,
            options=plain(self.options.given()),
            command=self.command,
        )


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
        left = max(0.0, outcome.date - compute)
        communication = min(communication, left)
        core_wait = min(core_wait, left - communication)
    return {
        "rank": rank.pid,
        "host": rank.host.name,
        "end_seconds": outcome.date,
        "compute_seconds": compute,
        "communication_seconds": communication,
        "wait_seconds": max(0.0, communication - process.overhead_seconds),
        "core_wait_seconds": core_wait,
        "state": outcome.state.value,
    }


class ProgramLifecycle:
    """Ranks that run the programs of a job, a part for each program.

    Each rank first calls `arrive`, which may wait.
    """

    def __init__(
        self,
        job: Job,
        parts: Sequence[ProgramPart],
        arrive: Callable[[Rank], object] | None = None,
    ) -> None:
        self.job = job
        self.parts = parts
        self.arrive = arrive
        self.ends = list(accumulate(len(part.slots) for part in parts))
        self.totals: dict[str, int] = {}  # ranks of each host
        self.local = array("l")  # of each rank, its number among the ranks of its host
        for part in parts:
            for slot in part.slots:
                number = self.totals.get(slot.host.name, 0)
                self.totals[slot.host.name] = number + 1
                self.local.append(number)
        size, seed = len(self.local), job.options.seed
        self.invocations = [
            Invocation(size, seed, part.program.arguments, part.program.path_entry,
                   part.variables or None)
            for part in parts
        ]  # fmt: skip

    def _part(self, rank: Rank) -> int:
        """The number of the part of a rank."""
        return bisect_right(self.ends, rank.index)

    def equip(self, rank: Rank) -> None:
        """Give a rank its environment and its timer."""
        index = rank.index
        number = self._part(rank)
        host = rank.host
        rank.program = RankEnvironment(
            index,
            self.invocations[number],
            number=rank.pid,
            local_rank=self.local[index],
            local_size=self.totals[host.name],
            host=host.name,
        )
        appnum = self.parts[number].appnum
        if appnum:
            PROGRAM.of(rank).appnum = appnum
        rank.timer = self.job.timing.timer(rank.pid, host.speed)
        if self.job.meter is not None:
            rank.timer = self.job.meter.timer(rank.timer)

    def begin(self, rank: Rank) -> Callable[[], object]:
        """The program of a rank."""
        part = self.parts[self._part(rank)]
        if self.arrive is not None:
            self.arrive(rank)
        if part.directory is not None:
            os.chdir(part.directory)
        self.job.folding.enter(rank)
        return self.job.interpreter.begin(part.program)

    def end(self, rank: Rank, error: BaseException | None) -> None:
        """End the simulated process, finalize MPI, and end the threads that are left."""
        try:
            try:
                self.job.interpreter.end(rank.program, error, self.parts[self._part(rank)].program)
            except HardExit:
                raise
            except SystemExit as leave:
                _finalize(rank, leave)
                raise
            if error is None:
                _finalize(rank)
            elif isinstance(error, SystemExit) and not isinstance(error, HardExit):
                _finalize(rank, error)
        finally:
            self.job.simulation.end_threads(rank)


def _arrive() -> None:
    """A rank imports `mpi4py.MPI`."""
    import mpi4py

    rank = current()
    rc = getattr(mpi4py, "rc", None)
    known = _COMMON_OPTIONS.peek(rank.universe) if _has_common_options(rank, rc) else None
    started = environment.start(rc, os.environ, known)
    # Options from environment variables become the rank's own.
    if known is None and _has_common_options(rank, rc):
        _COMMON_OPTIONS.put(rank.universe, started.options)


def _has_common_options(rank: Rank, rc: object) -> bool:
    """Whether a rank has set no option and no environment variable: all such have the same."""
    program = rank.program
    if program.environ is not None or program.invocation.variables:
        return False
    return not has_options(rank, rc)


def _finalize(rank: Rank, leave: SystemExit | None = None) -> None:
    """The program of a rank has ended: finalize MPI if it has used it."""
    if ENVIRONMENT.peek(rank) is not None:
        status = environment.finish()
        if status:
            if leave is not None and not isinstance(leave.code, int | None):
                print(leave.code, file=sys.stderr)
            rank.abort(status)


def _text(value: object) -> Any:
    """A path as text, any other object unchanged."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _most_data(text: str) -> int:
    """Bytes of the largest message that carries its data, from `--data`."""
    if text == "all":
        return NEVER
    if text == "none":
        return 0
    try:
        return parse_size(text)
    except UsageError as error:
        raise UsageError(f"--data {text}: {error}; or all, or none") from None


def _call_settings(settings: Settings, reduction_order: str) -> CallSettings:
    return CallSettings(
        wtime=settings.number("smpi/wtime"),
        test=settings.number("smpi/test"),
        iprobe=settings.number("smpi/iprobe"),
        grow_injected_times=settings.flag("smpi/grow-injected-times"),
        init=settings.number("smpi/init"),
        barrier_finalization=settings.flag("smpi/barrier-finalization"),
        reduction_order=reduction_order,
    )
