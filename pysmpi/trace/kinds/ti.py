"""Time-independent traces in SMPI's format: the computation and the messages of each rank.

`smpirun -replay` and `pysmpi replay` read them. A line is `RANK ACTION ARGUMENT...`. Everything is
replayed on `COMM_WORLD`: messages on other communicators get tags of their own, and collective
calls that the format does not have (those of other communicators, non-blocking and neighbourhood
ones) are written as the messages of their algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pysmpi.collectives.cache import schedule_for
from pysmpi.collectives.call import Call, fields_of
from pysmpi.collectives.layout import Nodes
from pysmpi.kernel import schedule as steps
from pysmpi.kernel.schedule import MOST_TAGS, Schedule
from pysmpi.trace.events import (
    COLLECTIVE,
    COMPUTE,
    PASS,
    RECEIVE,
    SEND,
    STEPS,
    WAIT,
    RankPlace,
    TracedCall,
    TracedCommunicator,
    TracedMatch,
)
from pysmpi.trace.formats import trace_format
from pysmpi.trace.streams import Output

# SMPI's numbers of datatypes, by the bytes of an element.
_TYPES = {8: 0, 4: 1, 1: 6, 2: 3, 16: 14}
_BYTE = 6
# Tags of messages that are not those of `COMM_WORLD`: from here on.
_FIRST_TAG = 1_000_000
_Key = tuple[int, int, int]  # source, destination, tag of a request
_Action = str | Callable[[], str]


class _Rank:
    """The known state of a rank.

    `open` has the keys of its requests by number, None for a receive with a wildcard whose message
    is not known yet. Such receives are in `unknown`; until it is empty, actions are `held`.
    `background` has the numbers of collective calls that it has not completed.
    """

    __slots__ = ("held", "open", "unknown", "background")

    def __init__(self) -> None:
        self.held: list[_Action] = []
        self.open: dict[int, _Key | None] = {}
        self.unknown: dict[int, tuple[int, int]] = {}  # context and destination
        self.background: set[int] = set()


@trace_format("ti", "SMPI's time-independent traces", streams=True)
class IndependentFormat:
    """Writes a time-independent trace.

    Without `collectives`, all collective calls are written as messages.
    """

    collectives = True

    def __init__(self, path: str, compressed: bool = False) -> None:
        self.output = Output(path, compressed)
        self.selection: Any = None
        self._speeds: list[float] = []
        self._hosts: dict[str, int] = {}
        self._nodes: list[int] = []
        self._members: dict[int, tuple[int, ...]] = {}
        self._sources: dict[int, tuple[int, ...]] = {}
        self._layouts: dict[int, Nodes | None] = {}
        self._world = 0  # the context of COMM_WORLD's messages
        self._tags: dict[tuple[int, int], int] = {}
        self._ranks: list[_Rank] = []
        self._found: dict[int, _Key] = {}  # keys of receives that were unknown
        self._sizes: dict[int, int] = {}  # and the bytes of their messages

    # The events that the recorder passes on.

    def choose(self, selection: object) -> None:
        """The selection of collective algorithms of the run."""
        self.selection = selection

    def begin(self, places: Sequence[RankPlace]) -> None:
        """Ranks were started."""
        for place in places:
            self._speeds.append(place.speed)
            self._nodes.append(self._hosts.setdefault(place.host, len(self._hosts)))
            self._ranks.append(_Rank())
            self.write(place.rank, "init")

    def communicator(self, communicator: TracedCommunicator) -> None:
        """A communication context."""
        self._members[communicator.number] = communicator.members
        self._sources[communicator.number] = communicator.sources or communicator.members
        if communicator.name == "COMM_WORLD" and communicator.number == communicator.communicator:
            self._world = communicator.number

    def call(self, call: TracedCall) -> None:
        """The actions of a call."""
        rank, operations = call.rank, call.operations
        background = self._ranks[rank].background
        # The rank has waited already where the collective call begins.
        polls = call.name[:4].lower() == "test" and len(background) > 0
        i = 0
        while i < len(operations):
            one = operations[i]
            i += 1
            kind = one[0]
            if kind == COMPUTE:
                self._put(rank, f"compute {_number(one[1] * self.speed_of(rank))}")
            elif kind == PASS:
                if not polls:
                    self._put(rank, f"sleep {_number(one[1])}")
            elif kind == SEND or kind == RECEIVE:
                following = operations[i] if i < len(operations) else (None,)
                blocks = following[0] == WAIT and following[1] == [one[1]] and following[2]
                if kind == SEND:
                    blocks = blocks and not one[8]
                    self._send(rank, one, blocks)
                else:
                    self._receive(rank, one, blocks)
                i += bool(blocks)
            elif kind == WAIT:
                background.difference_update([-number for number in one[1]])
                if one[2]:
                    self._wait(rank, one[1])
            elif kind == COLLECTIVE:
                if one[4]:
                    background.add(one[1])
                self._collective(rank, one)
            elif kind == STEPS:
                _, context, me, tag, codes, peers, sizes, tags, amounts = one
                schedule = Schedule()
                schedule.codes, schedule.peers, schedule.sizes = codes, peers, sizes
                schedule.tags, schedule.amounts = tags, amounts
                self._schedule(rank, context, schedule)

    def between(self, call: TracedCall) -> None:
        """The actions between two calls."""
        self.call(call)

    def match(self, match: TracedMatch) -> None:
        """The message of a receive is known: so are the actions that follow it."""
        for rank in self._ranks:
            known = rank.unknown.pop(match.receive, None)
            if known is None:
                continue
            context, destination = known
            source = self._sources[context][match.source]
            key = source, destination, self._tag(context, match.tag)
            self._found[match.receive] = key
            self._sizes[match.receive] = match.nbytes
            rank.open[match.receive] = key
            if not rank.unknown:
                self._release(destination)
            return

    def end(self, ends: Sequence[float]) -> None:
        """The last action of each rank."""
        for rank in range(len(ends)):
            # A receive that was never matched is left out.
            self._ranks[rank].unknown.clear()
            self._release(rank)
            self.write(rank, "finalize")

    def close(self) -> None:
        """Close the file."""
        self.output.close()

    # Actions.

    def write(self, rank: int, action: str) -> None:
        """Write an action."""
        self.output.write(f"{rank} {action}\n")

    def speed_of(self, rank: int) -> float:
        """The speed of the core of a rank (flop/s)."""
        return self._speeds[rank] or 1.0

    def _put(self, rank: int, action: _Action) -> None:
        known = self._ranks[rank]
        if known.unknown:
            known.held.append(action)
        else:
            text = action if isinstance(action, str) else action()
            if text:
                self.write(rank, text)

    def _release(self, rank: int) -> None:
        held, self._ranks[rank].held = self._ranks[rank].held, []
        for action in held:
            self._put(rank, action)

    def _tag(self, context: int, tag: int) -> int:
        """The tag in the trace of a message of a context."""
        if context == self._world:
            return tag
        found = self._tags.get((context, tag))
        if found is None:
            found = self._tags[context, tag] = _FIRST_TAG + len(self._tags)
        return found

    def _send(self, rank: int, operation: Any, blocks: bool) -> None:
        _, number, context, _, destination, tag, nbytes, _, _ = operation
        key = rank, self._members[context][destination], self._tag(context, tag)
        self._put(rank, f"{'send' if blocks else 'isend'} {key[1]} {key[2]} {nbytes} {_BYTE}")
        if not blocks:
            self._ranks[rank].open[number] = key

    def _receive(self, rank: int, operation: Any, blocks: bool) -> None:
        _, number, context, source, _, tag, nbytes, *match = operation
        name = "recv" if blocks else "irecv"
        wild = source < 0 or tag < 0
        if match:
            source, tag, nbytes = match
        elif wild:
            self._ranks[rank].open[number] = None
            self._ranks[rank].unknown[number] = context, rank

            def action() -> str:
                key = self._found.get(number)
                if key is None:
                    return ""
                return f"{name} {key[0]} {key[2]} {self._sizes.pop(number)} {_BYTE}"

            self._put(rank, action)
            return
        key = self._sources[context][source], rank, self._tag(context, tag)
        self._put(rank, f"{name} {key[0]} {key[2]} {nbytes} {_BYTE}")
        if not blocks:
            self._ranks[rank].open[number] = key

    def _wait(self, rank: int, numbers: Sequence[int]) -> None:
        known = self._ranks[rank].open
        awaited = [number for number in numbers if number in known]
        if len(awaited) > 1 and len(awaited) == len(known):
            self._put(rank, f"waitall {len(awaited)}")
        else:
            for number in awaited:
                self._put(rank, self._awaiting(number, known[number]))
        for number in awaited:
            del known[number]

    def _awaiting(self, number: int, key: _Key | None) -> _Action:
        if key is not None:
            return f"wait {key[0]} {key[1]} {key[2]}"

        def action() -> str:
            found = self._found.pop(number, None)
            return "" if found is None else f"wait {found[0]} {found[1]} {found[2]}"

        return action

    def _collective(self, rank: int, operation: Any) -> None:
        _, _, context, _, background, arguments = operation
        members = self._members[context]
        call = Call(rank=members.index(rank), size=len(members), **fields_of(arguments))
        write = _WRITERS.get(call.op)
        everybody = members == tuple(range(len(self._ranks)))
        if self.collectives and write is not None and everybody and not background:
            self._put(rank, write(call))
            return
        nodes = self._layouts.get(context)
        if context not in self._layouts:
            numbers = [self._nodes[member] for member in members]
            nodes = Nodes(numbers) if len(set(numbers)) < len(numbers) else None
            self._layouts[context] = nodes
        call = call._replace(nonblocking=background, selection=self.selection, nodes=nodes)
        self._schedule(rank, context, schedule_for(call))

    def _schedule(self, rank: int, context: int, schedule: Schedule) -> None:
        """The messages of a schedule."""
        members = self._members[context]
        slots: list[_Key] = []
        for code, peer, nbytes, step in zip(
            schedule.codes, schedule.peers, schedule.sizes, schedule.tags
        ):
            if code in (steps.SLEEP, steps.COMPUTE):
                name = "sleep" if code == steps.SLEEP else "compute"
                self._put(rank, f"{name} {_number(schedule.amounts[peer])}")
            elif code in (steps.WAIT, steps.WAITALL):
                for slot in range(peer, nbytes):
                    source, destination, tag = slots[slot]
                    if source >= 0:
                        self._put(rank, f"wait {source} {destination} {tag}")
                        slots[slot] = (-1, 0, 0)
            elif code in _MESSAGES:
                other = members[peer]
                # One communicator's calls come one after another: they may share their tags.
                tag = self._tag(-1 - context, step % MOST_TAGS)
                self._put(rank, f"{_MESSAGES[code]} {other} {tag} {nbytes} {_BYTE}")
                if code == steps.ISEND:
                    slots.append((rank, other, tag))
                elif code == steps.IRECV:
                    slots.append((other, rank, tag))


_MESSAGES = {
    steps.SEND: "send", steps.ISEND: "isend", steps.RECV: "recv", steps.IRECV: "irecv",
    steps.SHARE: "send",
}  # fmt: skip


def _number(value: float) -> str:
    """A number with all its digits."""
    return repr(value)


def _elements(call: Call, count: int) -> tuple[int, int]:
    """A count, and SMPI's number of the datatype that it counts."""
    kind = _TYPES.get(call.type_size)
    return (count * call.type_size, _BYTE) if kind is None else (count, kind)


