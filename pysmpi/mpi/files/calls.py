"""Data access (MPI 4.1, section 14.4): all calls that read or write a file.

Calls differ in the position (an explicit offset, the process's own pointer, or the shared one,
singly or in the order of the ranks), in whether all processes make the call together, and in
whether the call waits, returns a request, or is split into begin and end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import fail, whole
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.buffers.spellings import reduction
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.datatypes.status import Status, check_status
from pysmpi.mpi.files.access import WATCHER, CollectiveAccess, FileAccess, take_turn
from pysmpi.mpi.files.pointers import FileSide, OpenFile
from pysmpi.mpi.point_to_point.requests import Request

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec

# The position of an access, besides an explicit offset.
INDIVIDUAL, SHARED, ORDERED = "individual", "shared", "ordered"

OFFSET_MAX = (1 << 63) - 1


def offset_argument(value: object) -> int:
    """An MPI_Offset."""
    number = whole(value)
    if not -OFFSET_MAX - 1 <= number <= OFFSET_MAX:
        raise OverflowError(f"{number} is too large to convert to MPI_Offset")
    return number


def check_access(file: DataAccess, side: FileSide, write: bool, where: object) -> None:
    """Raise an error for calls that the access mode does not allow."""
    amode = side.file.amode
    if write and amode & c.MODE_RDONLY:
        fail(c.ERR_READ_ONLY, "a write to a file that was opened with MODE_RDONLY", file)
    if not write and amode & c.MODE_WRONLY:
        fail(c.ERR_ACCESS, "a read from a file that was opened with MODE_WRONLY", file)
    if amode & c.MODE_SEQUENTIAL and where not in (SHARED, ORDERED):
        sequential(file)


def sequential(file: DataAccess) -> None:
    """The error of a call that a sequential file does not have."""
    fail(
        c.ERR_UNSUPPORTED_OPERATION,
        "a file opened with MODE_SEQUENTIAL has its shared pointer only, which cannot be moved",
        file,
    )


def new_access(
    file: DataAccess, rank: Rank, write: bool, where: object, buf: object, name: str | None
) -> tuple[FileAccess, int]:
    """An access that is about to begin, and its position in etypes.

    `name` is that of a collective call, None for others.
    """
    message = reduction(buf, not write)
    side: FileSide = file._live()
    check_access(file, side, write, where)
    if type(where) is int and where < 0:
        fail(c.ERR_ARG, f"offset is {where}, expected one that is not negative", file)
    if name is None:
        access = FileAccess(rank, file, side, write, message)
    else:
        order = _order(side.file) if where is ORDERED else None
        access = CollectiveAccess(rank, file, side, write, message, name, order)
    unit = side.view.unit
    if access.nbytes % unit:
        fail(
            c.ERR_IO,
            f"the message takes {access.nbytes} bytes of the file, which are not "
            f"whole etypes of {unit}",
            file,
        )
    if type(where) is int:
        return access, where
    if where is INDIVIDUAL:
        return access, side.pointer
    if where is SHARED:
        control = rank.engine.control
        if control is not None:
            control.turn(rank.process, f"pointer {control.label(side.file.communicator.p2p)}", "")
        # A call that moves the shared pointer must read and write it in its place.
        rank.process.wait_until(rank.engine.now + side.disk.latency)
        position = side.file.pointer
        side.file.pointer = position + access.nbytes // unit
        return access, position
    return access, 0


def _order(shared: OpenFile) -> Any:
    """Give each rank its part of the file, from the shared pointer on."""

    def order(counts: dict[int, int]) -> dict[int, int]:
        positions = {}
        for me in range(len(counts)):
            positions[me] = shared.pointer
            shared.pointer += counts[me]
        return positions

    return order


def start(
    file: DataAccess, write: bool, where: object, buf: object, name: str | None
) -> FileAccess:
    """Begin an access in the background; the process's own pointer moves at once."""
    rank = current()
    process = rank.process
    process.finish_compute()
    access, position = new_access(file, rank, write, where, buf, name)
    unit = access.side.view.unit
    if rank.engine.control is not None and name is None and access.nbytes:
        access.place(position * unit)
        take_turn(rank, access.side, access.effect())
    watcher = WATCHER.peek(rank.universe)
    if watcher is not None:
        watcher(access)
    access.begin(position * unit)
    if where is INDIVIDUAL:
        access.side.pointer = position + access.nbytes // unit
    return access


def finish(file: DataAccess, access: FileAccess, status: Status | None) -> None:
    """Wait for an access, and raise its error."""
    rank = current()
    process = rank.process
    assert access.request is not None
    process.wait([access.request])
    error = access.fill(status)
    if error:
        fail(error, access.detail, file)


