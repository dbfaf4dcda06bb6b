"""Running the players of all ranks on a machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pysmpi import text
from pysmpi.collectives import cache
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.selection import Selection
from pysmpi.errors import UsageError
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.process import Core, Process
from pysmpi.kernel.requests import Context
from pysmpi.machine import UNKNOWN_SPEED, Machine
from pysmpi.platform.model import Host
from pysmpi.replay.player import Player
from pysmpi.replay.sources import Source, sources


class Instance:
    """One replayed trace: its players, and their common state."""

    def __init__(self, name: str, begin: float, size: int, selection: Selection) -> None:
        self.name = name
        self.begin = begin
        self.size = size
        self.selection = selection
        self.players: list[Player] = []
        self.point_to_point: Context
        self.collective: Context
        self.nodes: Nodes | None = None
        self.slots: Nodes | None = None
        self._ready: list[tuple[int, frozenset[str]]] = []
        # Collective calls that some ranks have still to make: the first caller, and the number of
        # callers.
        self._met: dict[int, tuple[str, Player, str, int]] = {}

    def meet(self, number: int, operation: str, player: Player) -> None:
        """A rank makes a collective call; UsageError if others make a different call."""
        first = self._met.get(number)
        if first is None:
            first = operation, player, player.where(), 0
        known, other, where, count = first
        if known != operation:
            raise UsageError(
                f"{player.where()}: rank {player.rank} calls {operation} where rank {other.rank} "
                f"calls {known} ({where}), expected the same collective calls on all ranks"
            )
        if count + 1 == self.size:
            self._met.pop(number, None)
        else:
            self._met[number] = known, other, where, count + 1

    def ready_before(self, number: int) -> frozenset[str]:
        """The node-level communicators that the collective calls before a call have made."""
        found: frozenset[str] = frozenset()
        for order, ready in self._ready:
            if order < number:
                found = ready
        return found

    def prepared(self, number: int, ready: frozenset[str]) -> None:
        """A call has made node-level communicators, or used those that there are."""
        known = self._ready[-1][1] if self._ready else frozenset()
        if not ready <= known:
            self._ready.append((number, ready))


@dataclass
class ReplayResult:
    """The result of a replay: `seconds` is the makespan, `end_seconds` when each rank ends (s)."""

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
    the traces. `core_speed` (flop/s) replaces the speeds of the hosts.
    """

    def __init__(
        self,
        traces: Sequence[tuple[str | Path, float]],
        core_speed: float | None = None,
        **options: Any,
    ) -> None:
        self.core_speed = core_speed
        self.traces = [(str(path), begin, sources(path)) for path, begin in traces]
        self.nprocs = sum(len(ranks) for _, _, ranks in self.traces)
        self.machine = Machine(self.nprocs, **options)

    def run(self) -> ReplayResult:
        """Replay to the end. Raises UsageError for a line that is wrong or waits for ever."""
        begun = time.perf_counter()
        machine = self.machine
        slots = machine.slots
        hosts = [slot.host for slot in slots]
        engine = Engine(machine.transport(hosts, list(slots)), len(slots))
        engine.by_arrival = machine.settings.value("smpi/matching") == "arrival"
        cores: dict[tuple[Host, int], Core] = {}
        instances: list[Instance] = []
        first = 0
        for name, begin, ranks in self.traces:
            instance = Instance(name, begin, len(ranks), machine.selection)
            self._cast(engine, instance, ranks, first, cores)
            instances.append(instance)
            first += len(ranks)
        try:
            engine.run()
        finally:
            cache.forget()
        for instance in instances:
            _check(instance)
        players = [player for instance in instances for player in instance.players]
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
                }
                for instance in instances
            ],
            end_seconds=[player.date for player in players],
        )

    def _cast(
        self,
        engine: Engine,
        instance: Instance,
        ranks: Sequence[Source],
        first: int,
        cores: dict[tuple[Host, int], Core],
    ) -> None:
        """Make the players of a trace, in the places from `first` on."""
        places = self.machine.slots[first : first + len(ranks)]
        processes = []
        for i, place in enumerate(places, first):
            core = cores.get((place.host, place.core))
            if core is None:
                speed = self.core_speed or place.host.speed or UNKNOWN_SPEED
                core = Core(speed, f"{place.host.name}/{place.core}")
                cores[place.host, place.core] = core
            core.residents += 1
            processes.append(Process(engine, i, i, core))
        instance.point_to_point = Context(2 * first, processes)
        instance.collective = Context(2 * first + 1, processes)
        numbers = [place.host.index for place in places]
        if len(set(numbers)) < len(numbers):
            instance.nodes = Nodes(numbers)
        if self.machine.selection.tuner is not None:
            instance.slots = Nodes(range(first, first + len(places)))
        for source, process in zip(ranks, processes):
            player = Player(instance, source, process)
            instance.players.append(player)
            player.start(instance.begin)


def _check(instance: Instance) -> None:
    """Refuse a trace whose ranks wait for ever."""
    stuck = [player for player in instance.players if not player.done]
    if stuck:
        places = "; ".join(f"rank {player.rank} at {player.where()}" for player in stuck[:3])
        more = f"; and {len(stuck) - 3} more" if len(stuck) > 3 else ""
        raise UsageError(
            f"{instance.name}: {text.count(len(stuck), 'rank')} never "
            f"{'ends' if len(stuck) == 1 else 'end'}, expected each message to be sent and "
            f"received: {places}{more}"
        )
