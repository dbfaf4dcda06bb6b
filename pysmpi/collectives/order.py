"""The order in which an algorithm combines, from the steps of all ranks of a reduction.

The schedules contain the bytes that each step sends, receives and combines. They determine, for
every piece of the result, the tree of operations. An operator that rounds can then be applied in
the order of the algorithm.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pysmpi.collectives.building import named_schedules
from pysmpi.collectives.call import Call
from pysmpi.errors import PysmpiError
from pysmpi.kernel.schedule import (
    COPY,
    IRECV,
    ISEND,
    MOVE,
    NOTHING,
    RECEIVE_BUFFER,
    RECV,
    REDUCE,
    SEND,
    SEND_BUFFER,
    SHARE,
    UNNAMED,
    WAIT,
    WAITALL,
    Schedule,
)
from pysmpi.python.records import record
from pysmpi.text import manual

Piece = tuple[int, int, int]  # first byte, behind the last byte, node
Key = tuple[int, int, int]  # source, destination, tag
SENDS = frozenset((SEND, ISEND, SHARE))


def pieces_of(place: object, nbytes: int, what: str) -> list[tuple[int, int]]:
    """(address, bytes) of the pieces of a step's data; empty for steps without data.

    PysmpiError if the algorithm does not give them; `what` is the step.
    """
    if nbytes == 0 or place == NOTHING:
        return []
    if place is None or place == UNNAMED:
        raise PysmpiError(
            f"{what}: the algorithm does not name its bytes; give their place as `at`, "
            f"see {manual('Write a collective algorithm')}"
        )
    if isinstance(place, int):
        return [(place, nbytes)]
    pieces: Any = place() if callable(place) else place
    result: list[tuple[int, int]] = list(pieces)
    if sum(n for _, n in result) != nbytes:
        raise PysmpiError(f"{what}: its pieces have {sum(n for _, n in result)} of {nbytes} bytes")
    return result


class Trees:
    """Trees of operations as numbers: below `ranks` a contribution, else a pair of trees.

    Equal trees have equal numbers.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.pairs: list[tuple[int, int]] = []
        self._known: dict[tuple[int, int], int] = {}
        # For each tree: its lowest rank, its highest, its size, and whether it keeps the order.
        self._about: list[tuple[int, int, int, bool]] = [(r, r, 1, True) for r in range(ranks)]

    def combine(self, left: int, right: int) -> int:
        """The tree of two operands."""
        result = self._known.get((left, right))
        if result is None:
            result = self._known[left, right] = self.ranks + len(self.pairs)
            self.pairs.append((left, right))
            low, high, size, ordered = self._about[left]
            low2, high2, size2, ordered2 = self._about[right]
            follows = ordered and ordered2 and high < low2
            self._about.append((min(low, low2), max(high, high2), size + size2, follows))
        return result

    def is_whole(self, node: int, first: int, last: int) -> bool:
        """Whether the tree has every rank from `first` up to `last`, not included, once."""
        pending, seen = [node], set()
        while pending:
            node = pending.pop()
            if node < self.ranks:
                if node in seen or not first <= node < last:
                    return False
                seen.add(node)
            else:
                pending.extend(self.pairs[node - self.ranks])
        return len(seen) == last - first

    def in_order(self, node: int) -> bool:
        """Whether the ranks are in ascending order from left to right."""
        return self._about[node][3]


Extent = tuple[int, int, int, int]  # first address, behind the last, node, address of byte 0
Stream = list[tuple[int, int, int, int]]  # first byte, behind the last, node, byte of the vector


