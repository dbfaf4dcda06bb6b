"""Communicators (MPI 4.1, chapter 7)."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from pysmpi.mpi.base import attributes, errhandlers
from pysmpi.mpi.base.attributes import WithAttributes, with_attributes
from pysmpi.mpi.base.constants import (
    CONGRUENT,
    ERR_ARG,
    ERR_COMM,
    ERR_GROUP,
    IDENT,
    MAX_OBJECT_NAME,
    SIMILAR,
    UNDEFINED,
    UNEQUAL,
)
from pysmpi.mpi.base.errhandlers import WithErrhandler, with_errhandler
from pysmpi.mpi.base.exceptions import cint, cstring, fail
from pysmpi.mpi.base.handles import Handle, _shows, wrong_type
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.collective.calls import Collectives
from pysmpi.mpi.communicators.fault_tolerance import FaultTolerance
from pysmpi.mpi.communicators.members import (
    create_all,
    create_between,
    duplicate,
    side_of,
    split_all,
)
from pysmpi.mpi.groups import locks as commlocks
from pysmpi.mpi.groups.agreement import agree, share_later
from pysmpi.mpi.groups.communicator import (
    WORLD,
    Communicator,
    PredefinedCommunicator,
    check_intact,
    world_communicator,
)
from pysmpi.mpi.groups.groups import Group
from pysmpi.mpi.groups.handle_types import IntercommHandle as Intercomm
from pysmpi.mpi.groups.hardware import split_color
from pysmpi.mpi.point_to_point.buffered import BufferedSends
from pysmpi.mpi.point_to_point.calls import PointToPoint
from pysmpi.mpi.point_to_point.operations import RequestOperation
from pysmpi.mpi.point_to_point.partitioned import PartitionedCommunication
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.mpi.processes.connecting import PARENT, forget_parent, join, parent_of

__all__ = ["Comm", "COMM_NULL"]

CONTEXT_BYTES = 8  # bytes of messages to agree on a new communicator


class Local:
    """One rank's settings of a communicator: its name and its hints."""

    __slots__ = ("name", "info")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.info: Any = None


LOCALS: StateSlot[Rank, dict[Communicator | PredefinedCommunicator, Local]] = StateSlot(Rank, dict)


def local(rank: Rank, impl: Any) -> Local:
    """The calling rank's own side of a communicator."""
    table = LOCALS.of(rank)
    result = table.get(impl)
    if result is None:
        result = table[impl] = Local(impl.name if isinstance(impl, PredefinedCommunicator) else "")
    return result


