"""Windows for one-sided communication (MPI 4.1, chapter 12).

This chapter makes and frees windows and describes them; the calls that communicate are in `rma`,
those that synchronise in `epochs`.
"""

from __future__ import annotations

from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Self

import numpy as np

from pysmpi.kernel.schedule import Schedule
from pysmpi.mpi.base import attributes, errhandlers
from pysmpi.mpi.base.attributes import WithAttributes, with_attributes
from pysmpi.mpi.base.constants import (
    ERR_BASE,
    ERR_DISP,
    ERR_RMA_ATTACH,
    ERR_RMA_FLAVOR,
    ERR_RMA_SHARED,
    ERR_RMA_SYNC,
    ERR_SIZE,
    ERR_WIN,
    MAX_OBJECT_NAME,
    PROC_NULL,
    WIN_BASE,
    WIN_CREATE_FLAVOR,
    WIN_DISP_UNIT,
    WIN_FLAVOR_ALLOCATE,
    WIN_FLAVOR_CREATE,
    WIN_FLAVOR_DYNAMIC,
    WIN_FLAVOR_SHARED,
    WIN_MODEL,
    WIN_SIZE,
    WIN_UNIFIED,
)
from pysmpi.mpi.base.errhandlers import WithErrhandler, with_errhandler
from pysmpi.mpi.base.exceptions import cint, cstring, fail, whole
from pysmpi.mpi.base.exporting import Exporter, acquire, address_of
from pysmpi.mpi.base.handles import Handle, wrong_type
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info, pairs
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.buffers.memory import buffer, is_bottom, over
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.collective.schedules import inherit_levels, schedule_of, scheduled_call
from pysmpi.mpi.communicators.intracomm import COMM_SELF, Intracomm
from pysmpi.mpi.groups.agreement import agree
from pysmpi.mpi.groups.communicator import Communicator, new_communicator
from pysmpi.mpi.groups.groups import Group
from pysmpi.mpi.rma.calls import OneSided
from pysmpi.mpi.rma.epochs import Synchronization
from pysmpi.mpi.rma.window import NOTHING, AttachedMemory, Window, WindowSide

if TYPE_CHECKING:
    from mpi4py.typing import Bottom, Buffer

__all__ = ["Win", "WIN_NULL"]

POINTER = 8  # bytes of messages about the memory of processes

# MPI's defaults for programs without hints (MPI 4.1, section 12.2.1).
_HINTS = {
    "no_locks": "false",
    "accumulate_ordering": "rar,raw,war,waw",
    "accumulate_ops": "same_op_no_op",
    "mpi_accumulate_granularity": "0",
    "same_size": "false",
    "same_disp_unit": "false",
}


def _pointers(rank: Rank, communicator: Communicator) -> Schedule:
    """The messages in which the processes tell each other where their memory is."""
    me = communicator.rank_of(rank.pid)
    call = scheduled_call(communicator, me, "allgather", POINTER)
    schedule, _, _ = schedule_of(communicator, me, call, communicator.begun(me))
    return schedule


