"""Non-blocking and persistent collective calls (MPI 4.1, sections 6.12 and 6.13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pysmpi.mpi.base.info import INFO_NULL, Info, check_info
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.collective import arguments
from pysmpi.mpi.collective.background import CollectiveOperation, PersistentCollective
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.operators.operators import PREDEFINED, Op
from pysmpi.mpi.point_to_point.persistent_requests import Prequest
from pysmpi.mpi.point_to_point.requests import Request

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, BufSpecW, InPlace

SUM = PREDEFINED["SUM"]


def begin(comm: object, contribution: Contribution) -> Request:
    """Start a call; return its request."""
    rank = current()
    operation = CollectiveOperation(rank, comm, contribution)
    operation.start()
    request: Request = Request._of(operation)
    request.ob_buf = contribution
    return request


def keep(comm: object, contribution: Contribution, info: Info) -> Prequest:
    """The request of a call that is started later; hints change nothing."""
    check_info(info)
    request: Prequest = Prequest._of(PersistentCollective(current(), comm, contribution))
    request.ob_buf = contribution
    return request


class NonblockingCollectives:
    """The non-blocking and persistent collective methods of every communicator."""

    __slots__ = ()

    @mpi.collective("6.12.1")
    def Ibarrier(self) -> Request:
        """Nonblocking Barrier."""
        return begin(self, arguments.background_barrier(self))

    @mpi.collective("6.12.2")
    def Ibcast(self, buf: BufSpec, root: int = 0) -> Request:
        """Nonblocking Broadcast."""
        return begin(self, arguments.bcast(self, buf, root))

    @mpi.collective("6.12.3")
    def Igather(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None, root: int = 0
    ) -> Request:
        """Nonblocking Gather."""
        return begin(self, arguments.gather(self, False, sendbuf, recvbuf, root))

    @mpi.collective("6.12.3")
    def Igatherv(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV | None, root: int = 0
    ) -> Request:
        """Nonblocking Gather Vector."""
        return begin(self, arguments.gather(self, True, sendbuf, recvbuf, root))

    @mpi.collective("6.12.4")
    def Iscatter(
        self, sendbuf: BufSpecB | None, recvbuf: BufSpec | InPlace, root: int = 0
    ) -> Request:
        """Nonblocking Scatter."""
        return begin(self, arguments.scatter(self, False, sendbuf, recvbuf, root))

    @mpi.collective("6.12.4")
    def Iscatterv(
        self, sendbuf: BufSpecV | None, recvbuf: BufSpec | InPlace, root: int = 0
    ) -> Request:
        """Nonblocking Scatter Vector."""
        return begin(self, arguments.scatter(self, True, sendbuf, recvbuf, root))

    @mpi.collective("6.12.5")
    def Iallgather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB) -> Request:
        """Nonblocking Gather to All."""
        return begin(self, arguments.allgather(self, False, sendbuf, recvbuf))

    @mpi.collective("6.12.5")
    def Iallgatherv(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV) -> Request:
        """Nonblocking Gather to All Vector."""
        return begin(self, arguments.allgather(self, True, sendbuf, recvbuf))

    @mpi.collective("6.12.6")
    def Ialltoall(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB) -> Request:
        """Nonblocking All to All Scatter/Gather."""
        return begin(self, arguments.alltoall(self, False, sendbuf, recvbuf))

    @mpi.collective("6.12.6")
    def Ialltoallv(self, sendbuf: BufSpecV | InPlace, recvbuf: BufSpecV) -> Request:
        """Nonblocking All to All Scatter/Gather Vector."""
        return begin(self, arguments.alltoall(self, True, sendbuf, recvbuf))

    @mpi.collective("6.12.6")
    def Ialltoallw(self, sendbuf: BufSpecW | InPlace, recvbuf: BufSpecW) -> Request:
        """Nonblocking All to All Scatter/Gather General."""
        return begin(self, arguments.alltoallw(self, sendbuf, recvbuf))

    @mpi.collective("6.12.7")
    def Ireduce(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec | None, op: Op = SUM, root: int = 0
    ) -> Request:
        """Nonblocking Reduce to Root."""
        return begin(self, arguments.reduce(self, sendbuf, recvbuf, op, root))

    @mpi.collective("6.12.8")
    def Iallreduce(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> Request:
        """Nonblocking Reduce to All."""
        return begin(self, arguments.allreduce(self, sendbuf, recvbuf, op))

    @mpi.collective("6.12.9")
    def Ireduce_scatter_block(
        self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpec | BufSpecB, op: Op = SUM
    ) -> Request:
        """Nonblocking Reduce-Scatter Block (regular, non-vector version)."""
        return begin(self, arguments.reduce_scatter_block(self, sendbuf, recvbuf, op))

    @mpi.collective("6.12.10")
    def Ireduce_scatter(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Sequence[int] | None = None,
        op: Op = SUM,
    ) -> Request:
        """Nonblocking Reduce-Scatter (vector version)."""
        return begin(self, arguments.reduce_scatter(self, sendbuf, recvbuf, recvcounts, op))

    @mpi.collective("6.13.1")
    def Barrier_init(self, info: Info = INFO_NULL) -> Prequest:
        """Persistent Barrier."""
        return keep(self, arguments.background_barrier(self), info)

    @mpi.collective("6.13.2")
    def Bcast_init(self, buf: BufSpec, root: int = 0, info: Info = INFO_NULL) -> Prequest:
        """Persistent Broadcast."""
        return keep(self, arguments.bcast(self, buf, root), info)

    @mpi.collective("6.13.3")
    def Gather_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB | None,
        root: int = 0,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """Persistent Gather."""
        return keep(self, arguments.gather(self, False, sendbuf, recvbuf, root), info)

    @mpi.collective("6.13.3")
    def Gatherv_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV | None,
        root: int = 0,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """Persistent Gather Vector."""
        return keep(self, arguments.gather(self, True, sendbuf, recvbuf, root), info)

    @mpi.collective("6.13.4")
    def Scatter_init(
        self,
        sendbuf: BufSpecB | None,
        recvbuf: BufSpec | InPlace,
        root: int = 0,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """Persistent Scatter."""
        return keep(self, arguments.scatter(self, False, sendbuf, recvbuf, root), info)

    @mpi.collective("6.13.4")
    def Scatterv_init(
        self,
        sendbuf: BufSpecV | None,
        recvbuf: BufSpec | InPlace,
        root: int = 0,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """Persistent Scatter Vector."""
        return keep(self, arguments.scatter(self, True, sendbuf, recvbuf, root), info)

    @mpi.collective("6.13.5")
    def Allgather_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent Gather to All."""
        return keep(self, arguments.allgather(self, False, sendbuf, recvbuf), info)

    @mpi.collective("6.13.5")
    def Allgatherv_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent Gather to All Vector."""
        return keep(self, arguments.allgather(self, True, sendbuf, recvbuf), info)

    @mpi.collective("6.13.6")
    def Alltoall_init(
        self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent All to All Scatter/Gather."""
        return keep(self, arguments.alltoall(self, False, sendbuf, recvbuf), info)

    @mpi.collective("6.13.6")
    def Alltoallv_init(
        self, sendbuf: BufSpecV | InPlace, recvbuf: BufSpecV, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent All to All Scatter/Gather Vector."""
        return keep(self, arguments.alltoall(self, True, sendbuf, recvbuf), info)

    @mpi.collective("6.13.6")
    def Alltoallw_init(
        self, sendbuf: BufSpecW | InPlace, recvbuf: BufSpecW, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent All to All Scatter/Gather General."""
        return keep(self, arguments.alltoallw(self, sendbuf, recvbuf), info)

    @mpi.collective("6.13.7")
    def Reduce_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | None,
        op: Op = SUM,
        root: int = 0,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """Persistent Reduce to Root."""
        return keep(self, arguments.reduce(self, sendbuf, recvbuf, op, root), info)

    @mpi.collective("6.13.8")
    def Allreduce_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent Reduce to All."""
        return keep(self, arguments.allreduce(self, sendbuf, recvbuf, op), info)

    @mpi.collective("6.13.9")
    def Reduce_scatter_block_init(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpec | BufSpecB,
        op: Op = SUM,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """Persistent Reduce-Scatter Block (regular, non-vector version)."""
        return keep(self, arguments.reduce_scatter_block(self, sendbuf, recvbuf, op), info)

    @mpi.collective("6.13.10")
    def Reduce_scatter_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Sequence[int] | None = None,
        op: Op = SUM,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """Persistent Reduce-Scatter (vector version)."""
        contribution = arguments.reduce_scatter(self, sendbuf, recvbuf, recvcounts, op)
        return keep(self, contribution, info)


class NonblockingScans:
    """The non-blocking and persistent scans of communicators that have one group only."""

    __slots__ = ()

    @mpi.collective("6.12.11")
    def Iscan(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> Request:
        """Inclusive Scan."""
        return begin(self, arguments.scan(self, sendbuf, recvbuf, op, False))

    @mpi.collective("6.12.12")
    def Iexscan(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> Request:
        """Inclusive Scan."""
        return begin(self, arguments.scan(self, sendbuf, recvbuf, op, True))

    @mpi.collective("6.13.11")
    def Scan_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent Inclusive Scan."""
        return keep(self, arguments.scan(self, sendbuf, recvbuf, op, False), info)

    @mpi.collective("6.13.12")
    def Exscan_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """Persistent Exclusive Scan."""
        return keep(self, arguments.scan(self, sendbuf, recvbuf, op, True), info)