@with_attributes("7.7.2", "a communicator")
@with_errhandler("9.3.1", "a communicator")
class Comm(PointToPoint, PartitionedCommunication, BufferedSends, Collectives, FaultTolerance,
           WithAttributes, WithErrhandler, Handle, kind=1, null=0x04000000,
           error=ERR_COMM):  # fmt: skip
    """Communication context."""

    __slots__ = ()

    _inter = False  # whether it is the class of intercommunicators

    def __new__(cls, comm: Comm | None = None) -> Any:
        self = object.__new__(cls)
        Handle._copy(self, comm, "comm")
        return self

    def _communicator(self) -> Communicator:
        """The communicator of the calling rank."""
        impl = self._impl
        if isinstance(impl, Communicator):
            return impl
        if impl is WORLD:
            world: Communicator | None = current().world.communicator
            return world or world_communicator(current().world)
        impl = self._live()
        result: Communicator = (
            impl.find(current()) if impl.__class__ is PredefinedCommunicator else impl
        )
        return result

    def _usable(self) -> Communicator:
        """The communicator, for a call that communicates: an error if it is not intact."""
        communicator = self._communicator()
        if communicator.revoked:
            check_intact(self, communicator)
        return communicator

    @classmethod
    def _wrap(cls, impl: object) -> Any:
        """A handle of the class that fits the communicator."""
        handle = object.__new__(class_for(impl))
        handle._impl = impl
        if _shows:
            handle._show()
        return handle

    # Members.

    @mpi.local("7.3.2")
    def Get_group(self) -> Group:
        """Access the group associated with a communicator."""
        return Group._accessed(self._communicator().group)

    @property
    def group(self) -> Group:
        """Group."""
        return self.Get_group()

    @mpi.local("7.4.1")
    def Get_size(self) -> int:
        """Return the number of processes in a communicator."""
        return self._communicator().size

    @property
    def size(self) -> int:
        """Number of processes."""
        return self._communicator().size

    @mpi.local("7.4.1")
    def Get_rank(self) -> int:
        """Return the rank of this process in a communicator."""
        return self._communicator().rank_of(current().pid)

    @property
    def rank(self) -> int:
        """Rank of this process."""
        return self._communicator().rank_of(current().pid)

    @mpi.local("7.4.1")
    def Compare(self, comm: Comm) -> int:
        """Compare two communicators."""
        mine = self._communicator()
        if not isinstance(comm, Comm):
            raise wrong_type("comm", Comm, comm)
        other = comm._communicator()
        if mine is other:
            return IDENT
        if mine.inter != other.inter:
            return UNEQUAL
        sides = [(mine.group, other.group)]
        if mine.inter:
            sides.append((mine.remote.group, other.remote.group))
        if all(a == b for a, b in sides):
            return CONGRUENT
        if all(len(a) == len(b) and set(a) == set(b) for a, b in sides):
            return SIMILAR
        return UNEQUAL

    # New communicators.

    @mpi.collective("7.4.2")
    def Clone(self) -> Self:
        """Clone a communicator."""
        return self.Dup()

    @mpi.collective("7.4.2")
    def Dup(self, info: Info | None = None) -> Self:
        """Duplicate a communicator."""
        rank = current()
        communicator = self._usable()
        hints = _hints(rank, self, info)
        agreement = agree(
            rank,
            communicator,
            "comm_dup",
            None,
            CONTEXT_BYTES,
            lambda *_: duplicate(communicator),
            self,
        )
        new = self._of(side_of(rank, agreement))
        _describe(rank, new, hints)
        attributes.copied(self, new)
        errhandlers.inherit(self, new)
        return new

    @mpi.collective("7.4.2")
    def Dup_with_info(self, info: Info) -> Self:
        """Duplicate a communicator with hints."""
        check_info(info)
        return self.Dup(info)

    @mpi.collective("7.4.2")
    def Idup(self, info: Info | None = None) -> tuple[Self, Request]:
        """Nonblocking duplicate a communicator."""
        rank = current()
        communicator = self._usable()
        hints = _hints(rank, self, info)
        made, request = share_later(
            rank, communicator, "comm_idup", CONTEXT_BYTES, lambda: duplicate(communicator)
        )
        new = self._of(side_of(rank, made))
        _describe(rank, new, hints)
        attributes.copied(self, new)
        errhandlers.inherit(self, new)
        operation = RequestOperation(rank, self)
        operation.request = request
        return new, Request._of(operation)

    @mpi.collective("7.4.2")
    def Idup_with_info(self, info: Info) -> tuple[Self, Request]:
        """Nonblocking duplicate a communicator with hints."""
        check_info(info)
        return self.Idup(info)

    @mpi.collective("7.4.2")
    def Create(self, group: Group) -> Comm:
        """Create communicator from group."""
        rank = current()
        communicator = self._usable()
        if not isinstance(group, Group):
            raise wrong_type("group", Group, group)
        members = group._live().members
        for pid in members:
            if pid not in communicator.group:
                fail(ERR_GROUP, f"process {pid} of the group is not in the communicator", self)
        make = create_between if communicator.inter else create_all
        agreement = agree(
            rank, communicator, "comm_create", (communicator, members), CONTEXT_BYTES, make, self
        )
        new = agreement.get(rank.pid)
        return self._derived(rank, new)

    @mpi.collective("7.4.2")
    def Split(self, color: int = 0, key: int = 0) -> Comm:
        """Split communicator by color and key."""
        rank = current()
        communicator = self._usable()
        color, key = cint(color), cint(key)
        if color < 0 and color != UNDEFINED:
            fail(ERR_ARG, f"color is {color}, expected one that is not negative or UNDEFINED", self)

        value = communicator, color, key
        agreement = agree(
            rank, communicator, "comm_split", value, CONTEXT_BYTES, split_all, self, True
        )
        sides = agreement.get(color)
        new = None if sides is None else side_of(rank, sides)
        return self._derived(rank, new)

    @mpi.collective("7.4.2")
    def Split_type(self, split_type: int, key: int = 0, info: Info = INFO_NULL) -> Comm:
        """Split communicator by split type."""
        split_type = cint(split_type)
        check_info(info)
        color = split_color(current(), self._usable(), split_type, info)
        if color is None:
            fail(ERR_ARG, f"split_type is {split_type}, which is no type of split", self)
        return self.Split(color, key)

    @classmethod
    def _plain(cls) -> type[Comm]:
        """The class of communicators made from this one."""
        return Comm

    def _derived(self, rank: Rank, communicator: Communicator | None) -> Comm:
        """The handle of a communicator made from this one, or COMM_NULL."""
        if communicator is None:
            return self._plain()._of(None)
        new: Comm = Comm._wrap(communicator)
        errhandlers.inherit(self, new)
        return new

    @mpi.collective("7.4.3")
    def Free(self) -> None:
        """Free a communicator."""
        self._live()
        if self._is_predefined():
            fail(ERR_COMM, "a predefined communicator cannot be freed", self)
        attributes.deleted(self)
        commlocks.forget(self)
        errhandlers.forget(self)
        rank = current()
        LOCALS.of(rank).pop(self._impl, None)
        forget_parent(rank, self._impl)
        self._retire()

    @classmethod
    @mpi.local("11.8.2")
    def Get_parent(cls) -> Intercomm:
        """Return the parent intercommunicator for this process."""
        # One handle for each rank: freeing it makes it null wherever the program has stored it.
        rank = current()
        communicator = parent_of(rank)
        parent = PARENT.of(rank)
        handle: Any = parent.handle
        if handle is None:
            handle = parent.handle = parent_class()._of(communicator)
        elif handle._sync() is not communicator:
            handle._set(communicator)
        return handle  # type: ignore[no-any-return]

    @classmethod
    @mpi.collective("11.10.5")
    def Join(cls, fd: int) -> Intercomm:
        """Interconnect two processes connected by a socket."""
        return Comm._wrap(join(fd))  # type: ignore[no-any-return]

    @mpi.collective("11.10.4")
    def Disconnect(self) -> None:
        """Disconnect from a communicator."""
        rank = current()
        communicator = self._communicator()
        if self._is_predefined():
            fail(ERR_COMM, "a predefined communicator cannot be disconnected", self)
        if not communicator.revoked:
            agree(rank, communicator, "comm_disconnect", None, 0, lambda *values: True, self)
        self.Free()

    # Names and hints.

    @mpi.local("7.8")
    def Get_name(self) -> str:
        """Get the print name for this communicator."""
        if self._sync() is None:
            return "MPI_COMM_NULL"
        return local(current(), self._live()).name

    @mpi.local("7.8")
    def Set_name(self, name: str) -> None:
        """Set the print name for this communicator."""
        impl = self._live()
        local(current(), impl).name = cstring(name)[: MAX_OBJECT_NAME - 1]

    @property
    def name(self) -> str:
        """Print name."""
        return self.Get_name()

    @name.setter
    def name(self, value: str) -> None:
        self.Set_name(value)

    @mpi.local("7.4.4")
    def Set_info(self, info: Info) -> None:
        """Set new values for the hints associated with a communicator."""
        impl = self._live()
        check_info(info)
        local(current(), impl).info = info.Dup() if info else None

    @mpi.local("7.4.4")
    def Get_info(self) -> Info:
        """Return the current hints for a communicator."""
        hints = local(current(), self._live()).info
        return Info.Create() if hints is None else hints.Dup()

    @property
    def info(self) -> Info:
        """Info hints."""
        return self.Get_info()

    @info.setter
    def info(self, value: Info) -> None:
        self.Set_info(value)

    @mpi.local("7.6.1")
    def Is_inter(self) -> bool:
        """Return whether the communicator is an intercommunicator."""
        return self._communicator().inter

    @property
    def is_inter(self) -> bool:
        """Is intercommunicator."""
        return self.Is_inter()

    @mpi.local("7.6.1")
    def Is_intra(self) -> bool:
        """Return whether the communicator is an intracommunicator."""
        return not self._communicator().inter

    @property
    def is_intra(self) -> bool:
        """Is intracommunicator."""
        return self.Is_intra()

    @mpi.local("8.5.5")
    def Get_topology(self) -> int:
        """Return the type of topology (if any) associated with a communicator."""
        topology = self._communicator().topology
        return UNDEFINED if topology is None else topology.kind

    @property
    def topology(self) -> int:
        """Topology type."""
        return self.Get_topology()

    @property
    def is_topo(self) -> bool:
        """Is a topology."""
        if self._sync() is None:
            return False
        return self._communicator().topology is not None

    @mpi.collective("11.4.2")
    def Abort(self, errorcode: int = 0) -> NoReturn:
        """Terminate the MPI execution environment."""
        self._live()
        current().abort(cint(errorcode))


COMM_NULL = Comm._define("COMM_NULL", None, 0x04000000)

# The class of a handle depends on the kind of communicator. Chapters that follow add theirs.
_classes: list[tuple[Any, type[Comm]]] = []


def use_class(fits: object, cls: type[Comm]) -> None:
    """Make `cls` the class of handles to communicators for which `fits` is true.

    Later classes are tried first, because they are more special.
    """
    _classes.insert(0, (fits, cls))


def parent_class() -> type[Comm]:
    """The class of handles to the parents of processes, of which some are null."""
    for _, cls in _classes:
        if cls._inter:
            return cls
    return Comm


def class_for(impl: object) -> type[Comm]:
    """The class of a handle to a communicator."""
    if impl is not None:
        for fits, cls in _classes:
            if fits(impl):
                return cls
    return Comm


def _hints(rank: Rank, comm: Comm, info: Info | None) -> Any:
    """The hints of a duplicate: those given, else those of the original."""
    if info is not None:
        check_info(info)
        return info.Dup() if info else None
    old = local(rank, comm._impl).info
    return None if old is None else old.Dup()


def _describe(rank: Rank, new: Comm, hints: object) -> None:
    if hints is not None:
        local(rank, new._impl).info = hints
