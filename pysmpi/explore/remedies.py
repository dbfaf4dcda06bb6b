"""Changes that may repair a program: a receive that names a tag or a source, or barriers.

A remedy comes from an order that passes and one that fails. They part where a receive from any
source takes different messages. An execution applies a remedy as a change of the program would: it
changes the receives before they are posted, and ranks call `Barrier` before some of their calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pysmpi.explore.events import LocatedMatch, Trace
from pysmpi.kernel.choices import MATCH
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Receive, Transfer
from pysmpi.mpi import MPI as _MPI
from pysmpi.mpi.base.ranks import MpiCall, Rank, Universe
from pysmpi.mpi.calls import procedure_of
from pysmpi.ranks.simulation import Simulation

MPI: Any = _MPI  # its names come from the chapters
_procedure = procedure_of(MPI.Comm.Barrier)
assert _procedure is not None
_barrier = _procedure.function  # not a call of the program: checkers do not see it
Call = tuple[str, int]  # a call with its line, and its number among those of a rank there
MOST = 8  # receives of a line that name sources or tags in turn


@dataclass(frozen=True)
class Remedy:
    """A change of a program.

    The receives at `place` name the `sources` and `tags` of their rank, one after the other; later
    ones stay as they are. Each rank calls `Barrier` before some of its calls (`barriers`), and a
    number of times at its end (`at_end`).
    """

    text: str
    place: str = ""
    sources: tuple[tuple[int, ...], ...] = ()
    tags: tuple[tuple[int, ...], ...] = ()
    barriers: tuple[frozenset[Call], ...] = ()
    at_end: tuple[int, ...] = ()

    def places(self) -> frozenset[str]:
        """The lines whose calls it counts."""
        return frozenset((self.place, *(place for calls in self.barriers for place, _ in calls)))


class CallCounts:
    """Counts the calls of ranks by their lines, and applies a remedy to an execution.

    Without a remedy, all lines count.
    """

    def __init__(self, simulation: Simulation, remedy: Remedy | None) -> None:
        self.remedy = remedy
        self.counts: dict[tuple[int, str], int] = {}
        self.order: list[tuple[int, str, int]] = []  # calls, without a remedy
        self.universe = simulation.universe
        self._places = None if remedy is None else remedy.places()
        simulation.listen(self)
        if remedy is not None and any(remedy.at_end):
            world = simulation.universe.ranks[0].world
            world.lifecycle = _Ends(world.lifecycle, remedy.at_end)

    def call_made(self, call: MpiCall) -> None:
        """A rank enters a call."""
        place = place_of(call)
        if self._places is not None and place not in self._places:
            return
        key = call.rank.pid, place
        number = self.counts[key] = self.counts.get(key, 0) + 1
        remedy = self.remedy
        if remedy is None:
            self.order.append((call.rank.pid, place, number))
        elif remedy.barriers:
            if (place, number) in remedy.barriers[call.rank.pid]:
                _barrier(MPI.COMM_WORLD)

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """Name the source or the tag of a receive before it is posted."""
        remedy = self.remedy
        if remedy is None or not isinstance(request, Receive) or isinstance(request, Transfer):
            return
        if not remedy.place or request.source != ANY:
            return
        pid = process.pid
        place, number = self.call_of(pid)
        if place != remedy.place:
            return
        if remedy.sources and number <= len(remedy.sources[pid]):
            request.source = remedy.sources[pid][number - 1]
        if remedy.tags and number <= len(remedy.tags[pid]) and request.tag == ANY:
            request.tag = remedy.tags[pid][number - 1]

    def call_of(self, pid: int) -> Call:
        """The call that a rank is in."""
        place = current_place(self.universe, pid)
        return place, self.counts.get((pid, place), 0)


class _Ends:
    """Steps of ranks: some of them call `Barrier` at the end of their programs."""

    def __init__(self, lifecycle: Any, numbers: Sequence[int]) -> None:
        self._lifecycle = lifecycle
        self._numbers = numbers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lifecycle, name)

    def begin(self, rank: Rank) -> Callable[[], object]:
        """The program of a rank, with its barriers."""
        program: Callable[[], object] = self._lifecycle.begin(rank)

        def whole() -> object:
            value = program()
            for _ in range(self._numbers[rank.pid]):
                _barrier(MPI.COMM_WORLD)
            return value

        return whole


def place_of(call: MpiCall) -> str:
    """The name of a call, and its line."""
    site = call.site
    return call.name if site is None else f"{call.name} {os.path.relpath(site.file)}:{site.line}"


def current_place(universe: Universe, pid: int) -> str:
    """The call that a rank is in, and its line."""
    call = universe.ranks[pid].call
    return "outside of MPI" if call is None else place_of(call)


def remedies(passing: Trace, failing: Trace, ranks: int) -> list[Remedy]:
    """The changes that may let all orders pass, the simplest first."""
    usual = {event.receipt: i for i, event in enumerate(passing.events) if event.kind == MATCH}
    taken = {match.event: match for match in passing.matches}
    others = {match.event: match for match in failing.matches}
    for i, event in enumerate(failing.events):
        number = usual.get(event.receipt) if event.kind == MATCH else None
        if number is None or passing.events[number].name == event.name:
            continue
        one, other = taken.get(number), others.get(i)
        if one is not None and other is not None and one.receive == other.receive:
            found = [] if one.sender == other.sender else _named(passing, one, other, ranks)
            return [each for each in (*found, _barriers(passing, one, other, ranks)) if each]
    return []


def _named(passing: Trace, one: LocatedMatch, other: LocatedMatch, ranks: int) -> list[Remedy]:
    """The receives of a line name the tags, or the sources, that they have in the passing order."""
    turns: list[list[LocatedMatch]] = [[] for _ in range(ranks)]
    for match in passing.matches:
        if match.event >= 0 and match.receive == one.receive:
            turns[match.receiver].append(match)
    for mine in turns:
        mine.sort(key=lambda match: match.receive_number)
        numbers = [match.receive_number for match in mine]
        if numbers != list(range(1, len(mine) + 1)) or len(mine) > MOST:
            return []  # a call has several receives, or none
    found = []
    if one.wanted == ANY and one.tag != other.tag:
        tags = tuple(tuple(match.tag for match in mine) for mine in turns)
        found.append(Remedy(_text(one, tags, "tag", ""), one.receive, tags=tags))
    sources = tuple(tuple(match.source for match in mine) for mine in turns)
    senders = [tuple(match.sender for match in mine) for mine in turns]
    found.append(Remedy(_text(one, senders, "source", "rank"), one.receive, sources=sources))
    return found


def _text(one: LocatedMatch, turns: Sequence[tuple[int, ...]], what: str, unit: str) -> str:
    """The tags or sources that the receives of a line name, in words."""
    values = {value for mine in turns for value in mine}
    if len(values) == 1:
        return f"{one.receive} names the {what} of its message ({f'{unit} {values.pop()}'.strip()})"
    if sum(map(bool, turns)) > 1:
        return f"{one.receive} names the {what} of each message of the passing order"
    listed = ", ".join(map(str, turns[one.receiver]))
    units = f"{unit}s " if unit else ""
    return f"{one.receive} names the {what}s of its messages ({units}{listed} in turn)"


def _barriers(passing: Trace, one: LocatedMatch, other: LocatedMatch, ranks: int) -> Remedy | None:
    """A barrier before each send of the line whose message came too early.

    The receiver calls it before it takes the first of these messages in the passing order. A rank
    that has fewer such sends than another one calls it at its end. If the receiver sends such
    messages itself, all ranks call it before they send, also from the lines before.
    """
    late = other.send
    calls: list[list[Call]] = [[] for _ in range(ranks)]
    for rank, place, number in passing.calls:
        calls[rank].append((place, number))
    sends = [[call for call in mine if call[0] == late] for mine in calls]
    rounds = max(map(len, sends))
    at_end = [rounds - len(mine) for mine in sends]
    if sends[one.receiver]:
        if any(at_end):
            return None
        sending = {match.send for match in passing.matches}
        firsts = [[_first_send(mine, call, sending) for call in calls_there]
                  for mine, calls_there in zip(calls, sends)]  # fmt: skip
        text = f"a barrier stands before {firsts[one.receiver][-1][0]}"
        return Remedy(text, barriers=tuple(map(frozenset, firsts)))
    begins: dict[int, Call] = {}
    for match in sorted(passing.matches, key=lambda match: match.posted):
        if match.receiver == one.receiver and match.send == late:
            begins.setdefault(match.send_number, (match.receive, match.receive_number))
    if len(begins) != rounds or len(set(begins.values())) != rounds:
        return None
    sends[one.receiver] = list(begins.values())
    at_end[one.receiver] = 0
    numbers: dict[str, list[int]] = {}
    for place, number in sorted(begins.values()):
        numbers.setdefault(place, []).append(number)
    places = []
    for place, some in numbers.items():
        every = len(some) == sum(place == call[0] for call in calls[one.receiver])
        which = f"call{'s' * (len(some) > 1)} {', '.join(map(str, some))}"
        places.append(place if every else f"{place} ({which})")
    text = f"a barrier stands before {late}, and before {' and '.join(places)}"
    return Remedy(
        text, barriers=tuple(map(frozenset, sends)),
        at_end=tuple(at_end),
    )  # fmt: skip


def _first_send(calls: Sequence[Call], call: Call, sending: set[str]) -> Call:
    """The first of the sends that a rank makes one after the other, up to this one."""
    at = calls.index(call)
    while at and calls[at - 1][0] in sending:
        at -= 1
    return calls[at]
