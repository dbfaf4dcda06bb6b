"""Neighbourhood collective calls (MPI 4.1, section 8.6), as a mixin of `Topocomm`.

The neighbours are those of the communicator's `inoutedges`. Blocks for `PROC_NULL`, beyond the edge
of a grid, are neither sent nor written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pysmpi.mpi.base.constants import CART
from pysmpi.mpi.base.info import INFO_NULL, Info
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.base.running import calling_rank
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.pickling import dumped, pickle
from pysmpi.mpi.buffers.spellings import Blocks, MessageRegion, held, reduction
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.collective.arguments import blocks_of, blocks_w, count_of, counts_of
from pysmpi.mpi.collective.contribution import Contribution, WithoutData, run
from pysmpi.mpi.collective.moving import saved, transfer
from pysmpi.mpi.collective.nonblocking import begin, keep
from pysmpi.mpi.collective.objects import SIZE_BYTES, dump_each
from pysmpi.mpi.collective.schedules import ScheduledCall, scheduled_call
from pysmpi.mpi.groups.communicator import Communicator, located
from pysmpi.mpi.point_to_point.persistent_requests import Prequest
from pysmpi.mpi.point_to_point.requests import Request

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, BufSpecW


class Neighbors:
    """The neighbours of one rank.

    `sources` and `targets` may hold PROC_NULL; `heard` and `told` are the positions of the other
    neighbours.
    """

    __slots__ = ("inputs", "sources", "targets", "outputs")

    def __init__(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        self.sources = tuple(sources)
        self.targets = tuple(targets)
        self.inputs = [i for i, rank in enumerate(sources) if rank >= 0]
        self.outputs = [i for i, rank in enumerate(targets) if rank >= 0]

    def match(self, i: int, grid: bool, me: int, other: Neighbors) -> int:
        """The position among the targets of source i at which it sends to source position i.

        On a grid, data that is sent in one direction arrives from the opposite one, also if both
        neighbours are the same process. On a graph, several edges between two processes are used in
        order.
        """
        if grid:
            return i ^ 1
        source = self.sources[i]
        before = self.sources[:i].count(source)
        position = -1
        for _ in range(before + 1):
            position = other.targets.index(me, position + 1)
        return position


NEIGHBORS: StateSlot[Communicator, dict[int, Neighbors]] = StateSlot(Communicator, dict)  # by rank


def neighbors_of(comm: Any, communicator: Communicator, me: int) -> Neighbors:
    """The neighbours of the calling rank."""
    table = NEIGHBORS.of(communicator)
    neighbors = table.get(me)
    if neighbors is None:
        neighbors = table[me] = Neighbors(*comm.inoutedges)
    return neighbors


class Neighborhood(Contribution):
    """The data of a rank for its neighbours: messages, or pickled objects.

    `outgoing` is one message for all targets, or has one for each. `incoming` has one for each
    source; it is None for objects, which are stored in `objects`.
    """

    __slots__ = ("grid", "incoming", "copies", "neighbors", "objects", "outgoing")

    def __init__(
        self,
        rank: Rank,
        communicator: Communicator,
        me: int,
        scheduled: ScheduledCall,
        neighbors: Neighbors,
        outgoing: object,
        incoming: Blocks | None,
    ) -> None:
        super().__init__(rank, communicator, me, scheduled)
        self.neighbors = neighbors
        self.grid = communicator.topology.kind == CART
        self.outgoing = outgoing
        self.incoming = incoming
        self.objects: list[Any] = []
        self.copies: dict[int, object] | None = None

    def again(self) -> Contribution:
        """The contribution to the next start of a persistent call."""
        repeated = Neighborhood(
            self.rank,
            self.communicator,
            self.me,
            self.scheduled,
            self.neighbors,
            self.outgoing,
            self.incoming,
        )
        return self._as_before(repeated)

    def outgoing_at(self, position: int) -> object:
        """The data of this rank for the target at a position."""
        if self.copies is not None:
            return self.copies.get(position)
        outgoing = self.outgoing
        if outgoing.__class__ is Blocks:
            return outgoing.block(position)
        return outgoing[position] if outgoing.__class__ is list else outgoing

    def collect(self) -> None:
        """Copy the data of each source."""
        neighbors, incoming = self.neighbors, self.incoming
        if incoming is None:
            self.objects = [b""] * len(neighbors.sources)
        for i in neighbors.inputs:
            if incoming is not None and incoming.counts[i] == 0:
                continue
            contribution = self.source(neighbors.sources[i])
            if contribution is None:
                return
            position = 0
            if contribution.outgoing.__class__ in (Blocks, list):
                position = neighbors.match(i, self.grid, self.me, contribution.neighbors)
            else:
                position = contribution.neighbors.targets.index(self.me)
            source = contribution.outgoing_at(position)
            if incoming is None:
                self.objects[i] = source
            else:
                self.error = transfer(source, incoming.block(i)) or self.error

    def release(self) -> None:
        """Deliver to the targets that have entered, save copies for the others."""
        if self.incoming is None:
            return
        copies = {}
        values = self.values
        for position in self.neighbors.outputs:
            contribution = values.get(self.neighbors.targets[position])
            if contribution is not None and not contribution.collected and contribution.ready():
                contribution.deliver()
            if contribution is None or not contribution.collected:
                copies[position] = saved(self.outgoing_at(position))
        self.copies = copies

    def ready(self) -> bool:
        """Whether all sources have entered."""
        neighbors, values = self.neighbors, self.values
        return all(neighbors.sources[i] in values for i in neighbors.inputs)


def _part(comm: object, op: str, read: Any) -> Neighborhood:
    """The contribution of the calling rank.

    `read(sources, targets)` reads what it sends and the blocks that it receives.
    """
    rank = calling_rank()
    communicator, me = located(comm, rank)
    neighbors = neighbors_of(comm, communicator, me)
    outgoing, incoming = read(len(neighbors.sources), len(neighbors.targets))
    held(incoming)
    if outgoing.__class__ is Blocks:
        held(outgoing)
    sends: Sequence[int] | None = None
    receives: Sequence[int] | None = None
    if op[-1] == "w":
        count, unit = 0, 1
        sends, receives = outgoing.sizes(), incoming.sizes()
    else:
        sent, received = outgoing.datatype._live(), incoming.datatype._live()
        count = outgoing.count if op[-1] != "v" or outgoing.__class__ is MessageRegion else 0
        count, unit = count_of(sent, count)
        if op[-1] == "v":
            blocks = outgoing.__class__ is Blocks
            receives = counts_of(received, incoming.counts)
            sends = counts_of(sent, outgoing.counts) if blocks else None
            if count_of(received, 0)[1] != unit:
                count, unit = count * unit, 1
                receives = incoming.sizes()
                sends = outgoing.sizes() if blocks else None
    call = _call_among(communicator, me, neighbors, op, count, unit, sends, receives)
    return Neighborhood(rank, communicator, me, call, neighbors, outgoing, incoming)


def _call_among(
    communicator: Communicator,
    me: int,
    neighbors: Neighbors,
    op: str,
    count: int,
    unit: int,
    sends: Sequence[int] | None = None,
    receives: Sequence[int] | None = None,
) -> ScheduledCall:
    """The call of a rank, without the neighbours that do not exist."""
    inputs, outputs = neighbors.inputs, neighbors.outputs
    return scheduled_call(
        communicator, me, op, count, unit,
        send_counts=None if sends is None else tuple(sends[i] for i in outputs),
        recv_counts=None if receives is None else tuple(receives[i] for i in inputs),
        sources=tuple(neighbors.sources[i] for i in inputs),
        destinations=tuple(neighbors.targets[i] for i in outputs),
    )  # fmt: skip


def _allgather(comm: object, v: bool, sendbuf: object, recvbuf: object) -> Contribution:
    """Neighbor_allgather and Neighbor_allgatherv."""
    return _part(
        comm,
        "neighbor_allgatherv" if v else "neighbor_allgather",
        lambda sources, _: (reduction(sendbuf, False), blocks_of(v, recvbuf, True, sources)),
    )


def _alltoall(comm: object, v: bool, sendbuf: object, recvbuf: object) -> Contribution:
    """Neighbor_alltoall and Neighbor_alltoallv."""
    return _part(
        comm,
        "neighbor_alltoallv" if v else "neighbor_alltoall",
        lambda sources, targets: (
            blocks_of(v, sendbuf, False, targets), blocks_of(v, recvbuf, True, sources),
        ),
    )  # fmt: skip


def _alltoallw(comm: object, sendbuf: object, recvbuf: object) -> Contribution:
    """Neighbor_alltoallw."""

    def read(sources: int, targets: int) -> tuple[Blocks, Blocks]:
        incoming = blocks_w(recvbuf, True, sources)
        return blocks_w(sendbuf, False, targets), incoming

    return _part(comm, "neighbor_alltoallw", read)


def _objects(comm: object, op: str, dump: Any) -> list[object]:
    """Exchange pickled objects: their sizes, then their bytes."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    neighbors = neighbors_of(comm, communicator, me)
    data = dump(len(neighbors.targets))
    call = _call_among(communicator, me, neighbors, op, 1, SIZE_BYTES)
    contribution = Neighborhood(rank, communicator, me, call, neighbors, data, None)
    run(comm, contribution)
    sizes = list(map(len, contribution.objects))
    if data.__class__ is list:
        call = _call_among(communicator, me, neighbors, op + "v", 0, 1, list(map(len, data)), sizes)
    else:
        call = _call_among(communicator, me, neighbors, op + "v", len(data), 1, None, sizes)
    communicator.continue_call(me)
    run(comm, WithoutData(rank, communicator, me, call))
    return [pickle.loads(item) if item else None for item in contribution.objects]


