"""Communicators, shared by all their ranks.

A `Communicator` is one communicator: its members, the two contexts of its messages (point-to-point
and collective), and the states of its collective calls. Handles of all ranks point to the same
`Communicator`. That of an intercommunicator is one side of it, `remote` the other; for an
intracommunicator, `remote` is the object itself.

This module is compiled: every message and every collective call passes through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, final

from mypy_extensions import mypyc_attr

from pysmpi import text
from pysmpi.collectives.cache import Columns
from pysmpi.kernel.numbers import shared as shared_number
from pysmpi.kernel.requests import AbstractProcess, Context
from pysmpi.mpi.base.constants import ERR_PROC_FAILED, ERR_REVOKED
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.owners import NO_STATE, Owner
from pysmpi.mpi.base.ranks import Rank, Universe, World, current
from pysmpi.mpi.base.running import called
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.groups.groups import Members
from pysmpi.python.frames import CallSite

NOBODY: frozenset[int] = frozenset()


class CollectiveState:
    """The shared data of the ranks of one collective call, which has a `number`.

    `values[i]` is the contribution of rank i, `result` the common result, `left` the number of
    ranks that are done. `columns` are those of schedules that are made for this call. `made[i]` is
    the name and the line of the call of rank i, if it has left the call, or has begun it in the
    background, before all others have entered. Reports name both where the calls of ranks differ.
    """

    __slots__ = ("number", "operation", "values", "result", "left", "remote", "columns", "made")

    def __init__(self, number: int, operation: str) -> None:
        self.number = number
        self.operation = operation
        self.values: dict[int, Any] = {}
        self.result: Any = None
        self.left = 0
        self.remote: CollectiveState | None = None  # of the other side of an intercommunicator
        self.columns: Columns | None = None
        self.made: dict[int, tuple[str, CallSite | None]] | None = None

    def note(self, me: int) -> None:
        """Keep the name and the line of the running call of rank `me`."""
        made = self.made
        if made is None:
            made = self.made = {}
        if me not in made:
            made[shared_number(me)] = called()


@final
@mypyc_attr(allow_interpreted_subclasses=True)
class Communicator(Owner):
    """The shared state of the ranks of a communicator; `new_communicator` makes it.

    Final, so that compiled code calls its methods directly.

    `group` holds the pids of the members by rank.
    """

    __slots__ = (
        "universe",
        "group",
        "size",
        "remote",
        "p2p",
        "coll",
        "topology",
        "collective_states",
        "call_cache",
        "calls",
        "nodes",
        "kind",
        "leaders",
        "first",
        "revoked",
        "continued",
        "origin",
    )

    def __init__(self, universe: Universe, pids: Sequence[int]) -> None:
        self.universe = universe
        group = self.group = pids if isinstance(pids, Members) else Members.of(pids)
        self.size = len(group)
        self.remote: Communicator = self
        # The pid of rank 0 if the pids are consecutive, else -1.
        run = group.parts[0] if len(group.parts) == 1 else None
        self.first = run.start if isinstance(run, range) and run.step == 1 else -1
        processes = universe.processes
        members: list[AbstractProcess] = [processes[pid] for pid in group]
        self.p2p = Context(universe.next_context(), members)
        self.p2p.first = self.first
        self.coll = Context(universe.next_context(), members)
        universe.communicators[self.p2p.number] = universe.communicators[self.coll.number] = self
        self.topology: Any = None
        self.collective_states: dict[tuple[int, str], CollectiveState] = {}
        self.calls: list[int] = [0] * self.size  # collective calls begun, by rank
        self.call_cache: Any = None  # its cached calls, see collective/schedules.py
        self.nodes: Any = None  # the node of each rank, after an algorithm has used it
        self.state = NO_STATE
        self.kind = "comm"  # name in reports if it has no name: a window's is "window"
        self.leaders: Context | None = None  # for leaders of groups to exchange their groups
        self.revoked: Any = NOBODY  # pids of the members that know of its revocation
        # The calls that continue another one of the program, by rank; None before the first.
        self.continued: list[int] | None = None
        # The name and the line of the call that made it.
        self.origin: tuple[str, CallSite | None] = "", None

    @property
    def inter(self) -> bool:
        """Whether it is one side of an intercommunicator."""
        return self.remote is not self

    def rank_of(self, pid: int) -> int:
        """The rank of a process, which must be a member."""
        first = self.first
        if first == 0:
            return pid
        return pid - first if first > 0 else self.group.rank_of(pid)

    def next_call(self, me: int) -> int:
        """The number of the collective call that rank `me` begins."""
        number = self.calls[me]
        self.calls[me] = number + 1
        return number

    def continue_call(self, me: int) -> None:
        """The next call of rank `me` is a part of the program's call in which it is."""
        counts = self.continued
        if counts is None:
            counts = self.continued = [0] * self.size
        counts[me] += 1

    def begun(self, me: int) -> int:
        """The number of collective calls that a rank has begun; 0 if it is not in the group."""
        return self.calls[me] if 0 <= me < self.size else 0

    def made_by(self, me: int) -> int:
        """The number of collective calls that the program of a rank has made."""
        counts = self.continued
        return self.begun(me) - (0 if counts is None else counts[me])

    def enter(self, number: int, operation: str, me: int, value: object) -> CollectiveState:
        """Contribute `value` to the collective call of this number; return its state.

        Ranks in different operations at the same point of the program share no state, and
        wait for each other without end, as in a real library.
        """
        key = (number, operation)
        shared = self.collective_states.get(key)
        if shared is None:
            shared = self.collective_states[key] = CollectiveState(number, operation)
            if self.remote is not self:
                other = self.remote.collective_states.get(key)
                if other is None:
                    other = CollectiveState(number, operation)
                    self.remote.collective_states[key] = other
                shared.remote, other.remote = other, shared
        shared.values[shared_number(me)] = value
        return shared

    def exit(self, shared: CollectiveState, me: int = -1) -> None:
        """Leave a collective call; the last one removes its state.

        `me` is the rank, if its call may end before all others have entered.
        """
        shared.left += 1
        if me >= 0 and not self.entered(shared):
            shared.note(me)
        if shared.left == self.size:
            self.collective_states.pop((shared.number, shared.operation), None)

    def entered(self, shared: CollectiveState) -> bool:
        """Whether all ranks have entered a call, on both sides of an intercommunicator."""
        other = shared.remote
        return len(shared.values) == self.size and (
            other is None or len(other.values) == self.remote.size
        )