@with_attributes("7.7.3", "a window")
@with_errhandler("9.3.2", "a window")
class Win(
    OneSided,
    Synchronization,
    WithAttributes,
    WithErrhandler,
    Handle,
    Exporter,
    kind=8,
    null=0x20000000,
    error=ERR_WIN,
):
    """Remote memory access context."""

    __slots__ = ("_room",)  # as large as mpi4py's

    _impl: WindowSide | None

    def __new__(cls, win: Win | None = None) -> Self:
        self = object.__new__(cls)
        Handle._copy(self, win, "win")
        return self

    @property
    def _exporter(self) -> np.ndarray | None:
        side = self._sync()
        if side is None or not side.memory.nbytes:
            return None
        # An array, because views of a memoryview do not survive the garbage collector.
        return np.frombuffer(side.memory, np.uint8)

    # Making and freeing windows.

    @classmethod
    @mpi.one_sided("12.2.1")
    def Create(
        cls,
        memory: Buffer | Bottom,
        disp_unit: int = 1,
        info: Info = INFO_NULL,
        comm: Intracomm = COMM_SELF,
    ) -> Self:
        """Create an window object for one-sided communication."""
        unit = whole(disp_unit)
        communicator = _arguments(info, comm)
        if is_bottom(memory):
            view, address = NOTHING, 0
        else:
            view = acquire(memory, writable=True).memory
            address = address_of(view)
            _check_base(view, comm)
        _check_unit(unit, comm)
        side = WindowSide(current(), view, memory, address, unit)
        return cls._made(communicator, side, info, WIN_FLAVOR_CREATE)

    @classmethod
    @mpi.one_sided("12.2.2")
    def Allocate(
        cls,
        size: int,
        disp_unit: int = 1,
        info: Info = INFO_NULL,
        comm: Intracomm = COMM_SELF,
    ) -> Self:
        """Create an window object for one-sided communication."""
        nbytes, unit = whole(size), whole(disp_unit)
        communicator = _arguments(info, comm)
        _check_size(nbytes, comm)
        _check_unit(unit, comm)
        side = WindowSide(current(), NOTHING, None, 0, unit)
        _own(side, _storage(nbytes), 0, nbytes)
        return cls._made(communicator, side, info, WIN_FLAVOR_ALLOCATE)

    @classmethod
    @mpi.one_sided("12.2.3")
    def Allocate_shared(
        cls,
        size: int,
        disp_unit: int = 1,
        info: Info = INFO_NULL,
        comm: Intracomm = COMM_SELF,
    ) -> Self:
        """Create an window object for one-sided communication."""
        nbytes, unit = whole(size), whole(disp_unit)
        communicator = _arguments(info, comm)
        _check_size(nbytes, comm)
        _check_unit(unit, comm)
        rank = current()
        for pid in communicator.group:
            if not _together(rank, communicator.universe.ranks[pid]):
                fail(ERR_RMA_SHARED, "the processes of comm are on different hosts", comm)
        side = WindowSide(rank, NOTHING, None, nbytes, unit)
        return cls._made(communicator, side, info, WIN_FLAVOR_SHARED)

    @classmethod
    @mpi.one_sided("12.2.4")
    def Create_dynamic(cls, info: Info = INFO_NULL, comm: Intracomm = COMM_SELF) -> Self:
        """Create an window object for one-sided communication."""
        communicator = _arguments(info, comm)
        return cls._made(
            communicator, WindowSide(current(), NOTHING, None, 0, 1), info, WIN_FLAVOR_DYNAMIC
        )

    @classmethod
    def _made(cls, communicator: Communicator, side: WindowSide, info: Info, flavor: int) -> Self:
        """The window that all processes of a communicator make together."""
        _hint(side, info)
        rank = side.rank
        agree(
            rank,
            communicator,
            "win_create",
            (side, flavor),
            POINTER,
            lambda values: _join(communicator, values),
            messages=_pointers(rank, communicator),
        )
        return cls._of(side)

    @mpi.one_sided("12.2.5")
    def Free(self) -> None:
        """Free a window."""
        side = self._live()
        if side.lock_all is not None or side.locks:
            fail(ERR_RMA_SYNC, "Free while the process holds a lock of the window", self)
        if side.started is not None or side.exposure is not None:
            fail(ERR_RMA_SYNC, "Free inside of an epoch of Start or Post", self)
        attributes.deleted(self)
        rank = current()
        side.barrier(rank)
        outgoing = [access for target in side.outgoing.values() for access in target]
        side.complete_accesses(rank, [*side.incoming, *outgoing])
        side.barrier(rank)
        errhandlers.forget(self)
        self._retire()
        side.release()

    # Memory.

    @mpi.one_sided("12.2.3")
    def Shared_query(self, rank: int) -> tuple[buffer, int]:
        """Query the process-local address for remote memory segments."""
        wanted = cint(rank)
        side = self._live()
        window = side.window
        if window.flavor == WIN_FLAVOR_DYNAMIC:
            fail(ERR_RMA_FLAVOR, "a dynamic window has no shared memory", self)
        if wanted == PROC_NULL:
            other = next((s for s in window.sides if s.memory.nbytes), side)
        else:
            other = side.target(self, wanted)
        shared = window.flavor != WIN_FLAVOR_CREATE and _together(side.rank, other.rank)
        if other is not side and not shared:
            return over(NOTHING, address=0, source=self), 1
        return self._over(other), other.unit

    @mpi.one_sided("12.2.4")
    def Attach(self, memory: Buffer) -> None:
        """Attach a local memory region."""
        view = acquire(memory, writable=True).memory
        side = self._live()
        if side.window.flavor != WIN_FLAVOR_DYNAMIC:
            fail(ERR_RMA_FLAVOR, "memory can be attached to dynamic windows only", self)
        address = address_of(view)
        _check_base(view, self)
        for region in side.regions.values():
            if address < region.address + region.memory.nbytes and (
                region.address < address + view.nbytes
            ):
                fail(ERR_RMA_ATTACH, "the memory overlaps with some that is attached", self)
        side.regions[address] = AttachedMemory(address, view, memory)

    @mpi.one_sided("12.2.4")
    def Detach(self, memory: Buffer) -> None:
        """Detach a local memory region."""
        view = acquire(memory, writable=True).memory
        side = self._live()
        if side.regions.pop(address_of(view), None) is None:
            fail(ERR_RMA_ATTACH, "the memory is not attached", self)

    @mpi.one_sided()
    def tomemory(self) -> buffer:
        """Return window memory buffer."""
        return self._over(self._live())

    def _over(self, side: WindowSide) -> buffer:
        return over(side.memory, side.owner, side.address, self)

    # Info and group.

    @mpi.local("12.2.7")
    def Set_info(self, info: Info) -> None:
        """Set new values for the hints associated with a window."""
        side = self._live()
        check_info(info)
        _hint(side, info)

    @mpi.local("12.2.7")
    def Get_info(self) -> Info:
        """Return the current hints for a window."""
        side = self._live()
        hints = Info.Create(_HINTS)
        if side.window.flavor in (WIN_FLAVOR_ALLOCATE, WIN_FLAVOR_SHARED):
            hints.Set("alloc_shared_noncontig", "false")
        hints.update(side.info)
        return hints

    @property
    def info(self) -> Info:
        """Info hints."""
        return self.Get_info()

    @info.setter
    def info(self, value: Info) -> None:
        self.Set_info(value)

    @mpi.local("12.2.6")
    def Get_group(self) -> Group:
        """Access the group of processes that created the window."""
        return Group._accessed(self._live().window.communicator.group)

    @property
    def group(self) -> Group:
        """Group."""
        return self.Get_group()

    @property
    def group_size(self) -> int:
        """Group size."""
        return self._live().window.communicator.size

    @property
    def group_rank(self) -> int:
        """Group rank."""
        return self._live().me

    @property
    def attrs(self) -> tuple[int, int, int]:
        """Attributes."""
        side = self._live()
        return side.address, side.memory.nbytes, side.unit

    @property
    def flavor(self) -> int:
        """Create flavor."""
        return self._live().window.flavor

    @property
    def model(self) -> int:
        """Memory model."""
        self._live()
        return WIN_UNIFIED

    # Names.

    @mpi.local("7.8")
    def Get_name(self) -> str:
        """Get the print name for this window."""
        side = self._sync()
        return "MPI_WIN_NULL" if side is None else side.name

    @mpi.local("7.8")
    def Set_name(self, name: str) -> None:
        """Set the print name for this window."""
        self._live().name = cstring(name)[: MAX_OBJECT_NAME - 1]

    @property
    def name(self) -> str:
        """Print name."""
        return self.Get_name()

    @name.setter
    def name(self, value: str) -> None:
        self.Set_name(value)