class Memory:
    """The data of a rank: by address, pieces of the vector and their trees."""

    __slots__ = ("extents", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.extents: list[Extent] = []

    def read(self, pieces: Sequence[tuple[int, int]]) -> Stream:
        """The data at some places, as one stream."""
        result: Stream = []
        at = 0
        for first, nbytes in pieces:
            last = first + nbytes
            i = max(0, bisect_right(self.starts, first) - 1)
            while i < len(self.starts) and self.starts[i] < last:
                begin, end, node, origin = self.extents[i]
                a, b = max(first, begin), min(last, end)
                if a < b:
                    result.append((at + a - first, at + b - first, node, a - origin))
                i += 1
            at += nbytes
        return result

    def write(self, pieces: Sequence[tuple[int, int]], stream: Stream) -> None:
        """Store a stream at some places."""
        at = 0
        for first, nbytes in pieces:
            inside: list[Extent] = []
            for a, b, node, byte in stream:
                low, high = max(a, at), min(b, at + nbytes)
                if low < high:
                    place = first + low - at
                    inside.append((place, place + high - low, node, place - (byte + low - a)))
            self._replace(first, first + nbytes, inside)
            at += nbytes

    def _replace(self, first: int, last: int, inside: list[Extent]) -> None:
        i = bisect_left(self.starts, first)
        before: list[Extent] = []
        if i > 0 and self.extents[i - 1][1] > first:
            i -= 1
            begin, _, node, origin = self.extents[i]
            before.append((begin, first, node, origin))
        j = i
        behind: list[Extent] = []
        while j < len(self.starts) and self.starts[j] < last:
            _, end, node, origin = self.extents[j]
            if end > last:
                behind.append((last, end, node, origin))
            j += 1
        fresh = _joined([*before, *inside, *behind])
        self.extents[i:j] = fresh
        self.starts[i:j] = [extent[0] for extent in fresh]


def _joined(extents: list[Extent]) -> list[Extent]:
    """Neighbours that are one piece as one."""
    joined: list[Extent] = []
    for extent in extents:
        if joined and joined[-1][1] == extent[0] and joined[-1][2:] == extent[2:]:
            joined[-1] = (joined[-1][0], *extent[1:])
        else:
            joined.append(extent)
    return joined


@dataclass(slots=True)
class _Message:
    """A message that is received, or will be."""

    key: Key
    place: list[tuple[int, int]]
    stream: Stream | None = None
    stored: bool = False


@record(frozen=True)
class Order:
    """The computation of a reduction: the pieces of each rank's result, and their trees."""

    trees: Trees
    results: list[list[Piece]]

    def nodes(self) -> set[tuple[int, int, int]]:
        """All different pieces of results."""
        return {piece for pieces in self.results for piece in pieces}

    def in_order(self) -> bool:
        """Whether all trees keep the order of ranks, as operators that do not commute need."""
        return all(self.trees.in_order(node) for _, _, node in self.nodes())


class _Run:
    """Follows all ranks of one call."""

    def __init__(self, calls: list[Call], name: str | None) -> None:
        self.trees = Trees(len(calls))
        self.messages: dict[Key, deque[Stream]] = defaultdict(deque)
        self.posted: dict[Key, deque[_Message]] = defaultdict(deque)
        self.moves = 0  # messages sent and taken
        self.op = calls[0].op
        self.memories = [Memory() for _ in calls]
        for call, memory in zip(calls, self.memories, strict=True):
            nbytes = vector_bytes(call)
            for begin in (SEND_BUFFER, RECEIVE_BUFFER):
                if nbytes and (begin == SEND_BUFFER or call.in_place):
                    memory.write([(begin, nbytes)], [(0, nbytes, call.rank, 0)])
        # Finding the nodes moves none of the data.
        self.schedules = named_schedules(calls, name, setup=False)

    def run(self) -> None:
        """Execute all schedules, as far as data goes."""
        moving = deque(self.walk(rank) for rank in range(len(self.schedules)))
        idle = 0
        while moving:
            walk = moving.popleft()
            before = self.moves
            if next(walk, None) is not None:
                moving.append(walk)
                idle = 0 if self.moves > before else idle + 1
                if idle > len(moving):
                    raise PysmpiError("the schedules of a reduction do not end")
            else:
                idle = 0

    def walk(self, rank: int) -> Iterator[bool]:
        """Execute the steps of one rank; yield when it must wait."""
        s: Schedule = self.schedules[rank]
        memory = self.memories[rank]
        assert s.places is not None
        slots: list[_Message | None] = []
        for code, peer, nbytes, tag, place in zip(
            s.codes, s.peers, s.sizes, s.tags, s.places, strict=True
        ):
            if code in SENDS:
                self.moves += 1
                stream = memory.read(self.pieces(rank, place, nbytes))
                self.messages[rank, peer, tag].append(stream)
                if code == ISEND:
                    slots.append(None)
            elif code in (RECV, IRECV):
                key = (peer, rank, tag)
                message = _Message(key, self.pieces(rank, place, nbytes))
                self.posted[key].append(message)
                if code == IRECV:
                    slots.append(message)
                else:
                    yield from self.take(memory, message)
            elif code in (WAIT, WAITALL):
                for slot in range(peer, nbytes):
                    awaited = slots[slot]
                    slots[slot] = None
                    if awaited is not None:
                        yield from self.take(memory, awaited)
            elif code == REDUCE:
                assert isinstance(place, tuple)
                size = int(s.amounts[peer])
                left, right, into = (self.pieces(rank, one, size) for one in place)
                memory.write(into, self.combined(memory.read(left), memory.read(right)))
            elif code in (COPY, MOVE):
                assert isinstance(place, tuple)
                size = nbytes if code == MOVE else int(s.amounts[peer])
                source, dest = (self.pieces(rank, one, size) for one in place)
                memory.write(dest, memory.read(source))

    def pieces(self, rank: int, place: object, nbytes: int) -> list[tuple[int, int]]:
        """The pieces of a step's data."""
        return pieces_of(place, nbytes, f"{self.op}, a step of rank {rank}")

    def take(self, memory: Memory, message: _Message) -> Iterator[bool]:
        """Wait for a message and store its data."""
        sent, receives = self.messages[message.key], self.posted[message.key]
        while message.stream is None:
            # Receives match messages in the order of their posting.
            while receives and sent:
                receives.popleft().stream = sent.popleft()
            if message.stream is None:
                yield False
        self.moves += 1
        if not message.stored:
            message.stored = True
            memory.write(message.place, message.stream)

    def combined(self, left: Stream, right: Stream) -> Stream:
        """Two streams, combined where both have the same piece of the vector."""
        result: Stream = []
        i = j = 0
        while i < len(left) and j < len(right):
            a, b, node, byte = left[i]
            c, d, other, byte2 = right[j]
            low, high = max(a, c), min(b, d)
            if low < high and byte + low - a == byte2 + low - c:
                both = self.trees.combine(node, other)
                result.append((low, high, both, byte + low - a))
            if b <= d:
                i += 1
            if d <= b:
                j += 1
        return result


def vector_bytes(call: Call) -> int:
    """The bytes of the vector that every rank of a reduction contributes."""
    if call.op == "reduce_scatter":
        return sum(call.recv_counts or ()) * call.type_size
    return call.nbytes * (call.size if call.op == "reduce_scatter_block" else 1)


def follow(calls: list[Call], name: str | None) -> Order:
    """The order of the ranks' results, by an algorithm or the calls' selection.

    `calls` are those of all ranks. Raises PysmpiError if the algorithm does not give the bytes of
    its steps, or does not combine every rank once.
    """
    run = _Run(calls, name)
    run.run()
    results = []
    for call, memory in zip(calls, run.memories, strict=True):
        first, last, ranks = _wanted(call)
        stream = memory.read([(RECEIVE_BUFFER, last - first)]) if ranks else []
        pieces = []
        at = first
        for a, b, node, byte in stream:
            if first + a != at or byte != at or not run.trees.is_whole(node, 0, ranks):
                break
            at = first + b
            pieces.append((first + a, at, node))
        if ranks and at != last:
            raise PysmpiError(
                f"{call.op}: by its schedules, rank {call.rank} does not end with the "
                f"contributions of all ranks in byte {at} of the vector"
            )
        results.append(pieces)
    return Order(run.trees, results)


def _wanted(call: Call) -> tuple[int, int, int]:
    """The bytes of the vector that a rank's result has, and the number of ranks in it."""
    first, last, ranks = 0, call.nbytes, call.size
    if call.op == "reduce_scatter_block":
        first = call.rank * call.nbytes
        last = first + call.nbytes
    elif call.op == "reduce_scatter":
        counts = call.recv_counts or ()
        first = sum(counts[: call.rank]) * call.type_size
        last = first + counts[call.rank] * call.type_size
    elif call.op == "scan":
        ranks = call.rank + 1
    elif call.op == "exscan":
        ranks = call.rank
    elif call.op == "reduce" and call.rank != call.root:
        ranks = 0
    return first, last, ranks


_orders: OrderedDict[object, Order] = OrderedDict()
KEPT = 64


def forget() -> None:
    """Clear the cache of orders: they refer to the machine of their run."""
    _orders.clear()


def order_of(call: Call) -> Order:
    """`follow` for the call of one rank, by its selection; cached."""
    key = call.key()
    result = _orders.get(key)
    if result is None:
        calls = [call._replace(rank=rank) for rank in range(call.size)]
        result = _orders[key] = follow(calls, None)
        if len(_orders) > KEPT:
            _orders.popitem(last=False)
    return result
