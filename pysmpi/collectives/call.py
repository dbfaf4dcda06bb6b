"""One collective call, as one rank sees it: what an algorithm builds a schedule from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pysmpi.collectives.layout import Layout, Nodes
from pysmpi.collectives.notes import (
    ALSO_RESULT,
    CARRIES,
    COLLECTIVE,
    OWN_LAST,
    RESULT_APART,
    WHOLE,
    Notes,
    Remark,
)
from pysmpi.kernel import schedule as steps
from pysmpi.kernel.schedule import Schedule

if TYPE_CHECKING:
    from pysmpi.collectives.selection import Selection

OPERATIONS = (
    "barrier", "bcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv",
    "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce_scatter",
    "reduce_scatter_block", "scan", "exscan",
    "neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv",
    "neighbor_alltoallw",
)  # fmt: skip

ROOTED = frozenset({"bcast", "reduce", "gather", "gatherv", "scatter", "scatterv"})
REDUCING = frozenset(
    {"reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"}
)
_NOTHING_DONE: frozenset[str] = frozenset()


@dataclass(slots=True)
class Call:
    """What one rank knows of a collective call.

    `count` is a number of elements of `type_size` bytes. It counts, by operation:

    - bcast, reduce, allreduce, scan, exscan: the whole vector;
    - gather, scatter, allgather, alltoall, reduce_scatter_block and their neighbourhood forms:
      one block, that is what one rank contributes for one other;
    - gatherv, scatterv, allgatherv: the block of the calling rank.

    `send_counts` and `recv_counts` hold one count a rank (a neighbour, for the neighbourhood
    forms) where the standard's v and w forms have them at this rank: `recv_counts` for gatherv
    (root only), allgatherv, reduce_scatter and alltoallv/w, `send_counts` for scatterv (root
    only) and alltoallv/w. For the w forms counts are bytes and `type_size` is 1.

    `nonblocking` calls may be served by other algorithms than blocking ones.
    `nodes` numbers the node of each rank of the communicator (`None`: each rank on its own).
    `slots` is the place of each rank on the machine, where the selection tries algorithms on it.
    `ready` names the node-level communicators that exist already; see `prepare_nodes`.
    `parts` names the algorithms of the levels of a two-level algorithm, leaders' first, where
    they were chosen (`NAME:LEADERS,NODE`).
    `sources` and `destinations` are the neighbours, for the neighbourhood operations.
    `notes` takes what the algorithm says about its data, where somebody follows that; `start` is
    the byte of the vector of the outermost call at which that of this call begins.
    """

    op: str
    rank: int
    size: int
    root: int = 0
    count: int = 0
    type_size: int = 1
    send_counts: tuple[int, ...] | None = None
    recv_counts: tuple[int, ...] | None = None
    commutative: bool = True
    in_place: bool = False
    nonblocking: bool = False
    nodes: Nodes | None = None
    slots: Nodes | None = None
    selection: Selection | None = None
    ready: frozenset[str] = _NOTHING_DONE
    level: str = ""
    parts: tuple[str, ...] = ()
    sources: tuple[int, ...] = ()
    destinations: tuple[int, ...] = ()
    notes: Notes | None = None
    start: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the vector or of one block (see the class)."""
        return self.count * self.type_size

    @property
    def relative(self) -> int:
        """The rank counted from the root."""
        return (self.rank - self.root) % self.size

    @property
    def layout(self) -> Layout:
        """How the ranks of the communicator lie on nodes."""
        nodes = self.nodes
        if nodes is None:
            return Layout.spread(self.size)
        return Layout.of(nodes)

    @property
    def on_node_level(self) -> bool:
        """Whether the communicator is itself the ranks of one node, or the nodes' leaders."""
        return bool(self.level)

    def key(self) -> tuple[object, ...]:
        """What a schedule depends on besides the rank."""
        return (
            self.op, self.size, self.root, self.count, self.type_size, self.send_counts,
            self.recv_counts, self.commutative, self.in_place, self.nonblocking, self.nodes,
            self.slots, self.selection, self.ready, self.level, self.parts, self.sources,
            self.destinations,
        )  # fmt: skip

    def actual(self, peer: int) -> int:
        """The rank of the communicator at distance `peer` from the root."""
        return (peer + self.root) % self.size

    def part(self, index: int, otherwise: str | None) -> str | None:
        """The algorithm that was chosen for a level, or `otherwise`."""
        return (self.parts[index] if index < len(self.parts) else "") or otherwise

    def call(self, s: Schedule, op: str, algorithm: str | None = None, **changes: Any) -> None:
        """Append another collective of the same communicator, through the selection.

        `changes` replaces fields of the call. With `algorithm`, that one runs whatever the
        selection says.
        """
        from pysmpi.collectives.selection import build  # selections know algorithms

        inner = replace(self, op=op, parts=(), **changes)
        if inner.notes is not None and op not in REDUCING:
            inner.note_collective(s)
            return
        inner.carries(s)
        build(s, inner, algorithm)
        self.ready = inner.ready
        self.carries(s)

    def call_on(
        self,
        s: Schedule,
        ranks: Sequence[int],
        op: str,
        algorithm: str | None = None,
        level: str | None = None,
        **changes: Any,
    ) -> None:
        """Append a collective of the ranks in `ranks`, to which the calling rank belongs.

        `changes` is said in ranks of the smaller group. `level` marks a communicator that
        belongs to the two-level structure ("leaders" or "node").
        """
        from pysmpi.collectives.selection import build

        nodes, slots = self.nodes, self.slots
        inner = replace(
            self,
            op=op,
            rank=ranks.index(self.rank),
            size=len(ranks),
            nodes=None if nodes is None else Nodes(nodes[r] for r in ranks),
            slots=None if slots is None else Nodes(slots[r] for r in ranks),
            level=self.level if level is None else f"{self.level}/{level}",
            parts=(),
            **changes,
        )
        part = Schedule()
        if inner.notes is not None and op not in REDUCING:
            inner.note_collective(part)
        else:
            inner.carries(part)
            build(part, inner, algorithm)
            self.ready = inner.ready
        append(s, part, ranks, self.notes)
        self.carries(s)

    def on_node(self, s: Schedule, op: str, algorithm: str | None = None, **changes: Any) -> None:
        """Append a collective of the ranks of this node; local rank 0 is its root."""
        local = self.layout.local[self.rank]
        if len(local) > 1:
            self.call_on(s, local, op, algorithm, "node", **{"root": 0, **changes})

    def on_leaders(
        self, s: Schedule, op: str, algorithm: str | None = None, **changes: Any
    ) -> None:
        """Append a collective of the leaders of nodes, if this rank is one of them."""
        if self.leads and len(self.layout.leaders) > 1:
            self.call_on(s, self.layout.leaders, op, algorithm, "leaders", **{"root": 0, **changes})

    @property
    def leads(self) -> bool:
        """Whether the rank is the leader of its node."""
        return self.layout.local[self.rank][0] == self.rank

    def prepare_nodes(self, s: Schedule) -> None:
        """Append what it takes to learn the two-level structure, the first time it is needed.

        MPI libraries build the communicators of a node and of the leaders when a communicator
        is first used with a node-aware algorithm, and exchange messages for it.
        """
        if self.level not in self.ready and self.notes is None:
            self.ready = self.ready | {self.level}
            self.call(s, "smp_setup")

    # What follows is for reductions, see `notes`.

    @property
    def span(self) -> tuple[int, int]:
        """The bytes that the vector of a reduction takes in that of the outermost call."""
        if self.op == "reduce_scatter":
            return self.start, self.start + sum(self.recv_counts or ()) * self.type_size
        blocks = self.size if self.op == "reduce_scatter_block" else 1
        return self.start, self.start + blocks * self.nbytes

    def carries(self, s: Schedule, send: int = WHOLE, receive: int = WHOLE) -> None:
        """What is sent (received) from now on begins at this byte of the call's vector.

        `WHOLE`: it is the whole vector, or so much of it as the peer needs to combine. So it is
        unless an algorithm says otherwise, which suits trees, and halving and doubling.
        `NOTHING`: it is no data. `RECEIVED`: what has come last is sent on as it came.
        """
        if self.notes is not None:
            begin = self.start
            remark = Remark(
                len(s), CARRIES, self.span,
                send + begin if send >= 0 else send,
                receive + begin if receive >= 0 else receive,
            )  # fmt: skip
            self.notes.add(s, remark)

    def own_last(self, s: Schedule) -> None:
        """Reductions begin with what has been received; one without a message adds the own."""
        if self.notes is not None:
            self.notes.add(s, Remark(len(s), OWN_LAST, self.span))

    def result_apart(self, s: Schedule, own: bool) -> None:
        """The result is not what is sent (scan, exscan); it begins with the own vector, or empty.

        What belongs to it is said by `also_result`.
        """
        if self.notes is not None:
            self.notes.add(s, Remark(len(s), RESULT_APART, self.span, own=own))

    def also_result(self, s: Schedule) -> None:
        """What has just been received belongs to the result too."""
        if self.notes is not None:
            self.notes.add(s, Remark(len(s), ALSO_RESULT, self.span))

    def note_collective(self, s: Schedule) -> None:
        """Another collective moves data here, in its own way."""
        assert self.notes is not None
        remark = Remark(
            len(s), COLLECTIVE, op=self.op, ranks=tuple(range(self.size)), root=self.root,
            nbytes=self.nbytes, span=self.span,
        )  # fmt: skip
        self.notes.add(s, remark)


_PEER_CODES = frozenset(
    (steps.SEND, steps.ISEND, steps.SSEND, steps.RECV, steps.IRECV, steps.SHARE)
)
_TIMED_CODES = frozenset((steps.SLEEP, steps.REDUCE, steps.COPY, steps.COMPUTE))


def append(
    s: Schedule, part: Schedule, ranks: Sequence[int], notes: Notes | None = None
) -> None:
    """Append a schedule of the group `ranks` to `s`, whose peers are ranks of the whole."""
    if notes is not None:
        notes.moved(part, s, len(s), ranks)
    slot, amount = s.slots, len(s.amounts)
    for code, peer, size, tag in zip(part.codes, part.peers, part.sizes, part.tags, strict=True):
        if code in _PEER_CODES:
            peer = ranks[peer]
        elif code in _TIMED_CODES:
            peer += amount
        else:
            peer += slot
            size += slot
        s._step(code, peer, size, tag)
    s.slots += part.slots
    s.amounts.extend(part.amounts)
