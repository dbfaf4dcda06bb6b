"""A job: a program on a simulated machine, from its options to its result.

`pysmpi.run` and the command line use this module.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import Any

from pysmpi.collectives import cache, order
from pysmpi.errors import UsageError
from pysmpi.folding.setup import Folding
from pysmpi.isolation import collection, unclosed_files
from pysmpi.isolation.loading.loader import RankProgram
from pysmpi.isolation.loading.own_code import OwnCode
from pysmpi.job import heap
from pysmpi.job.interpreter import Interpreter
from pysmpi.job.lifecycle import ProgramLifecycle, import_mpi
from pysmpi.job.options import Options
from pysmpi.job.results import add_interval, result_of
from pysmpi.job.spawning import ProgramPart, Segment, Spawner
from pysmpi.kernel.plan import Transport
from pysmpi.machine import Machine
from pysmpi.mpi.base.attributes import LAUNCH
from pysmpi.mpi.base.ranks import Rank, World
from pysmpi.mpi.base.settings import CallSettings
from pysmpi.mpi.buffers import copying
from pysmpi.mpi.buffers import locations as whereabouts
from pysmpi.mpi.buffers.payload import NEVER, PAYLOAD
from pysmpi.mpi.collective.packing import CollectivePacking, packer_of
from pysmpi.mpi.files.disks import DISKS, Disks, disk_options
from pysmpi.mpi.point_to_point import envelopes
from pysmpi.mpi.processes import spawning
from pysmpi.platform.config import OF_COMPILED_PROGRAMS, Settings
from pysmpi.platform.units import parse_size
from pysmpi.ranks import address_space
from pysmpi.ranks.instruments import Instrument
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.deadlock import Deadlocks
from pysmpi.reports.exit_status import exit_status
from pysmpi.reports.glances import Glances
from pysmpi.reports.result import Result
from pysmpi.shadow.setup import Shadowing
from pysmpi.time.host_speed import host_speed
from pysmpi.time.recordings import JobIdentity
from pysmpi.time.timing import ComputeTiming, NativeTiming, PlaybackTiming, find_timing
from pysmpi.time.touched_memory import followed_by
from pysmpi.waiting.progress.beats import Beats
from pysmpi.waiting.progress.spins import Spins
from pysmpi.waiting.stalls.judging import Signalled, StallWatch


class Job:
    """One run of a program: `run` returns its `Result`, also if the program fails.

    `segments` are the programs of a job with several programs in one world; the first is `program`.
    `instruments` listen to the run, or change it.
    """

    def __init__(
        self,
        program: RankProgram,
        options: Options,
        segments: Sequence[Segment] = (),
        instruments: Sequence[Instrument] = (),
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
            memory_bound=options.memory_bound,
            selector=_text(options.selector),
            coll=options.coll,
            cfg=options.cfg,
        )
        self.platform, self.settings = machine.platform, machine.settings
        compiled = [segment.program.configure(self.settings) for segment in self.segments]
        if not any(compiled):
            self.settings.unheard += [
                name for name in OF_COMPILED_PROGRAMS if name in self.settings.said
            ]
        self.slots, self.selection = machine.slots, machine.selection
        # Of the ranks so far; the transport sees those of spawned ranks, too.
        self.places, self.hosts = list(self.slots), [slot.host for slot in self.slots]
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
        self._skip_and_fold()
        self.most_data = _most_data(options.data)
        self.command: str | None = None  # the command that repeats the run
        self.last = False  # whether the process ends after the run
        # How a signal ends the process, and its exit status, if the run cannot end by itself.
        self.signalled: Signalled | None = None
        self.instruments = list(instruments)
        self.transport: Transport | None = None  # in place of that of the machine
        self.own_orders = False  # whether sets have an order of each rank

    def _skip_and_fold(self) -> None:
        options, timing = self.options, self.timing
        self.shadowing = Shadowing(
            options.sample, options.once, timing, options.nprocs, options.seed
        )
        self.folding = Folding(options.fold, timing.stopwatch)

    def time_with(self, timing: ComputeTiming) -> None:
        """Take the times of compute from `timing`; before the run."""
        self.compute = "none"
        self.timing = timing
        self._skip_and_fold()

    def machine_transport(self) -> Transport:
        """A new transport of the machine."""
        return self.machine.transport(self.hosts, self.places, whereabouts.locate)

    def run(self) -> Result:
        """Simulate the program to its end."""
        measured = isinstance(self.timing, NativeTiming)
        if self.last and not measured:
            heap.extend_by_little()
            heap.use_huge_pages(self.options.nprocs)
        # What a copy leaves in the cache makes the compute after it shorter.
        copying.LIMITS.suit(0 if measured else self.options.nprocs)
        try:
            with ExitStack() as stack:
                for instrument in self.instruments:
                    instrument.prepare(self)
                    stack.push(partial(_close, instrument))
                result = self._simulated()
                for instrument in reversed(self.instruments):
                    instrument.finish(result)
            return result
        finally:
            copying.LIMITS.suit(0)
            cache.forget()
            order.forget()

    def _simulated(self) -> Result:
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

    def _run(self) -> Result:
        begun = time.perf_counter()
        measured = isinstance(self.timing, NativeTiming)
        transport = self.transport or self.machine_transport()
        simulation = self.simulation = Simulation(transport, self.slots)
        self.machine.equip(simulation.engine)
        universe = simulation.universe
        universe.selection = self.selection
        universe.tolerant = self.options.on_failure == "continue"
        universe.settings = _call_settings(self.settings, self.options.reduction_order)
        DISKS.put(universe, Disks(disk_options(self.settings)))
        simulation.watch.most = self.settings.value("smpi/most-polls")
        Beats(simulation)
        simulation.limit_memory(address_space.limited())
        spawner = Spawner(simulation, self.platform, self.options, self.settings, self.start_world)
        spawning.SPAWN.put(universe, spawner)
        packer = packer_of(transport)
        if packer is not None:
            CollectivePacking(universe, packer).begin()
        envelopes.install(simulation.engine)
        simulation.engine.by_arrival = self.settings.value("smpi/matching") == "arrival"
        self.deadlocks = Deadlocks(self.options.on_deadlock)
        # Those of every run are the last ones.
        parts = [self.deadlocks, Glances(), self.folding, self.shadowing]
        for instrument in [*self.instruments, *parts]:
            simulation.listen(instrument)
            instrument.attach(self)
        if self.own_orders:
            self.shadowing.order_sets()
        mpi = import_module("pysmpi.mpi.MPI")
        with (
            simulation.silence,
            simulation.calls,
            self.timing,
            followed_by(transport),
            Interpreter(
                self.program,
                mpi=mpi,
                arrive=import_mpi,
                private=self.options.private,
                shared=self.options.shared,
                poll_cost=self.settings.number("smpi/wtime"),
                stopwatch=self.timing.stopwatch,
                start_fiber=self._start_thread,
                shadowing=self.shadowing,
                own_code=OwnCode(self.options.nprocs) if measured else None,
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
            simulation.listen(self.interpreter)
            self.universe_size = spawner.universe_size()
            programs = self._parts()
            world = simulation.add_world(range(len(self.slots)), self._lifecycle(programs))
            LAUNCH.of(world).universe_size = self.universe_size
            for ranks_ready in simulation.methods["ranks_ready"]:
                ranks_ready(simulation)
            simulation.run()
            ending = exit_status(simulation, simulation.outcomes, self.deadlocks.report)
            self.interpreter.children.end(well=ending[0] == 0)
            simulation.let_go()
            for run_ended in simulation.methods["run_ended"]:
                run_ended(self._result(parts, time.perf_counter() - begun, *ending))
        return self._result(parts, time.perf_counter() - begun, *ending)

    def _result(
        self, parts: Sequence[Instrument], wall: float, status: int, error: str | None
    ) -> Result:
        result = result_of(self, wall, status, error)
        for instrument in reversed(parts):
            instrument.finish(result)
        add_interval(result, self.shadowing.shadow, self.simulation.universe.ranks)
        return result

    def _identity(self) -> JobIdentity:
        """The identity of the job, for recordings of its compute."""
        programs = [
            {**segment.program.identity(), "ranks": segment.ranks} for segment in self.segments
        ]
        threads = os.environ.get("OMP_NUM_THREADS")
        return {"ranks": self.options.nprocs, "programs": programs, "threads": threads}

    def _parts(self) -> list[ProgramPart]:
        """The parts of the first world, one for each program."""
        parts: list[ProgramPart] = []
        begin = 0
        for number, segment in enumerate(self.segments):
            segment.program.last = self.last
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
        world = simulation.add_world(numbers, self._lifecycle(parts, spawning.arrive))
        LAUNCH.of(world).universe_size = self.universe_size
        return world

    def _lifecycle(
        self, parts: Sequence[ProgramPart], arrive: Callable[[Rank], object] | None = None
    ) -> ProgramLifecycle:
        return ProgramLifecycle(
            self.simulation, self.interpreter, self.timing, self.options.seed, parts, arrive
        )

    def _start_thread(
        self, rank: Rank, body: Callable[[], object], ended: Callable[[], object]
    ) -> object:
        begun = self.simulation.methods["thread_begun"]

        def noted() -> object:
            for thread_begun in begun:
                thread_begun(rank)
            return body()

        return self.simulation.start_thread(rank, noted if begun else body, ended)


def _close(
    instrument: Instrument,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> None:
    instrument.close(error)


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