def run(
    file: DataAccess,
    write: bool,
    where: object,
    buf: object,
    status: Status | None,
    name: str | None = None,
) -> None:
    """Do an access."""
    if status is not None:
        check_status(status)
    access = start(file, write, where, buf, name)
    try:
        finish(file, access, status)
    finally:
        if where is INDIVIDUAL and access.got < access.nbytes:
            # The pointer moves to the end of the data.
            unit = access.side.view.unit
            access.side.pointer -= access.nbytes // unit - access.got // unit


def later(
    file: DataAccess, write: bool, where: object, buf: object, name: str | None = None
) -> Request:
    """Start an access; return its request."""
    access = start(file, write, where, buf, name)
    request: Request = Request._of(access)
    request.ob_buf = access.message
    return request


def begin(file: DataAccess, write: bool, where: object, buf: object, name: str) -> None:
    """The first half of a split collective access; a process has at most one at a time."""
    side: FileSide = file._live()
    if side.split is not None:
        fail(c.ERR_IO, f"{name}_begin while a {side.split[0]} has begun on the same file", file)
    access = start(file, write, where, buf, name)
    side.split = name, access


def end(file: DataAccess, buf: object, status: Status | None, write: bool, name: str) -> None:
    """The second half of a split collective access."""
    reduction(buf, not write)
    if status is not None:
        check_status(status)
    side: FileSide = file._live()
    if side.split is None or side.split[0] != name:
        begun = "nothing" if side.split is None else f"a {side.split[0]}"
        fail(c.ERR_IO, f"{name}_end where {begun} has begun", file)
    access = side.split[1]
    side.split = None
    finish(file, access, status)


