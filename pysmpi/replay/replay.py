"""Running the players of all ranks on a machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysmpi import text
from pysmpi.collectives import cache
from pysmpi.collectives.layout import Nodes
from pysmpi.errors import UsageError
from pysmpi.isolation.collection import rarely
from pysmpi.kernel.core import Core
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.plan import Transport
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import AbstractProcess, Context
from pysmpi.machine import UNKNOWN_SPEED, Machine
from pysmpi.memory.bandwidth import share_memory
from pysmpi.platform.model import Host
from pysmpi.platform.placement import Slot
from pysmpi.replay.executor import Common, TracedProcess
from pysmpi.replay.goal import GoalTrace, is_goal
from pysmpi.replay.goal_player import GoalInstance
from pysmpi.replay.player import OPERATIONS, Instance, Player
from pysmpi.replay.recorded import RecordedInstance
from pysmpi.replay.recorded_trace import RecordedTrace
from pysmpi.replay.sources import Source, sources
from pysmpi.trace.events import Format
from pysmpi.trace.recorded_lines import is_recording
from pysmpi.trace.recorded_machine import machine_options, recorded_machine

if TYPE_CHECKING:
    from pysmpi.replay.recorder import ReplayRecorder


@dataclass
class ReplayResult:
    """The result of a replay: `seconds` is the makespan, `end_seconds` the end of each rank (s)."""

    nprocs: int
    seconds: float
    wall_seconds: float
    platform: str
    model: str
    selector: str
    messages: int
    bytes: int
    events: int
    instances: list[dict[str, Any]]
    end_seconds: list[float]

    def report(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "schema": 1,
            "seconds": self.seconds,
            "wall_seconds": self.wall_seconds,
            "nprocs": self.nprocs,
            "platform": self.platform,
            "model": self.model,
            "selector": self.selector,
            "messages": self.messages,
            "bytes": self.bytes,
            "events": self.events,
            "instances": self.instances,
            "end_seconds": self.end_seconds,
        }


class Replay:
    """A replay of traces, each with the date (s) at which it begins.

    `options` are those of `Machine`, which has a place for the ranks of all traces, in the order of
    the traces; without options, a recording is replayed on the machine that it was made on.
    `core_speed` (flop/s) replaces the speeds of the hosts. On a host without a speed, compute takes
    its recorded time.
    """

    def __init__(
        self,
        traces: Sequence[tuple[str | Path, float]],
        core_speed: float | None = None,
        **options: Any,
    ) -> None:
        self.core_speed = core_speed
        self.traces: list[tuple[str, float, list[Source] | RecordedTrace | GoalTrace]] = []
        self.nprocs = 0
        own: RecordedTrace | None = None  # a recording that is replayed on its own machine
        for path, begin in traces:
            name = str(path)
            if is_recording(name):
                recorded = RecordedTrace(name)
                self.nprocs += recorded.nprocs
                self.traces.append((name, begin, recorded))
                if len(traces) == 1 and not any(options.values()):
                    own = recorded
            elif is_goal(name):
                goal = GoalTrace(name)
                self.nprocs += len(goal.schedules)
                self.traces.append((name, begin, goal))
            else:
                ranks = sources(name)
                self.nprocs += len(ranks)
                self.traces.append((name, begin, ranks))
        if own is None:
            self.options = options
            self.machine = Machine(self.nprocs, **options)
        else:
            self.options = machine_options(own.facts)
            self.machine = recorded_machine(own.name, own.facts, self.nprocs)
        platform = self.machine.platform
        if platform.profiles:
            raise UsageError(
                f"replay: {platform.source}: expected a machine without profiles, which act only "
                "in runs of programs"
            )

    def run(self, format: Format | None = None) -> ReplayResult:
        """Replay to the end, and record it in a format.

        Raises UsageError for a line that is wrong or waits for ever, and for a format with several
        traces or a schedule in GOAL.
        """
        recorder = None
        if format is not None:
            if len(self.traces) > 1:
                raise UsageError("--trace, --view: expected one trace, got several")
            if isinstance(self.traces[0][2], GoalTrace):
                raise UsageError(
                    f"--trace, --view, --explain: {self.traces[0][0]} has no calls of a program, "
                    "expected a recording or a time-independent trace"
                )
            from pysmpi.replay.recorder import ReplayRecorder

            recorder = ReplayRecorder(format)
        begun = time.perf_counter()
        machine = self.machine
        slots = machine.slots
        hosts = [slot.host for slot in slots]
        engine = Engine(machine.transport(hosts, list(slots)), len(slots))
        machine.equip(engine)
        engine.by_arrival = machine.settings.value("smpi/matching") == "arrival"
        cores: dict[tuple[Host, int], Core] = {}
        instances: list[Instance | RecordedInstance | GoalInstance] = []
        first = 0
        for name, begin, trace in self.traces:
            if isinstance(trace, RecordedTrace):
                recorded = RecordedInstance(trace, begin, machine.selection)
                processes, numbers = self._processes(engine, first, trace.core_speeds, cores)
                if recorder is not None:
                    recorded.recorder = recorder
                    trace.observed = True
                    self._describe(recorder, name, engine, processes)
                recorded.cast(processes, numbers)
                instances.append(recorded)
                first += trace.nprocs
            elif isinstance(trace, GoalTrace):
                goal = GoalInstance(name, begin, trace.schedules)
                processes, _ = self._processes(engine, first, [0.0] * goal.size, cores)
                goal.cast(processes, 2 * first)
                instances.append(goal)
                first += goal.size
            else:
                instances.append(self._cast(engine, name, begin, trace, first, cores, recorder))
                first += len(trace)
        try:
            with rarely(self.nprocs):
                engine.run()
        finally:
            cache.forget()
        for instance in instances:
            _check(instance)
        players = [player for instance in instances for player in instance.players[: instance.size]]
        if recorder is not None:
            for instance in instances:
                if isinstance(instance, Instance):
                    for player in instance.players:
                        player.conclude(recorder)
            recorder.finish([one.process for one in players], [one.date for one in players])
        return ReplayResult(
            nprocs=self.nprocs,
            seconds=max((player.date for player in players), default=0.0),
            wall_seconds=time.perf_counter() - begun,
            platform=machine.platform.name,
            model=machine.model.name,
            selector=machine.selection.selector,
            messages=engine.messages,
            bytes=engine.bytes,
            events=engine.events,
            instances=[
                {
                    "trace": instance.name,
                    "nprocs": instance.size,
                    "begin_seconds": instance.begin,
                    "end_seconds": max(player.date for player in instance.players),
                    "complete": not isinstance(instance, RecordedInstance)
                    or instance.trace.complete,
                }
                for instance in instances
            ],
            end_seconds=[player.date for player in players],
        )

    def _describe(
        self, recorder: ReplayRecorder, name: str, engine: Engine, processes: list[Process]
    ) -> None:
        """Let a recorder listen, and tell it of the machine and the ranks."""
        from pysmpi.trace.recorder import facts_of

        machine = self.machine
        facts = facts_of(machine, self.nprocs, name, self.options)
        recorder.attach(engine, {**facts, "compute": "replay"}, machine.selection)
        places = machine.slots[: len(processes)]
        recorder.begin(
            [place.host.name for place in places], [place.core for place in places], processes
        )

    def _core(
        self,
        place: Slot,
        cores: dict[tuple[Host, int], Core],
        transport: Transport,
        recorded: float = 0.0,
    ) -> Core:
        """The core at a place, for one more process; `recorded` is its speed if it has no other."""
        core = cores.get((place.host, place.core))
        if core is None:
            speed = self.core_speed or place.host.speed or recorded or UNKNOWN_SPEED
            core = Core(speed, place.host.name, place.core)
            cores[place.host, place.core] = core
            share_memory(core, place, transport)
        core.residents += 1
        return core

    def _processes(
        self,
        engine: Engine,
        first: int,
        speeds: Sequence[float],
        cores: dict[tuple[Host, int], Core],
    ) -> tuple[list[Process], list[int]]:
        """The processes in the places from `first` on, and the numbers of their hosts."""
        places = self.machine.slots[first : first + len(speeds)]
        processes = [
            Process(engine, i, i, self._core(place, cores, engine.book.transport, recorded))
            for i, (place, recorded) in enumerate(zip(places, speeds), first)
        ]
        return processes, [place.host.index for place in places]

    def _cast(
        self,
        engine: Engine,
        name: str,
        begin: float,
        ranks: Sequence[Source],
        first: int,
        cores: dict[tuple[Host, int], Core],
        recorder: ReplayRecorder | None,
    ) -> Instance:
        """The players of a trace, in the places from `first` on."""
        selection = self.machine.selection
        places = self.machine.slots[first : first + len(ranks)]
        common = Common(len(ranks), len(OPERATIONS))
        processes = [
            TracedProcess(
                engine, i, i, self._core(place, cores, engine.book.transport), common, i - first
            )
            for i, place in enumerate(places, first)
        ]
        members: list[AbstractProcess] = [*processes]
        # A recorded communicator has a number from 1 on.
        number = 2 * first if recorder is None else 2
        common.messages, common.collective = Context(number, members), Context(number + 1, members)
        numbers = [place.host.index for place in places]
        nodes = Nodes(numbers) if len(set(numbers)) < len(numbers) else None
        slots = Nodes(range(first, first + len(ranks))) if selection.tuner is not None else None
        instance = Instance(name, begin, selection, common, nodes, slots)
        if recorder is not None:
            instance.recorder = recorder
            self._describe(recorder, name, engine, [*processes])
            for context in (common.messages, common.collective):
                recorder.describe_context(context, number, "COMM_WORLD")
        for source, process in zip(ranks, processes):
            instance.players.append(Player(instance, source, process))
            process.begin(begin)
        return instance


def _check(instance: Instance | RecordedInstance | GoalInstance) -> None:
    """Refuse a trace whose ranks wait for ever."""
    stuck = [player for player in instance.players if not player.done]
    if stuck:
        places = "; ".join(f"rank {player.rank} at {player.where()}" for player in stuck[:3])
        if isinstance(instance, RecordedInstance) and not instance.trace.complete:
            raise UsageError(
                f"{instance.name}: it has no end: the run was stopped, or the file is cut short; "
                f"{text.count(len(stuck), 'rank')} would wait for ever: {places}"
            )
        more = f"; and {len(stuck) - 3} more" if len(stuck) > 3 else ""
        raise UsageError(
            f"{instance.name}: {text.count(len(stuck), 'rank')} never "
            f"{'ends' if len(stuck) == 1 else 'end'}, expected each message to be sent and "
            f"received: {places}{more}"
        )