def _many(call: Call, counts: Sequence[int] | None) -> tuple[str, int]:
    """Counts of all ranks; none are zeros."""
    known = [0] * call.size if counts is None else counts
    pairs = [_elements(call, count) for count in known]
    return " ".join(str(count) for count, _ in pairs), pairs[0][1]


def _barrier(call: Call) -> str:
    return "barrier"


def _bcast(call: Call) -> str:
    count, kind = _elements(call, call.count)
    return f"bcast {count} {call.root} {kind}"


def _reduce(call: Call) -> str:
    count, kind = _elements(call, call.count)
    return f"reduce {count} 0 {call.root} {kind}"


def _combined(call: Call) -> str:
    count, kind = _elements(call, call.count)
    return f"{call.op} {count} 0 {kind}"


def _rooted(call: Call) -> str:
    count, kind = _elements(call, call.count)
    return f"{call.op} {count} {count} {call.root} {kind} {kind}"


def _symmetric(call: Call) -> str:
    count, kind = _elements(call, call.count)
    return f"{call.op} {count} {count} {kind} {kind}"


def _gatherv(call: Call) -> str:
    count, kind = _elements(call, call.count)
    counts, kinds = _many(call, call.recv_counts)
    return f"gatherv {count} {counts} {call.root} {kind} {kinds}"


