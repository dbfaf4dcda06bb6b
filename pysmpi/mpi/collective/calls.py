"""The collective calls of communicators (MPI 4.1, chapter 6), as mixins of `Comm` and `Intracomm`.

`arguments` makes the contribution of the calling rank. The blocking forms run it here,
the non-blocking and persistent forms in `nonblocking` start it, and the lower-case forms are in
`objects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pysmpi.mpi.calls import mpi
from pysmpi.mpi.collective import arguments
from pysmpi.mpi.collective.contribution import run
from pysmpi.mpi.collective.nonblocking import NonblockingCollectives, NonblockingScans
from pysmpi.mpi.collective.objects import ObjectCollectives, ObjectScans
from pysmpi.mpi.operators.operators import PREDEFINED, Op

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, BufSpecW, InPlace

SUM = PREDEFINED["SUM"]


class Collectives(NonblockingCollectives, ObjectCollectives):
    """The collective methods of every communicator."""

    __slots__ = ()

    @mpi.collective("6.3")
    def Barrier(self) -> None:
        """Barrier synchronization."""
        run(self, arguments.barrier(self))

    @mpi.collective("6.4")
    def Bcast(self, buf: BufSpec, root: int = 0) -> None:
        """Broadcast data from one process to all other processes."""
        run(self, arguments.bcast(self, buf, root))

    @mpi.collective("6.5")
    def Gather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None, root: int = 0) -> None:
        """Gather data to one process from all other processes."""
        run(self, arguments.gather(self, False, sendbuf, recvbuf, root))

    @mpi.collective("6.5")
    def Gatherv(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV | None, root: int = 0) -> None:
        """Gather Vector.

        Gather data to one process from all other processes
        providing different amounts of data and displacements.
        """
        run(self, arguments.gather(self, True, sendbuf, recvbuf, root))

    @mpi.collective("6.6")
    def Scatter(self, sendbuf: BufSpecB | None, recvbuf: BufSpec | InPlace, root: int = 0) -> None:
        """Scatter data from one process to all other processes."""
        run(self, arguments.scatter(self, False, sendbuf, recvbuf, root))

    @mpi.collective("6.6")
    def Scatterv(self, sendbuf: BufSpecV | None, recvbuf: BufSpec | InPlace, root: int = 0) -> None:
        """Scatter Vector.

        Scatter data from one process to all other processes
        providing different amounts of data and displacements.
        """
        run(self, arguments.scatter(self, True, sendbuf, recvbuf, root))

    @mpi.collective("6.7")
    def Allgather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB) -> None:
        """Gather to All.

        Gather data from all processes and broadcast the combined data to all
        other processes.
        """
        run(self, arguments.allgather(self, False, sendbuf, recvbuf))

    @mpi.collective("6.7")
    def Allgatherv(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV) -> None:
        """Gather to All Vector.

        Gather data from all processes and send it to all other processes
        providing different amounts of data and displacements.
        """
        run(self, arguments.allgather(self, True, sendbuf, recvbuf))

    @mpi.collective("6.8")
    def Alltoall(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB) -> None:
        """All to All Scatter/Gather.

        Send data to all processes and recv data from all processes.
        """
        run(self, arguments.alltoall(self, False, sendbuf, recvbuf))

    @mpi.collective("6.8")
    def Alltoallv(self, sendbuf: BufSpecV | InPlace, recvbuf: BufSpecV) -> None:
        """All to All Scatter/Gather Vector.

        Send data to all processes and recv data from all processes
        providing different amounts of data and displacements.
        """
        run(self, arguments.alltoall(self, True, sendbuf, recvbuf))

    @mpi.collective("6.8")
    def Alltoallw(self, sendbuf: BufSpecW | InPlace, recvbuf: BufSpecW) -> None:
        """All to All Scatter/Gather General.

        Send/recv data to/from all processes allowing the specification of
        different counts, displacements, and datatypes for each dest/source.
        """
        run(self, arguments.alltoallw(self, sendbuf, recvbuf))

    @mpi.collective("6.9.1")
    def Reduce(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec | None, op: Op = SUM, root: int = 0
    ) -> None:
        """Reduce to Root."""
        run(self, arguments.reduce(self, sendbuf, recvbuf, op, root))

    @mpi.collective("6.9.6")
    def Allreduce(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> None:
        """Reduce to All."""
        run(self, arguments.allreduce(self, sendbuf, recvbuf, op))

    @mpi.collective("6.10.1")
    def Reduce_scatter_block(
        self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpec | BufSpecB, op: Op = SUM
    ) -> None:
        """Reduce-Scatter Block (regular, non-vector version)."""
        run(self, arguments.reduce_scatter_block(self, sendbuf, recvbuf, op))

    @mpi.collective("6.10.2")
    def Reduce_scatter(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Sequence[int] | None = None,
        op: Op = SUM,
    ) -> None:
        """Reduce-Scatter (vector version)."""
        run(self, arguments.reduce_scatter(self, sendbuf, recvbuf, recvcounts, op))


class IntracommCollectives(NonblockingScans, ObjectScans):
    """The collective methods of communicators that have one group only."""

    __slots__ = ()

    @mpi.collective("6.11.1")
    def Scan(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> None:
        """Inclusive Scan."""
        run(self, arguments.scan(self, sendbuf, recvbuf, op, False))

    @mpi.collective("6.11.2")
    def Exscan(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> None:
        """Exclusive Scan."""
        run(self, arguments.scan(self, sendbuf, recvbuf, op, True))