_WITH_WEAK_REFERENCES: Final[Any] = type(
    "Communicator", (Communicator,), {"__slots__": ("__weakref__",)}
)


def new_communicator(universe: Universe, pids: Sequence[int]) -> Communicator:
    """A communicator of processes.

    Its class is a subclass, because compiled classes have no weak references.
    """
    communicator: Communicator = _WITH_WEAK_REFERENCES(universe, pids)
    communicator.origin = called()
    return communicator


class PrivateContext:
    """The context of one persistent call, and the number of ranks that hold it."""

    __slots__ = ("context", "holders")

    def __init__(self, context: Context, holders: int) -> None:
        self.context = context
        self.holders = holders


# Contexts of persistent calls by the identity of the call.
PERSISTENT: StateSlot[Communicator, dict[int, PrivateContext]] = StateSlot(Communicator, dict)
# Communicators of groups that are being made, by purpose and groups.
MEETINGS: StateSlot[Universe, dict[object, Communicator]] = StateSlot(Universe, dict)


def check_revoked(comm: object, communicator: Communicator) -> None:
    """Raise an error if the calling rank knows that a communicator is revoked."""
    if current().pid in communicator.revoked:
        fail(ERR_REVOKED, "the communicator is revoked", comm)


def check_intact(comm: object, communicator: Communicator) -> None:
    """Raise an error if a communicator is revoked, or one of its processes has failed.

    A call of all its ranks cannot succeed then.
    """
    check_revoked(comm, communicator)
    for side in dict.fromkeys((communicator, communicator.remote)):
        lost = side.p2p.lost
        if lost is not None and lost.destinations:
            ranks = sorted(lost.destinations)
            which = "the remote group" if side is not communicator else "the communicator"
            fail(ERR_PROC_FAILED, f"{text.ranks(ranks)} of {which} failed", comm)


def connect(one: Communicator, other: Communicator) -> None:
    """Make two communicators the sides of an intercommunicator."""
    one.remote = other
    other.remote = one
    one.p2p.peer = other.p2p
    other.p2p.peer = one.p2p


def world_communicator(world: World) -> Communicator:
    """The communicator of `COMM_WORLD`."""
    communicator: Communicator | None = world.communicator
    if communicator is None:
        communicator = world.communicator = new_communicator(
            world.universe, range(world.first, world.first + world.size)
        )
    return communicator


def self_communicator(rank: Rank) -> Communicator:
    """The communicator of `COMM_SELF`."""
    communicator: Communicator | None = rank.self_communicator
    if communicator is None:
        communicator = rank.self_communicator = new_communicator(
            rank.universe, range(rank.pid, rank.pid + 1)
        )
    return communicator


@mypyc_attr(native_class=False)
class PredefinedCommunicator:
    """The object of a predefined communicator: its communicator depends on the rank."""

    __slots__ = ("name", "find", "__weakref__")

    def __init__(self, name: str, find: Callable[[Rank], Communicator]) -> None:
        self.name = name
        self.find = find


WORLD = PredefinedCommunicator("MPI_COMM_WORLD", lambda rank: world_communicator(rank.world))
SELF = PredefinedCommunicator("MPI_COMM_SELF", self_communicator)
# A constant of the compiled module, which is read without a look into a dictionary.
_WORLD: Final[Any] = WORLD


def communicator_of(comm: Any, rank: Rank) -> Communicator:
    """The communicator of a rank's handle, as `comm._communicator()`."""
    impl = comm._impl
    communicator: Any = None
    if impl is _WORLD:
        communicator = rank.world.communicator
    elif isinstance(impl, Communicator):
        communicator = impl
    if communicator is None:
        communicator = comm._communicator()
    return communicator  # type: ignore[no-any-return]


def located(comm: object, rank: Rank) -> tuple[Communicator, int]:
    """The communicator of a rank's handle, and the rank in it; an error if it is not intact."""
    communicator = communicator_of(comm, rank)
    if communicator.revoked:
        check_intact(comm, communicator)
    first = communicator.first
    return communicator, rank.pid - first if first >= 0 else communicator.rank_of(rank.pid)