def _arguments(info: object, comm: object) -> Communicator:
    """Check the common arguments of window constructors; return the communicator."""
    check_info(info)
    if not isinstance(comm, Intracomm):
        raise wrong_type("comm", Intracomm, comm)
    return comm._communicator()


def _check_size(size: int, comm: Intracomm) -> None:
    if size < 0:
        fail(ERR_SIZE, f"size is {size}", comm)


def _check_base(view: memoryview, subject: object) -> None:
    # numpy, which finds addresses elsewhere, takes other memory in place of address 0.
    if view.nbytes and addressof(c_char.from_buffer(view)) == 0:
        fail(
            ERR_BASE,
            f"the memory of {view.nbytes} bytes begins at address 0, which no program can use",
            subject,
        )


def _check_unit(unit: int, comm: Intracomm) -> None:
    if unit <= 0:
        fail(ERR_DISP, f"disp_unit is {unit}, expected at least 1", comm)


def _together(rank: Rank, other: Rank) -> bool:
    """Whether two ranks are on one host."""
    return rank.host is other.host


def _storage(nbytes: int) -> np.ndarray:
    """Cleared memory."""
    return np.zeros(nbytes, np.uint8)


def _own(side: WindowSide, storage: np.ndarray, first: int, nbytes: int) -> None:
    """Give a process a part of some memory; a part without bytes has no address, as in MPICH."""
    side.owner = storage
    side.memory = storage.data[first : first + nbytes]
    side.address = address_of(storage) + first if nbytes else 0


def _hint(side: WindowSide, info: Info) -> None:
    """Take over the hints of a program."""
    side.info.update(pairs(info))
    side.ordered = side.info.get("accumulate_ordering", "").strip() != "none"


def _join(communicator: Communicator, values: dict[int, tuple[WindowSide, int]]) -> Window:
    """Make one window of the sides that the processes of a communicator contribute."""
    sides = [values[me][0] for me in range(communicator.size)]
    among = new_communicator(communicator.universe, communicator.group)
    window = Window(among, values[0][1], sides)
    inherit_levels(among, communicator)
    if window.flavor == WIN_FLAVOR_SHARED:
        _share(sides)
    for me, side in enumerate(sides):
        side.me = me
        side.window = window
    return window


def _share(sides: list[WindowSide]) -> None:
    """One piece of memory, with a part for each process in order; `address` gives the size."""
    sizes = [side.address for side in sides]
    storage = _storage(sum(sizes))
    first = 0
    for side, size in zip(sides, sizes):
        _own(side, storage, first, size)
        first += size


attributes.PREDEFINED["Win"].update(
    {
        WIN_BASE: lambda win: win._live().address,
        WIN_SIZE: lambda win: win._live().memory.nbytes,
        WIN_DISP_UNIT: lambda win: win._live().unit,
        WIN_CREATE_FLAVOR: lambda win: win._live().window.flavor,
        WIN_MODEL: lambda win: WIN_UNIFIED,
    }
)

WIN_NULL = Win._define("WIN_NULL", None, 0x20000000)
