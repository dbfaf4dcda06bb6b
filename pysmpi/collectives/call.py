"""One collective call on one rank: the input of an algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pysmpi.collectives.layout import NodeLayout, Nodes
from pysmpi.kernel.schedule import RECEIVE_BUFFER, SEND_BUFFER

# The operations that programs call, with a line on each.
OPERATIONS = {
    "barrier": "no rank leaves before all have entered",
    "bcast": "all get the root's vector",
    "reduce": "the root gets the combination of all vectors",
    "allreduce": "all get the combination of all vectors",
    "gather": "the root gets a block from each rank",
    "gatherv": "gather of unequal blocks",
    "scatter": "each rank gets a block from the root",
    "scatterv": "scatter of unequal blocks",
    "allgather": "all get a block from each rank",
    "allgatherv": "allgather of unequal blocks",
    "alltoall": "each rank gets a block from each rank",
    "alltoallv": "alltoall of unequal blocks",
    "alltoallw": "alltoall of unequal blocks with a datatype each",
    "reduce_scatter": "each rank gets its block of the combination of all vectors",
    "reduce_scatter_block": "reduce_scatter of equal blocks",
    "scan": "each rank gets the combination of its vector and those of lower ranks",
    "exscan": "each rank gets the combination of the vectors of lower ranks",
    "neighbor_allgather": "each rank gets a block from each neighbour",
    "neighbor_allgatherv": "neighbor_allgather of unequal blocks",
    "neighbor_alltoall": "each rank gets a block made for it from each neighbour",
    "neighbor_alltoallv": "neighbor_alltoall of unequal blocks",
    "neighbor_alltoallw": "neighbor_alltoall of unequal blocks with a datatype each",
}

ROOTED = frozenset({"bcast", "reduce", "gather", "gatherv", "scatter", "scatterv"})
REDUCING = frozenset(
    {"reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"}
)
_NOTHING_DONE: frozenset[str] = frozenset()


class Call(NamedTuple):
    """The information of one rank about a collective call.

    `count` is a number of elements of `type_size` bytes. Its meaning depends on the operation:

    - bcast, reduce, allreduce, scan, exscan: the whole vector;
    - gather, scatter, allgather, alltoall, reduce_scatter_block and their neighbourhood forms:
      one block, the contribution of one rank for one other;
    - gatherv, scatterv, allgatherv: the block of the calling rank.

    `send_counts` and `recv_counts` hold one count for each rank (or neighbour, for the
    neighbourhood forms) if the standard's v and w forms have them at this rank: `recv_counts` for
    gatherv (root only), allgatherv, reduce_scatter and alltoallv/w, `send_counts` for scatterv
    (root only) and alltoallv/w. For the w forms counts are bytes and `type_size` is 1.

    `nonblocking` calls may use other algorithms than blocking ones.
    `nodes` numbers the node of each rank of the communicator (`None`: one node for each rank).
    `slots` is the place of each rank on the machine, if the selection tries algorithms on it.
    `ready` names the node-level communicators that exist before the call; see
    `Builder.prepare_nodes`.
    `parts` names the algorithms of the levels of a two-level algorithm, leaders' first, if they
    were chosen (`NAME:LEADERS,NODE`).
    `sources` and `destinations` are the neighbours, for the neighbourhood operations.
    `input` and `output` are the addresses of the data at the beginning of an algorithm (see
    `pysmpi.collectives.buffers`).

    Calls are equal if they are one object; `key` compares them.
    """

    op: str
    rank: int
    size: int
    root: int = 0
    count: int = 0  # type: ignore[assignment]
    type_size: int = 1
    send_counts: tuple[int, ...] | None = None
    recv_counts: tuple[int, ...] | None = None
    commutative: bool = True
    in_place: bool = False
    nonblocking: bool = False
    nodes: Nodes | None = None
    slots: Nodes | None = None
    selection: Any = None
    ready: frozenset[str] = _NOTHING_DONE
    level: str = ""
    parts: tuple[str, ...] = ()
    sources: tuple[int, ...] = ()
    destinations: tuple[int, ...] = ()
    input: int = SEND_BUFFER
    output: int = RECEIVE_BUFFER

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the vector or of one block (see the class)."""
        return self.count * self.type_size

    @property
    def relative(self) -> int:
        """The rank counted from the root."""
        return (self.rank - self.root) % self.size

    @property
    def layout(self) -> NodeLayout:
        """The placement of the ranks of the communicator on nodes."""
        nodes = self.nodes
        if nodes is None:
            return NodeLayout.spread(self.size)
        return NodeLayout.of(nodes)

    @property
    def on_node_level(self) -> bool:
        """Whether the communicator is itself the ranks of one node, or the nodes' leaders."""
        return bool(self.level)

    def but(self, **changes: Any) -> Call:
        """The call with other values of some fields: a quick `_replace`."""
        values = list(self)
        for name, value in changes.items():
            values[_PLACES[name]] = value
        result: Call = _new(Call, values)
        return result

    def key(self) -> tuple[object, ...]:
        """The key of a schedule, besides the rank."""
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

    @property
    def leads(self) -> bool:
        """Whether the rank is the leader of its node."""
        return self.layout.local[self.rank][0] == self.rank


_new: Any = tuple.__new__
_PLACES = {name: place for place, name in enumerate(Call._fields)}


def fields_of(arguments: Mapping[str, object]) -> dict[str, Any]:
    """The fields of a `Call` from a recording, where tuples have become lists."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in arguments.items()
    }


def arguments_of(call: Call) -> dict[str, Any]:
    """The arguments of a collective call that differ from their defaults, as plain data."""
    result: dict[str, Any] = {"op": call.op}
    if call.count:
        result["count"] = call.count
    if call.type_size != 1:
        result["type_size"] = call.type_size
    if call.root:
        result["root"] = call.root
    if call.send_counts is not None:
        result["send_counts"] = call.send_counts
    if call.recv_counts is not None:
        result["recv_counts"] = call.recv_counts
    if not call.commutative:
        result["commutative"] = False
    if call.in_place:
        result["in_place"] = True
    if call.sources:
        result["sources"] = call.sources
    if call.destinations:
        result["destinations"] = call.destinations
    return result
