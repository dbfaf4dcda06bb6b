"""In which order an algorithm combines: follows the messages of all ranks of a reduction.

The result is exact: for every piece of the vector the tree of operations that gives it, so that
an operator that rounds can be applied as the algorithm applies it. Where a message arrives, its
data is combined with what the rank has if a reduction step follows, and replaces it otherwise.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pysmpi.collectives.call import Call
from pysmpi.collectives.notes import (
    ALSO_RESULT,
    CARRIES,
    NOTHING,
    OWN_LAST,
    RECEIVED,
    RESULT_APART,
    WHOLE,
    Notes,
    Remark,
)
from pysmpi.collectives.selection import build
from pysmpi.errors import PysmpiError
from pysmpi.kernel.schedule import (
    IRECV,
    ISEND,
    RECV,
    REDUCE,
    SEND,
    SHARE,
    SSEND,
    WAIT,
    WAITALL,
    Schedule,
)

Piece = tuple[int, int, int]  # first byte, behind the last byte, node
Key = tuple[int, int, int]  # source, destination, tag
NONE = -1
SENDS = frozenset((SEND, SSEND, ISEND, SHARE))
MOVES = SENDS | {RECV, IRECV, WAIT, WAITALL}


class Trees:
    """Trees of operations as numbers: below `ranks` a contribution, else a pair of trees.

    The operand with the lower rank stands on the left. Equal trees have equal numbers.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.pairs: list[tuple[int, int]] = []
        self._known: dict[tuple[int, int], int] = {}
        # Of each tree: its lowest rank, its highest, its size, and whether it keeps the order.
        self._about: list[tuple[int, int, int, bool]] = [(r, r, 1, True) for r in range(ranks)]

    def combine(self, one: int, other: int) -> int:
        """The tree of two."""
        left, right = (one, other) if self._about[one] <= self._about[other] else (other, one)
        found = self._known.get((left, right))
        if found is None:
            found = self._known[left, right] = self.ranks + len(self.pairs)
            self.pairs.append((left, right))
            low, high, size, ordered = self._about[left]
            low2, high2, size2, ordered2 = self._about[right]
            follows = ordered and ordered2 and high < low2
            self._about.append((low, max(high, high2), size + size2, follows))
        return found

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
        """Whether the ranks stand in ascending order from left to right."""
        return self._about[node][3]


class Vector:
    """What a rank has: a tree for each piece of the vector; `NONE` where there is nothing."""

    __slots__ = ("ends", "nodes", "starts")

    def __init__(self, pieces: list[Piece]) -> None:
        self.starts = [first for first, _, _ in pieces]
        self.ends = [last for _, last, _ in pieces]
        self.nodes = [node for _, _, node in pieces]

    def pieces(self, first: int, last: int) -> list[Piece]:
        """The pieces between two bytes."""
        found = []
        i = max(0, bisect_right(self.starts, first) - 1)
        while i < len(self.starts) and self.starts[i] < last:
            a, b = max(first, self.starts[i]), min(last, self.ends[i])
            if a < b:
                found.append((a, b, self.nodes[i]))
            i += 1
        return found

    def store(self, pieces: list[Piece]) -> None:
        """Replace what lies between the first and the last of consecutive pieces."""
        if not pieces:
            return
        first, last = pieces[0][0], pieces[-1][1]
        everything = self.pieces(0, first) + pieces + self.pieces(last, 1 << 62)
        merged: list[Piece] = []
        for a, b, node in everything:
            if merged and merged[-1][1] == a and merged[-1][2] == node:
                merged[-1] = (merged[-1][0], b, node)
            else:
                merged.append((a, b, node))
        self.__init__(merged)  # type: ignore[misc]


@dataclass(slots=True)
class _Message:
    """A message that is received, or will be."""

    key: Key
    first: int
    last: int
    pieces: list[Piece] | None = None
    taken: bool = False


@dataclass(slots=True)
class _Follower:
    """One rank: its steps, its remarks, and its data."""

    rank: int
    schedule: Schedule
    remarks: list[Remark]
    vector: Vector
    whole: tuple[int, int]
    send: int = WHOLE
    receive: int = WHOLE
    pending: deque[_Message] = field(default_factory=deque)
    last: list[Piece] = field(default_factory=list)
    own: Vector | None = None  # set aside
    result: Vector | None = None  # kept apart


