"""Collective calls between the two groups of an intercommunicator, as schedules.

The algorithms of `pysmpi.collectives` are for one group. Here each side uses them separately, and
the sides exchange data: between their ranks 0 if there is one vector (barrier, reductions),
directly if every rank has its own data (gather, scatter, allgather, alltoall), much as in MPICH and
Open MPI. Ranks in these schedules are those of a joint context, in which one side follows the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pysmpi.collectives.building import append, build
from pysmpi.collectives.call import Call
from pysmpi.kernel.requests import Context
from pysmpi.kernel.schedule import Schedule
from pysmpi.mpi.base.constants import PROC_NULL, ROOT
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.groups.communicator import Communicator


class Joint(NamedTuple):
    """Both sides of an intercommunicator as one, seen from one of them.

    `context` holds the processes of both sides, `place` is the first rank of this side in it,
    `first` the side that comes first.
    """

    context: Context
    place: int
    first: Communicator


JOINT: StateSlot[Communicator, Joint] = StateSlot(Communicator)


def joint(communicator: Communicator) -> Joint:
    """The context of both sides, the first rank in it of this side, and the side that is first."""
    result = JOINT.peek(communicator)
    if result is None:
        sides = sorted((communicator, communicator.remote), key=lambda side: side.coll.number)
        members = [*sides[0].coll.members, *sides[1].coll.members]
        context = Context(communicator.universe.next_context(), members)
        communicator.universe.purposes[context.number] = sides[0]
        places = Joint(context, 0, sides[0]), Joint(context, sides[0].size, sides[0])
        for side, place in zip(sides, places):
            JOINT.put(side, place)
        result = places[sides.index(communicator)]
    return result


class Sides:
    """One rank's view of the two sides, while its schedule is built."""

    __slots__ = ("call", "leads", "local", "remote", "schedule")

    def __init__(self, communicator: Communicator, call: Call) -> None:
        _, mine, _ = joint(communicator)
        _, theirs, _ = joint(communicator.remote)
        self.local = range(mine, mine + communicator.size)
        self.remote = range(theirs, theirs + communicator.remote.size)
        self.leads = call.rank == 0
        self.call = call
        self.schedule = Schedule()

    def among_us(self, op: str, **changes: Any) -> None:
        """Append a collective call of the local group."""
        call = self.call
        plain = {"root": 0, "send_counts": None, "recv_counts": None, "in_place": False}
        part = Schedule()
        build(part, call._replace(op=op, **{**plain, **changes}))
        append(self.schedule, part, self.local)

    def swap(self, nbytes: int) -> None:
        """The ranks 0 of both sides exchange vectors of equal size."""
        if self.leads:
            self.schedule.sendrecv(self.remote[0], nbytes, self.remote[0], nbytes)

    def trade(self, sends: Sequence[int] | None, receives: Sequence[int] | None) -> None:
        """Start all receives, then all sends; the arguments have the bytes for each remote rank."""
        s = self.schedule
        if receives is not None:
            for peer, nbytes in zip(self.remote, receives):
                s.irecv(peer, nbytes)
        if sends is not None:
            for peer, nbytes in zip(self.remote, sends):
                s.isend(peer, nbytes)
        s.waitall()

    def equal(self) -> list[int]:
        """The bytes of a block, for each remote rank."""
        return [self.call.nbytes] * len(self.remote)

    def bytes_of(self, counts: Sequence[int] | None) -> list[int]:
        """The bytes of each block of a v form."""
        return [n * self.call.type_size for n in counts or ()]


def schedule_between(communicator: Communicator, call: Call) -> Schedule:
    """The steps of one rank in a call on an intercommunicator."""
    sides = Sides(communicator, call)
    _BUILDERS[call.op](sides)
    return sides.schedule


def _barrier(sides: Sides) -> None:
    sides.among_us("barrier")
    sides.swap(1)
    sides.among_us("bcast", count=1, type_size=1)


def _bcast(sides: Sides) -> None:
    root, nbytes = sides.call.root, sides.call.nbytes
    if root == ROOT:
        sides.schedule.send(sides.remote[0], nbytes)
    elif root != PROC_NULL:
        if sides.leads:
            sides.schedule.recv(sides.remote[root], nbytes)
        sides.among_us("bcast")


def _to_root(sides: Sides) -> None:
    call = sides.call
    if call.root == ROOT:
        counts = call.recv_counts
        sides.trade(None, sides.equal() if counts is None else sides.bytes_of(counts))
    elif call.root != PROC_NULL:
        sides.schedule.send(sides.remote[call.root], call.nbytes)


def _from_root(sides: Sides) -> None:
    call = sides.call
    if call.root == ROOT:
        counts = call.send_counts
        sides.trade(sides.equal() if counts is None else sides.bytes_of(counts), None)
    elif call.root != PROC_NULL:
        sides.schedule.recv(sides.remote[call.root], call.nbytes)


def _allgather(sides: Sides) -> None:
    counts = sides.call.recv_counts
    sides.trade(sides.equal(), sides.equal() if counts is None else sides.bytes_of(counts))


def _alltoall(sides: Sides) -> None:
    call = sides.call
    if call.send_counts is None:
        sides.trade(sides.equal(), sides.equal())
    else:
        sides.trade(sides.bytes_of(call.send_counts), sides.bytes_of(call.recv_counts))


def _reduce(sides: Sides) -> None:
    root, nbytes = sides.call.root, sides.call.nbytes
    if root == ROOT:
        sides.schedule.recv(sides.remote[0], nbytes)
    elif root != PROC_NULL:
        sides.among_us("reduce")
        if sides.leads:
            sides.schedule.send(sides.remote[root], nbytes)


def _allreduce(sides: Sides) -> None:
    sides.among_us("reduce")
    sides.swap(sides.call.nbytes)
    sides.among_us("bcast")


def _reduce_scatter(sides: Sides) -> None:
    call = sides.call
    counts = call.recv_counts
    if counts is None:
        counts = (call.count,) * call.size
    total = sum(counts)
    sides.among_us("reduce", count=total)
    sides.swap(total * call.type_size)
    sides.among_us("scatterv", count=counts[call.rank], send_counts=counts)


_BUILDERS: dict[str, Callable[[Sides], None]] = {
    "barrier": _barrier,
    "bcast": _bcast,
    "gather": _to_root,
    "gatherv": _to_root,
    "scatter": _from_root,
    "scatterv": _from_root,
    "allgather": _allgather,
    "allgatherv": _allgather,
    "alltoall": _alltoall,
    "alltoallv": _alltoall,
    "alltoallw": _alltoall,
    "reduce": _reduce,
    "allreduce": _allreduce,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_block": _reduce_scatter,
}