def _allgatherv(call: Call) -> str:
    count, kind = _elements(call, call.count)
    counts, kinds = _many(call, call.recv_counts)
    return f"allgatherv {count} {counts} {kind} {kinds}"


def _scatterv(call: Call) -> str:
    count, kind = _elements(call, call.count)
    counts, kinds = _many(call, call.send_counts)
    return f"scatterv {counts} {count} {call.root} {kinds} {kind}"


def _alltoallv(call: Call) -> str:
    sent, kind = _many(call, call.send_counts)
    received, _ = _many(call, call.recv_counts)
    out = sum(call.send_counts or ()) * call.type_size
    back = sum(call.recv_counts or ()) * call.type_size
    return f"alltoallv {out} {sent} {back} {received} {kind} {kind}"


def _reduce_scatter(call: Call) -> str:
    counts = call.recv_counts or (call.count,) * call.size
    written, kind = _many(call, counts)
    return f"reducescatter {written} 0 {kind}"


_WRITERS: dict[str, Callable[[Call], str]] = {
    "barrier": _barrier, "bcast": _bcast, "reduce": _reduce, "allreduce": _combined,
    "scan": _combined, "exscan": _combined, "gather": _rooted, "scatter": _rooted,
    "allgather": _symmetric, "alltoall": _symmetric, "gatherv": _gatherv,
    "allgatherv": _allgatherv, "scatterv": _scatterv, "alltoallv": _alltoallv,
    "alltoallw": _alltoallv, "reduce_scatter": _reduce_scatter,
    "reduce_scatter_block": _reduce_scatter,
}  # fmt: skip