@dataclass(frozen=True, slots=True)
class Order:
    """How a reduction comes about: the pieces of each rank's result, and their trees."""

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
        self.messages: dict[Key, deque[list[Piece]]] = defaultdict(deque)
        self.posted: dict[Key, deque[_Message]] = defaultdict(deque)
        self.met: dict[object, dict[int, Vector]] = defaultdict(dict)
        self.rounds: dict[tuple[int, object], int] = defaultdict(int)
        self.moves = 0  # messages sent and taken, meetings entered
        self.followers = []
        for call in calls:
            call.notes = Notes()
            schedule = Schedule()
            build(schedule, call, name)
            first, last = call.span
            own = Vector([(first, last, call.rank)] if first < last else [])
            self.followers.append(
                _Follower(call.rank, schedule, call.notes.of(schedule), own, (first, last))
            )

    def run(self) -> None:
        """Execute all schedules, as far as data goes."""
        moving = deque(self.walk(follower) for follower in self.followers)
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

    def walk(self, f: _Follower) -> Iterator[bool]:
        """Execute the steps of one rank; yields where it must wait."""
        s = f.schedule
        slots: list[_Message | None] = []
        remarks = deque(f.remarks)
        for i in range(len(s) + 1):
            while remarks and remarks[0].at <= i:
                remark = remarks.popleft()
                if remark.op:
                    yield from self.meet(f, remark)
                else:
                    self.heed(f, remark)
            if i == len(s):
                break
            code, peer, nbytes, tag = s.codes[i], s.peers[i], s.sizes[i], s.tags[i]
            if code in MOVES:
                self.flush(f)
            if code in SENDS:
                self.moves += 1
                if f.send == RECEIVED:
                    pieces = f.last
                else:
                    pieces = f.vector.pieces(*self.range(f, f.send, nbytes))
                self.messages[f.rank, peer, tag].append(pieces)
                if code == ISEND:
                    slots.append(None)
            elif code in (RECV, IRECV):
                key = (peer, f.rank, tag)
                message = _Message(key, *self.range(f, f.receive, nbytes))
                self.posted[key].append(message)
                if code == IRECV:
                    slots.append(message)
                else:
                    yield from self.take(f, message)
            elif code in (WAIT, WAITALL):
                for slot in range(peer, nbytes):
                    awaited = slots[slot]
                    slots[slot] = None
                    if awaited is not None:
                        yield from self.take(f, awaited)
            elif code == REDUCE:
                self.reduce(f)
        self.flush(f)

    def take(self, f: _Follower, message: _Message) -> Iterator[bool]:
        """Wait for a message; what has come waits to be combined or stored."""
        sent, receives = self.messages[message.key], self.posted[message.key]
        while message.pieces is None:
            # Receives take messages in the order in which they were posted.
            while receives and sent:
                receives.popleft().pieces = sent.popleft()
            if message.pieces is None:
                yield False
        self.moves += 1
        if not message.taken:
            message.taken = True
            f.pending.append(message)
            f.last = message.pieces

    def range(self, f: _Follower, offset: int, nbytes: int) -> tuple[int, int]:
        """The bytes of the vector that a message carries."""
        if offset == WHOLE:
            return f.whole
        if offset == NOTHING:
            return 0, 0
        return offset, min(offset + nbytes, f.whole[1])

    def heed(self, f: _Follower, remark: Remark) -> None:
        """Follow what the algorithm says."""
        if remark.kind == CARRIES:
            f.whole, f.send, f.receive = remark.span, remark.send, remark.receive
        elif remark.kind == OWN_LAST:
            f.own = f.vector
            first, last = remark.span
            f.vector = Vector([(first, last, NONE)] if first < last else [])
        elif remark.kind == RESULT_APART:
            first, last = remark.span
            node = f.rank if remark.own else NONE
            f.result = Vector([(first, last, node)] if first < last else [])
        elif remark.kind == ALSO_RESULT and f.result is not None:
            f.result.store(self.combined(f.result, f.last))

    def meet(self, f: _Follower, remark: Remark) -> Iterator[bool]:
        """Another collective: wait for all its ranks, and take what it brings."""
        self.flush(f)
        group = (remark.op, remark.ranks)
        number = self.rounds[f.rank, group]
        self.rounds[f.rank, group] = number + 1
        brought = self.met[number, group]
        brought[f.rank] = Vector(f.vector.pieces(0, 1 << 62))
        self.moves += 1
        while len(brought) < len(remark.ranks):
            yield False
        start, n = remark.span[0], remark.nbytes
        if remark.op in ("bcast", "scatter", "scatterv"):
            f.vector.store(brought[remark.ranks[remark.root]].pieces(*self.reach(f, remark)))
        elif remark.op == "allgather":
            for i, rank in enumerate(remark.ranks):
                f.vector.store(brought[rank].pieces(start + i * n, start + (i + 1) * n))
        elif remark.op == "alltoall":
            mine = remark.ranks.index(f.rank)
            first, last = start + mine * n, start + (mine + 1) * n
            for rank in remark.ranks:
                pieces = brought[rank].pieces(first, last)
                f.pending.append(_Message((rank, f.rank, 0), first, last, pieces))
            f.vector.store([(a, b, NONE) for a, b, _ in f.vector.pieces(first, last)])

    def reach(self, f: _Follower, remark: Remark) -> tuple[int, int]:
        """What a broadcast or scatter may change."""
        return remark.span if remark.op == "bcast" else (remark.span[0], 1 << 62)

    def combined(self, vector: Vector, pieces: list[Piece]) -> list[Piece]:
        """Pieces combined with what a vector has there."""
        results = []
        for first, last, node in pieces:
            for a, b, other in vector.pieces(first, last):
                both = node if other == NONE else other
                if NONE not in (node, other):
                    both = self.trees.combine(node, other)
                results.append((a, b, both))
        return results

    def reduce(self, f: _Follower) -> None:
        """A reduction step: combine what has come with what is there."""
        if f.pending:
            first = f.pending.popleft()
            assert first.pieces is not None
            empty = any(node == NONE for _, _, node in f.vector.pieces(first.first, first.last))
            f.vector.store(self.combined(f.vector, first.pieces))
            if not empty:
                return
            # That was the beginning; the step combines it with the next one, or the own vector.
            if f.pending:
                self.reduce(f)
                return
        if f.own is not None:
            own, f.own = f.own, None
            f.vector.store(self.combined(f.vector, own.pieces(0, 1 << 62)))

    def flush(self, f: _Follower) -> None:
        """What has come without a reduction replaces what was there."""
        while f.pending:
            message = f.pending.popleft()
            assert message.pieces is not None
            f.vector.store(message.pieces)