class DataAccess:
    """The methods of a file that read and write."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _live(self) -> FileSide: ...

    # Explicit offsets.

    @mpi.file("14.4.2")
    def Read_at(self, offset: int, buf: BufSpec, status: Status | None = None) -> None:
        """Read using explicit offset."""
        run(self, False, offset_argument(offset), buf, status)

    @mpi.file("14.4.2")
    def Read_at_all(self, offset: int, buf: BufSpec, status: Status | None = None) -> None:
        """Collective read using explicit offset."""
        run(self, False, offset_argument(offset), buf, status, "read_at_all")

    @mpi.file("14.4.2")
    def Write_at(self, offset: int, buf: BufSpec, status: Status | None = None) -> None:
        """Write using explicit offset."""
        run(self, True, offset_argument(offset), buf, status)

    @mpi.file("14.4.2")
    def Write_at_all(self, offset: int, buf: BufSpec, status: Status | None = None) -> None:
        """Collective write using explicit offset."""
        run(self, True, offset_argument(offset), buf, status, "write_at_all")

    @mpi.file("14.4.2")
    def Iread_at(self, offset: int, buf: BufSpec) -> Request:
        """Nonblocking read using explicit offset."""
        return later(self, False, offset_argument(offset), buf)

    @mpi.file("14.4.2")
    def Iread_at_all(self, offset: int, buf: BufSpec) -> Request:
        """Nonblocking collective read using explicit offset."""
        return later(self, False, offset_argument(offset), buf, "iread_at_all")

    @mpi.file("14.4.2")
    def Iwrite_at(self, offset: int, buf: BufSpec) -> Request:
        """Nonblocking write using explicit offset."""
        return later(self, True, offset_argument(offset), buf)

    @mpi.file("14.4.2")
    def Iwrite_at_all(self, offset: int, buf: BufSpec) -> Request:
        """Nonblocking collective write using explicit offset."""
        return later(self, True, offset_argument(offset), buf, "iwrite_at_all")

    # The process's own pointer.

    @mpi.file("14.4.3")
    def Read(self, buf: BufSpec, status: Status | None = None) -> None:
        """Read using individual file pointer."""
        run(self, False, INDIVIDUAL, buf, status)

    @mpi.file("14.4.3")
    def Read_all(self, buf: BufSpec, status: Status | None = None) -> None:
        """Collective read using individual file pointer."""
        run(self, False, INDIVIDUAL, buf, status, "read_all")

    @mpi.file("14.4.3")
    def Write(self, buf: BufSpec, status: Status | None = None) -> None:
        """Write using individual file pointer."""
        run(self, True, INDIVIDUAL, buf, status)

    @mpi.file("14.4.3")
    def Write_all(self, buf: BufSpec, status: Status | None = None) -> None:
        """Collective write using individual file pointer."""
        run(self, True, INDIVIDUAL, buf, status, "write_all")

    @mpi.file("14.4.3")
    def Iread(self, buf: BufSpec) -> Request:
        """Nonblocking read using individual file pointer."""
        return later(self, False, INDIVIDUAL, buf)

    @mpi.file("14.4.3")
    def Iread_all(self, buf: BufSpec) -> Request:
        """Nonblocking collective read using individual file pointer."""
        return later(self, False, INDIVIDUAL, buf, "iread_all")

    @mpi.file("14.4.3")
    def Iwrite(self, buf: BufSpec) -> Request:
        """Nonblocking write using individual file pointer."""
        return later(self, True, INDIVIDUAL, buf)

    @mpi.file("14.4.3")
    def Iwrite_all(self, buf: BufSpec) -> Request:
        """Nonblocking collective write using individual file pointer."""
        return later(self, True, INDIVIDUAL, buf, "iwrite_all")

    # The shared pointer.

    @mpi.file("14.4.4")
    def Read_shared(self, buf: BufSpec, status: Status | None = None) -> None:
        """Read using shared file pointer."""
        run(self, False, SHARED, buf, status)

    @mpi.file("14.4.4")
    def Write_shared(self, buf: BufSpec, status: Status | None = None) -> None:
        """Write using shared file pointer."""
        run(self, True, SHARED, buf, status)

    @mpi.file("14.4.4")
    def Iread_shared(self, buf: BufSpec) -> Request:
        """Nonblocking read using shared file pointer."""
        return later(self, False, SHARED, buf)

    @mpi.file("14.4.4")
    def Iwrite_shared(self, buf: BufSpec) -> Request:
        """Nonblocking write using shared file pointer."""
        return later(self, True, SHARED, buf)

    @mpi.file("14.4.4")
    def Read_ordered(self, buf: BufSpec, status: Status | None = None) -> None:
        """Collective read using shared file pointer."""
        run(self, False, ORDERED, buf, status, "read_ordered")

    @mpi.file("14.4.4")
    def Write_ordered(self, buf: BufSpec, status: Status | None = None) -> None:
        """Collective write using shared file pointer."""
        run(self, True, ORDERED, buf, status, "write_ordered")

    # Split collective calls.

    @mpi.file("14.4.5")
    def Read_at_all_begin(self, offset: int, buf: BufSpec) -> None:
        """Start a split collective read using explicit offset."""
        begin(self, False, offset_argument(offset), buf, "read_at_all")

    @mpi.file("14.4.5")
    def Read_at_all_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Complete a split collective read using explicit offset."""
        end(self, buf, status, False, "read_at_all")

    @mpi.file("14.4.5")
    def Write_at_all_begin(self, offset: int, buf: BufSpec) -> None:
        """Start a split collective write using explicit offset."""
        begin(self, True, offset_argument(offset), buf, "write_at_all")

    @mpi.file("14.4.5")
    def Write_at_all_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Complete a split collective write using explicit offset."""
        end(self, buf, status, True, "write_at_all")

    @mpi.file("14.4.5")
    def Read_all_begin(self, buf: BufSpec) -> None:
        """Start a split collective read using individual file pointer."""
        begin(self, False, INDIVIDUAL, buf, "read_all")

    @mpi.file("14.4.5")
    def Read_all_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Complete a split collective read using individual file pointer."""
        end(self, buf, status, False, "read_all")

    @mpi.file("14.4.5")
    def Write_all_begin(self, buf: BufSpec) -> None:
        """Start a split collective write using individual file pointer."""
        begin(self, True, INDIVIDUAL, buf, "write_all")

    @mpi.file("14.4.5")
    def Write_all_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Complete a split collective write using individual file pointer."""
        end(self, buf, status, True, "write_all")

    @mpi.file("14.4.5")
    def Read_ordered_begin(self, buf: BufSpec) -> None:
        """Start a split collective read using shared file pointer."""
        begin(self, False, ORDERED, buf, "read_ordered")

    @mpi.file("14.4.5")
    def Read_ordered_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Complete a split collective read using shared file pointer."""
        end(self, buf, status, False, "read_ordered")

    @mpi.file("14.4.5")
    def Write_ordered_begin(self, buf: BufSpec) -> None:
        """Start a split collective write using shared file pointer."""
        begin(self, True, ORDERED, buf, "write_ordered")

    @mpi.file("14.4.5")
    def Write_ordered_end(self, buf: BufSpec, status: Status | None = None) -> None:
        """Complete a split collective write using shared file pointer."""
        end(self, buf, status, True, "write_ordered")
