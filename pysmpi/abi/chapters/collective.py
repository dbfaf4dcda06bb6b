"""Collective communication (MPI 4.1, chapters 6 and 8).

An operation has three forms: blocking, non-blocking (`I...`) and persistent (`..._init`). All read
their arguments with one function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pysmpi.abi.entry import ENTRIES
from pysmpi.abi.values import buffer, give_request, read_integers, reject, vector, vector_w
from pysmpi.mpi.base.constants import ERR_COMM

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

# The communicator and the arguments of a method of mpi4py.
Call = tuple[MPI.Comm, tuple[Any, ...]]


def collective(read: Callable[..., Call]) -> Callable[..., Call]:
    """Declare the three forms of the operation that a function is named after."""
    name = read.__name__
    code = read.__code__
    names = code.co_varnames[: code.co_argcount]
    sized = names[-1] == "size"  # the size of counts, which the engine adds at the end
    number = len(names) - sized

    def blocking(*values: Any) -> None:
        comm, arguments = read(*values)
        getattr(comm, name)(*arguments)

    def later(*values: Any) -> None:
        comm, arguments = read(*values[:number], *values[number + 1 :])
        give_request(values[number], getattr(comm, later_name)(*arguments))

    def persistent(*values: Any) -> None:
        info, request = values[number : number + 2]
        comm, arguments = read(*values[:number], *values[number + 2 :])
        give_request(request, getattr(comm, f"{name}_init")(*arguments, info))

    later_name = f"I{name[0].lower()}{name[1:]}"
    ENTRIES[name] = blocking
    ENTRIES[later_name] = later
    ENTRIES[f"{name}_init"] = persistent
    return read


def _is_inter(comm: MPI.Comm) -> bool:
    if not comm:
        reject(ERR_COMM, "the communicator is COMM_NULL")
    return comm.Is_inter()


def _is_root(comm: MPI.Comm, root: int) -> bool:
    return root == MPI.ROOT if _is_inter(comm) else comm.Get_rank() == root


def _is_peer(comm: MPI.Comm, root: int) -> bool:
    """Whether the process exchanges data with the root."""
    return not _is_inter(comm) or root not in (MPI.ROOT, MPI.PROC_NULL)


def _peers(comm: Any) -> int:
    """The number of processes with which each exchanges blocks."""
    size: int = comm.Get_remote_size() if _is_inter(comm) else comm.Get_size()
    return size


def _blocks(address: int, count: int, datatype: MPI.Datatype, comm: MPI.Comm) -> Any:
    return buffer(address, count, datatype, _peers(comm))


@collective
def Barrier(comm: MPI.Comm) -> Call:
    return comm, ()


@collective
def Bcast(buf: int, count: int, datatype: MPI.Datatype, root: int, comm: MPI.Comm) -> Call:
    return comm, (buffer(buf, count, datatype), root)


@collective
def Gather(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, recvbuf: int, recvcount: int,
    recvtype: MPI.Datatype, root: int, comm: MPI.Comm,
) -> Call:  # fmt: skip
    into = None
    if _is_root(comm, root):
        into = _blocks(recvbuf, recvcount, recvtype, comm)
    out = None
    if _is_peer(comm, root):
        out = buffer(sendbuf, sendcount, sendtype)
    return comm, (out, into, root)


@collective
def Gatherv(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, recvbuf: int, recvcounts: int,
    displs: int, recvtype: MPI.Datatype, root: int, comm: MPI.Comm, size: int,
) -> Call:  # fmt: skip
    into = None
    if _is_root(comm, root):
        into = vector(recvbuf, recvcounts, displs, recvtype, _peers(comm), size)
    out = None
    if _is_peer(comm, root):
        out = buffer(sendbuf, sendcount, sendtype)
    return comm, (out, into, root)


@collective
def Scatter(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, recvbuf: int, recvcount: int,
    recvtype: MPI.Datatype, root: int, comm: MPI.Comm,
) -> Call:  # fmt: skip
    out = None
    if _is_root(comm, root):
        out = _blocks(sendbuf, sendcount, sendtype, comm)
    into = None
    if _is_peer(comm, root):
        into = buffer(recvbuf, recvcount, recvtype)
    return comm, (out, into, root)


@collective
def Scatterv(
    sendbuf: int, sendcounts: int, displs: int, sendtype: MPI.Datatype, recvbuf: int,
    recvcount: int, recvtype: MPI.Datatype, root: int, comm: MPI.Comm, size: int,
) -> Call:  # fmt: skip
    out = None
    if _is_root(comm, root):
        out = vector(sendbuf, sendcounts, displs, sendtype, _peers(comm), size)
    into = None
    if _is_peer(comm, root):
        into = buffer(recvbuf, recvcount, recvtype)
    return comm, (out, into, root)


@collective
def Allgather(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, recvbuf: int, recvcount: int,
    recvtype: MPI.Datatype, comm: MPI.Comm,
) -> Call:  # fmt: skip
    return comm, (
        buffer(sendbuf, sendcount, sendtype), _blocks(recvbuf, recvcount, recvtype, comm)
    )  # fmt: skip


@collective
def Allgatherv(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, recvbuf: int, recvcounts: int,
    displs: int, recvtype: MPI.Datatype, comm: MPI.Comm, size: int,
) -> Call:  # fmt: skip
    into = vector(recvbuf, recvcounts, displs, recvtype, _peers(comm), size)
    return comm, (buffer(sendbuf, sendcount, sendtype), into)


@collective
def Alltoall(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, recvbuf: int, recvcount: int,
    recvtype: MPI.Datatype, comm: MPI.Comm,
) -> Call:  # fmt: skip
    return comm, (
        _blocks(sendbuf, sendcount, sendtype, comm), _blocks(recvbuf, recvcount, recvtype, comm)
    )  # fmt: skip


@collective
def Alltoallv(
    sendbuf: int, sendcounts: int, sdispls: int, sendtype: MPI.Datatype, recvbuf: int,
    recvcounts: int, rdispls: int, recvtype: MPI.Datatype, comm: MPI.Comm, size: int,
) -> Call:  # fmt: skip
    n = _peers(comm)
    return comm, (
        vector(sendbuf, sendcounts, sdispls, sendtype, n, size),
        vector(recvbuf, recvcounts, rdispls, recvtype, n, size),
    )


@collective
def Alltoallw(
    sendbuf: int, sendcounts: int, sdispls: int, sendtypes: int, recvbuf: int, recvcounts: int,
    rdispls: int, recvtypes: int, comm: MPI.Comm, size: int,
) -> Call:  # fmt: skip
    n = _peers(comm)
    return comm, (
        vector_w(sendbuf, sendcounts, sdispls, sendtypes, n, size, size),
        vector_w(recvbuf, recvcounts, rdispls, recvtypes, n, size, size),
    )


@collective
def Reduce(
    sendbuf: int, recvbuf: int, count: int, datatype: MPI.Datatype, op: MPI.Op, root: int,
    comm: MPI.Comm,
) -> Call:  # fmt: skip
    out = into = None
    if _is_root(comm, root):
        into = buffer(recvbuf, count, datatype)
    if _is_peer(comm, root):
        out = buffer(sendbuf, count, datatype)
    return comm, (out, into, op, root)


def _reduced(
    sendbuf: int, recvbuf: int, count: int, datatype: MPI.Datatype, op: MPI.Op, comm: MPI.Comm
) -> Call:
    return comm, (buffer(sendbuf, count, datatype), buffer(recvbuf, count, datatype), op)


@collective
def Allreduce(
    sendbuf: int, recvbuf: int, count: int, datatype: MPI.Datatype, op: MPI.Op, comm: MPI.Comm
) -> Call:
    return _reduced(sendbuf, recvbuf, count, datatype, op, comm)


@collective
def Scan(
    sendbuf: int, recvbuf: int, count: int, datatype: MPI.Datatype, op: MPI.Op, comm: MPI.Comm
) -> Call:
    return _reduced(sendbuf, recvbuf, count, datatype, op, comm)


@collective
def Exscan(
    sendbuf: int, recvbuf: int, count: int, datatype: MPI.Datatype, op: MPI.Op, comm: MPI.Comm
) -> Call:
    return _reduced(sendbuf, recvbuf, count, datatype, op, comm)


@collective
def Reduce_scatter_block(
    sendbuf: int, recvbuf: int, recvcount: int, datatype: MPI.Datatype, op: MPI.Op, comm: MPI.Comm
) -> Call:
    n = comm.Get_size()
    # In place, the receive buffer has the contributions of all.
    into = buffer(recvbuf, recvcount, datatype, n if sendbuf == (1 << 64) - 1 else 1)
    return comm, (buffer(sendbuf, recvcount, datatype, n), into, op)


@collective
def Reduce_scatter(
    sendbuf: int, recvbuf: int, recvcounts: int, datatype: MPI.Datatype, op: MPI.Op,
    comm: MPI.Comm, size: int,
) -> Call:  # fmt: skip
    counts = read_integers(recvcounts, comm.Get_size(), size)
    total = sum(counts)
    in_place = sendbuf == (1 << 64) - 1
    own = total if in_place else counts[comm.Get_rank()]
    return comm, (
        buffer(sendbuf, total, datatype), buffer(recvbuf, own, datatype), counts, op
    )  # fmt: skip


def _neighbours(comm: Any) -> tuple[int, int]:
    """The numbers of processes from which and to which a process with a topology sends."""
    return int(comm.inoutedges[0].__len__()), int(comm.inoutedges[1].__len__())


@collective
def Neighbor_allgather(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, recvbuf: int, recvcount: int,
    recvtype: MPI.Datatype, comm: MPI.Comm,
) -> Call:  # fmt: skip
    into = buffer(recvbuf, recvcount, recvtype, _neighbours(comm)[0])
    return comm, (buffer(sendbuf, sendcount, sendtype), into)


@collective
def Neighbor_allgatherv(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, recvbuf: int, recvcounts: int,
    displs: int, recvtype: MPI.Datatype, comm: MPI.Comm, size: int,
) -> Call:  # fmt: skip
    into = vector(recvbuf, recvcounts, displs, recvtype, _neighbours(comm)[0], size)
    return comm, (buffer(sendbuf, sendcount, sendtype), into)


@collective
def Neighbor_alltoall(
    sendbuf: int, sendcount: int, sendtype: MPI.Datatype, recvbuf: int, recvcount: int,
    recvtype: MPI.Datatype, comm: MPI.Comm,
) -> Call:  # fmt: skip
    sources, targets = _neighbours(comm)
    return comm, (
        buffer(sendbuf, sendcount, sendtype, targets), buffer(recvbuf, recvcount, recvtype, sources)
    )  # fmt: skip


@collective
def Neighbor_alltoallv(
    sendbuf: int, sendcounts: int, sdispls: int, sendtype: MPI.Datatype, recvbuf: int,
    recvcounts: int, rdispls: int, recvtype: MPI.Datatype, comm: MPI.Comm, size: int,
) -> Call:  # fmt: skip
    sources, targets = _neighbours(comm)
    return comm, (
        vector(sendbuf, sendcounts, sdispls, sendtype, targets, size),
        vector(recvbuf, recvcounts, rdispls, recvtype, sources, size),
    )


@collective
def Neighbor_alltoallw(
    sendbuf: int, sendcounts: int, sdispls: int, sendtypes: int, recvbuf: int, recvcounts: int,
    rdispls: int, recvtypes: int, comm: MPI.Comm, size: int,
) -> Call:  # fmt: skip
    sources, targets = _neighbours(comm)
    return comm, (  # displacements are addresses in both forms
        vector_w(sendbuf, sendcounts, sdispls, sendtypes, targets, size, 8),
        vector_w(recvbuf, recvcounts, rdispls, recvtypes, sources, size, 8),
    )