class NeighborhoodCollectives:
    """The neighbourhood collective methods of communicators with a topology."""

    __slots__ = ()

    @mpi.collective("8.6.1")
    def Neighbor_allgather(self, sendbuf: BufSpec, recvbuf: BufSpecB) -> None:
        """Neighbor Gather to All."""
        run(self, _allgather(self, False, sendbuf, recvbuf))

    @mpi.collective("8.6.1")
    def Neighbor_allgatherv(self, sendbuf: BufSpec, recvbuf: BufSpecV) -> None:
        """Neighbor Gather to All Vector."""
        run(self, _allgather(self, True, sendbuf, recvbuf))

    @mpi.collective("8.6.2")
    def Neighbor_alltoall(self, sendbuf: BufSpecB, recvbuf: BufSpecB) -> None:
        """Neighbor All to All."""
        run(self, _alltoall(self, False, sendbuf, recvbuf))

    @mpi.collective("8.6.2")
    def Neighbor_alltoallv(self, sendbuf: BufSpecV, recvbuf: BufSpecV) -> None:
        """Neighbor All to All Vector."""
        run(self, _alltoall(self, True, sendbuf, recvbuf))

    @mpi.collective("8.6.2")
    def Neighbor_alltoallw(self, sendbuf: BufSpecW, recvbuf: BufSpecW) -> None:
        """Neighbor All to All General."""
        run(self, _alltoallw(self, sendbuf, recvbuf))

    @mpi.collective("8.7.1")
    def Ineighbor_allgather(self, sendbuf: BufSpec, recvbuf: BufSpecB) -> Request:
        """Nonblocking Neighbor Gather to All."""
        return begin(self, _allgather(self, False, sendbuf, recvbuf))

    @mpi.collective("8.7.1")
    def Ineighbor_allgatherv(self, sendbuf: BufSpec, recvbuf: BufSpecV) -> Request:
        """Nonblocking Neighbor Gather to All Vector."""
        return begin(self, _allgather(self, True, sendbuf, recvbuf))

    @mpi.collective("8.7.2")
    def Ineighbor_alltoall(self, sendbuf: BufSpecB, recvbuf: BufSpecB) -> Request:
        """Nonblocking Neighbor All to All."""
        return begin(self, _alltoall(self, False, sendbuf, recvbuf))

    @mpi.collective("8.7.2")
    def Ineighbor_alltoallv(self, sendbuf: BufSpecV, recvbuf: BufSpecV) -> Request:
        """Nonblocking Neighbor All to All Vector."""
        return begin(self, _alltoall(self, True, sendbuf, recvbuf))

    @mpi.collective("8.7.2")
    def Ineighbor_alltoallw(self, sendbuf: BufSpecW, recvbuf: BufSpecW) -> Request:
        """Nonblocking Neighbor All to All General."""
        return begin(self, _alltoallw(self, sendbuf, recvbuf))

    @mpi.collective("8.8.1")
    def Neighbor_allgather_init(
        self, sendbuf: BufSpec, recvbuf: BufSpecB, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent Neighbor Gather to All."""
        return keep(self, _allgather(self, False, sendbuf, recvbuf), info)

    @mpi.collective("8.8.1")
    def Neighbor_allgatherv_init(
        self, sendbuf: BufSpec, recvbuf: BufSpecV, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent Neighbor Gather to All Vector."""
        return keep(self, _allgather(self, True, sendbuf, recvbuf), info)

    @mpi.collective("8.8.2")
    def Neighbor_alltoall_init(
        self, sendbuf: BufSpecB, recvbuf: BufSpecB, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent Neighbor All to All."""
        return keep(self, _alltoall(self, False, sendbuf, recvbuf), info)

    @mpi.collective("8.8.2")
    def Neighbor_alltoallv_init(
        self, sendbuf: BufSpecV, recvbuf: BufSpecV, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent Neighbor All to All Vector."""
        return keep(self, _alltoall(self, True, sendbuf, recvbuf), info)

    @mpi.collective("8.8.2")
    def Neighbor_alltoallw_init(
        self, sendbuf: BufSpecW, recvbuf: BufSpecW, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent Neighbor All to All General."""
        return keep(self, _alltoallw(self, sendbuf, recvbuf), info)

    @mpi.collective("8.6.1")
    def neighbor_allgather(self, sendobj: Any) -> list[Any]:
        """Neighbor Gather to All."""
        return _objects(self, "neighbor_allgather", lambda targets: dumped(sendobj))

    @mpi.collective("8.6.2")
    def neighbor_alltoall(self, sendobj: list[Any]) -> list[Any]:
        """Neighbor All to All."""
        return _objects(self, "neighbor_alltoall", lambda targets: dump_each(sendobj, targets))