def follow(calls: list[Call], name: str | None) -> Order:
    """In which order the ranks' results come about, by an algorithm or the calls' selection.

    `calls` are those of all ranks. Raises PysmpiError where the algorithm does not combine every
    rank once: it needs remarks (`Call.carries`).
    """
    run = _Run([replace(call, nodes=call.nodes) for call in calls], name)
    run.run()
    results = []
    for call, f in zip(calls, run.followers, strict=True):
        first, last, size = _wanted(call)
        vector = f.vector if f.result is None else f.result
        pieces = vector.pieces(first, last)
        ranks = call.rank + 1 if call.op == "scan" else call.rank if call.op == "exscan" else size
        if (call.op == "reduce" and call.rank != call.root) or ranks == 0:
            pieces = []
        for _, _, node in pieces:
            if node == NONE or not run.trees.is_whole(node, 0, ranks):
                raise PysmpiError(
                    f"{call.op}: the algorithm does not say which parts of the vector its "
                    "messages carry (Call.carries), so the order of its reductions is unknown"
                )
        results.append(pieces)
    return Order(run.trees, results)


def _wanted(call: Call) -> tuple[int, int, int]:
    """The bytes of its vector that a rank's result takes, and the number of ranks."""
    first, last = call.span
    if call.op == "reduce_scatter_block":
        first += call.rank * call.nbytes
        last = first + call.nbytes
    elif call.op == "reduce_scatter":
        counts = call.recv_counts or ()
        first += sum(counts[: call.rank]) * call.type_size
        last = first + counts[call.rank] * call.type_size
    return first, last, call.size


_orders: OrderedDict[object, Order] = OrderedDict()
KEPT = 64


def forget() -> None:
    """Forget the orders that are kept: they hold the machine of the run that asked for them."""
    _orders.clear()


def order_of(call: Call) -> Order:
    """`follow` for a call as one rank knows it, by its selection; kept for the next time."""
    key = call.key()
    found = _orders.get(key)
    if found is None:
        calls = [replace(call, rank=rank) for rank in range(call.size)]
        found = _orders[key] = follow(calls, None)
        if len(_orders) > KEPT:
            _orders.popitem(last=False)
    return found
