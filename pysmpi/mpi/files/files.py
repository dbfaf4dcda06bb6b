"""Files (MPI 4.1, chapter 14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base import errhandlers
from pysmpi.mpi.base.errhandlers import WithErrhandler, with_errhandler
from pysmpi.mpi.base.exceptions import cint, cstring, fail, truth
from pysmpi.mpi.base.handles import Handle, wrong_type
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info, pairs
from pysmpi.mpi.base.ranks import Universe, current
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.communicators.intracomm import Intracomm
from pysmpi.mpi.datatypes.datatypes import BYTE, Datatype, _reference
from pysmpi.mpi.files import representations as file_representations
from pysmpi.mpi.files.access import MEASURE, take_turn
from pysmpi.mpi.files.calls import DataAccess, offset_argument, sequential
from pysmpi.mpi.files.disks import disk_of
from pysmpi.mpi.files.pointers import FileSide, OpenFile
from pysmpi.mpi.files.representations import Register_datarep
from pysmpi.mpi.files.storage import FileError, Storage, check_amode, delete, real_path
from pysmpi.mpi.groups.agreement import agree
from pysmpi.mpi.groups.communicator import new_communicator
from pysmpi.mpi.groups.groups import Group, Members

if TYPE_CHECKING:
    from os import PathLike
    from typing import AnyStr

__all__ = ["FILE_NULL", "File", "Register_datarep"]

# Bytes of messages of calls that only agree, and of opening a file; not the length of its name,
# because the time of a run must not depend on its directory.
WORD = 8
NAME = 256


@with_errhandler("9.3.3", "a file")
class File(DataAccess, WithErrhandler, Handle, kind=0, null=0, error=c.ERR_FILE, release="Close"):
    """File I/O context."""

    __slots__ = ()

    _null_bears_errors = True

    def __new__(cls, file: File | None = None) -> Any:
        self = object.__new__(cls)
        Handle._copy(self, file, "file")
        return self

    def _live(self) -> FileSide:
        side: FileSide | None = self._sync()
        if side is None:
            fail(c.ERR_FILE, "null file", FILE_NULL)
        return side

    def _raise(self, error: FileError) -> NoReturn:
        fail(error.code, error.detail, self)

    def _together(
        self, call: str, value: object, make: Callable[[Any], None], check: FileError | None = None
    ) -> None:
        """Make a collective call with the same `value` on all processes; `make` runs once.

        An error of the calling rank's arguments (`check`) is raised first.
        """
        if check is not None:
            self._raise(check)
        side = self._live()
        rank = current()

        def decide(values: Mapping[int, object]) -> FileError | None:
            if any(other != value for other in values.values()):
                return FileError(c.ERR_NOT_SAME, f"{call}: the processes differ in its arguments")
            try:
                make(value)
            except FileError as error:
                return error
            return None

        error = agree(rank, side.file.communicator, f"file_{call}", value, WORD, decide)
        if error is not None:
            self._raise(error)

    def _visit(self) -> None:
        """Let the time of a request to the file system pass."""
        side = self._live()
        rank = current()
        process = rank.process
        process.finish_compute()
        process.wait_until(rank.engine.now + side.disk.latency)

    # Opening and closing.

    @classmethod
    @mpi.file("14.2.1")
    def Open(
        cls,
        comm: Intracomm,
        filename: PathLike[AnyStr] | str | bytes,
        amode: int = c.MODE_RDONLY,
        info: Info = INFO_NULL,
    ) -> Self:
        """Open a file."""
        if not isinstance(comm, Intracomm):
            raise wrong_type("comm", Intracomm, comm)
        path = real_path(filename)
        mode = cint(amode)
        hints = pairs(check_info(info))
        rank = current()
        communicator = comm._usable()
        universe, members = rank.universe, communicator.group
        process = rank.process
        agreement = agree(
            rank, communicator, "file_open", (path, mode, _permissions(hints)), NAME,
            lambda values: _opened(universe, members, values),
        )  # fmt: skip
        disk = disk_of(rank)
        process.wait_until(rank.engine.now + disk.latency)
        if isinstance(agreement, FileError):
            FILE_NULL._raise(agreement)
        side = FileSide(rank, agreement, disk)
        side.hint(hints)
        if mode & c.MODE_APPEND:
            side.pointer = agreement.pointer
        file = cls._of(side)
        errhandlers.adopt(file)
        return file

    @mpi.file("14.2.2")
    def Close(self) -> None:
        """Close a file."""
        side = self._live()
        if side.split is not None:
            fail(c.ERR_IO, f"Close while a {side.split[0]} has begun", self)
        storage = side.file.storage
        rank = current()

        def decide(values: object) -> FileError | None:
            try:
                storage.close_for_good()
            except FileError as error:
                return error
            return None

        error = agree(rank, side.file.communicator, "file_close", None, 0, decide)
        errhandlers.forget(self)
        self._retire()
        if error is not None:
            FILE_NULL._raise(error)

    @classmethod
    @mpi.file("14.2.3")
    def Delete(cls, filename: PathLike[AnyStr] | str | bytes, info: Info = INFO_NULL) -> None:
        """Delete a file."""
        path = real_path(filename)
        check_info(info)
        rank = current()
        process = rank.process
        process.finish_compute()
        process.wait_until(rank.engine.now + disk_of(rank).latency)
        try:
            delete(path)
        except FileError as error:
            FILE_NULL._raise(error)

    # Size.

    @mpi.file("14.2.4")
    def Set_size(self, size: int) -> None:
        """Set the file size."""
        number = offset_argument(size)
        storage = self._live().file.storage
        self._together("set_size", number, storage.resize, self._unfit("size", number))

    @mpi.file("14.2.5")
    def Preallocate(self, size: int) -> None:
        """Preallocate storage space for a file."""
        number = offset_argument(size)
        storage = self._live().file.storage
        self._together("preallocate", number, storage.reserve, self._unfit("size", number))

    def _unfit(self, name: str, size: int) -> FileError | None:
        """The reason why the size cannot be changed."""
        amode = self._live().file.amode
        if amode & c.MODE_SEQUENTIAL:
            sequential(self)
        if size < 0:
            return FileError(c.ERR_ARG, f"{name} is {size}, expected one that is not negative")
        if amode & c.MODE_RDONLY:
            return FileError(c.ERR_READ_ONLY, "the file was opened with MODE_RDONLY")
        return None

    @mpi.local("14.2.6")
    def Get_size(self) -> int:
        """Return the file size."""
        self._visit()
        take_turn(current(), self._live(), MEASURE)
        try:
            return self._live().file.storage.size()
        except FileError as error:
            self._raise(error)

    @property
    def size(self) -> int:
        """Size (in bytes)."""
        return self.Get_size()

    # Arguments of Open.

    @mpi.local("14.2.7")
    def Get_amode(self) -> int:
        """Return the file access mode."""
        return self._live().file.amode

    @property
    def amode(self) -> int:
        """Access mode."""
        return self.Get_amode()

    @mpi.local("14.2.7")
    def Get_group(self) -> Group:
        """Access the group of processes that opened the file."""
        return Group._accessed(self._live().file.communicator.group)

    @property
    def group(self) -> Group:
        """Group."""
        return self.Get_group()

    @property
    def group_size(self) -> int:
        """Group size."""
        return self._live().file.communicator.size

    @property
    def group_rank(self) -> int:
        """Group rank."""
        return self._live().me

    @mpi.local("14.2.8")
    def Set_info(self, info: Info) -> None:
        """Set new values for the hints associated with a file."""
        hints = pairs(check_info(info))
        side = self._live()
        self._together("set_info", None, lambda value: None)
        side.hint(hints)

    @mpi.local("14.2.8")
    def Get_info(self) -> Info:
        """Return the current hints for a file."""
        return Info.Create(self._live().hints)

    @property
    def info(self) -> Info:
        """Info hints."""
        return self.Get_info()

    @info.setter
    def info(self, value: Info) -> None:
        self.Set_info(value)

    # Views.

    @mpi.file("14.3")
    def Set_view(
        self,
        disp: int = 0,
        etype: Datatype = BYTE,
        filetype: Datatype | None = None,
        datarep: str = "native",
        info: Info = INFO_NULL,
    ) -> None:
        """Set the file view."""
        start = offset_argument(disp)
        name = "native" if datarep is None else cstring(datarep)
        hints = pairs(check_info(info))
        unit = self._committed("etype", etype)
        filled = unit if filetype is None else self._committed("filetype", filetype)
        side = self._live()
        representation = file_representations.find(name)
        if representation is None:
            fail(c.ERR_UNSUPPORTED_DATAREP, f"datarep: {name!r} is not known", self)
        if side.split is not None:
            fail(c.ERR_IO, f"Set_view while a {side.split[0]} has begun", self)
        start = self._displacement(start)
        try:
            extent = representation.layout(unit).extent
            before = side.view, side.etype, side.filetype, side.representation
            side.look(start, unit, filled, representation)
        except FileError as error:
            self._raise(error)

        def rewind(value: object) -> None:
            side.file.pointer = 0

        try:
            self._together("set_view", (extent, representation.name), rewind)
        except BaseException:
            side.view, side.etype, side.filetype, side.representation = before
            raise
        side.pointer = 0
        side.hint(hints)

    def _committed(self, name: str, datatype: Datatype) -> Any:
        """The object of an argument that must be a committed datatype."""
        if not isinstance(datatype, Datatype):
            raise wrong_type(name, Datatype, datatype)
        record = datatype._sync()
        if record is None or not record.committed:
            fail(c.ERR_TYPE, f"{name} is {'not committed' if record else 'null'}", self)
        return record

    def _displacement(self, disp: int) -> int:
        """The begin of a view: in a sequential file only the current position is possible."""
        side = self._live()
        if side.file.amode & c.MODE_SEQUENTIAL:
            if disp != c.DISPLACEMENT_CURRENT:
                fail(
                    c.ERR_ARG,
                    f"disp is {disp}, expected DISPLACEMENT_CURRENT for a file that "
                    "was opened with MODE_SEQUENTIAL",
                    self,
                )
            return side.view.offset_of(side.file.pointer * side.view.unit)
        if disp < 0:
            fail(c.ERR_ARG, f"disp is {disp}, expected one that is not negative", self)
        return disp

    @mpi.local("14.3")
    def Get_view(self) -> tuple[int, Datatype, Datatype, str]:
        """Return the file view."""
        side = self._live()
        return (
            side.view.disp, _reference(side.etype), _reference(side.filetype),
            side.representation.name,
        )  # fmt: skip

    @mpi.local("14.5.1")
    def Get_type_extent(self, datatype: Datatype) -> int:
        """Return the extent of datatype in the file."""
        record = self._committed("datatype", datatype)
        try:
            return self._live().representation.layout(record).extent
        except FileError as error:
            self._raise(error)

    @mpi.local("14.4.3")
    def Get_byte_offset(self, offset: int) -> int:
        """Return the absolute byte position in the file.

        .. note:: Input *offset* is measured in etype units
           relative to the current file view.
        """
        number = offset_argument(offset)
        side = self._seekable()
        if number < 0:
            fail(c.ERR_ARG, f"offset is {number}, expected one that is not negative", self)
        return side.view.offset_of(number * side.view.unit)

    # Pointers.

    def _seekable(self) -> FileSide:
        side = self._live()
        if side.file.amode & c.MODE_SEQUENTIAL:
            sequential(self)
        return side

    @mpi.file("14.4.3")
    def Seek(self, offset: int, whence: int = c.SEEK_SET) -> None:
        """Update the individual file pointer."""
        number, route = offset_argument(offset), cint(whence)
        side = self._seekable()
        if route == c.SEEK_END:
            take_turn(current(), side, MEASURE)
        try:
            side.pointer = side.sought(number, route, side.pointer)
        except FileError as error:
            self._raise(error)

    @mpi.local("14.4.3")
    def Get_position(self) -> int:
        """Return the current position of the individual file pointer.

        .. note:: Position is measured in etype units
           relative to the current file view.
        """
        return self._seekable().pointer

    @mpi.file("14.4.4")
    def Seek_shared(self, offset: int, whence: int = c.SEEK_SET) -> None:
        """Update the shared file pointer."""
        number, route = offset_argument(offset), cint(whence)
        side = self._seekable()

        def move(value: tuple[int, int]) -> None:
            side.file.pointer = side.sought(*value, side.file.pointer)

        self._together("seek_shared", (number, route), move)

    @mpi.file("14.4.4")
    def Get_position_shared(self) -> int:
        """Return the current position of the shared file pointer.

        .. note:: Position is measured in etype units
           relative to the current view.
        """
        side = self._seekable()
        self._visit()
        return side.file.pointer

    # Consistency.

    @mpi.file("14.6.1")
    def Set_atomicity(self, flag: bool) -> None:
        """Set the atomicity mode."""
        file = self._live().file

        def set_mode(value: bool) -> None:
            file.atomic = value

        self._together("set_atomicity", truth(flag), set_mode)

    @mpi.local("14.6.1")
    def Get_atomicity(self) -> bool:
        """Return the atomicity mode."""
        return self._live().file.atomic

    @property
    def atomicity(self) -> bool:
        """Atomicity mode."""
        return self.Get_atomicity()

    @atomicity.setter
    def atomicity(self, value: bool) -> None:
        self.Set_atomicity(value)

    @mpi.file("14.6.1")
    def Sync(self) -> None:
        """Causes all previous writes to be transferred to the storage device."""
        # Written data is already in the file: the call takes an agreement and one latency.
        self._together("sync", None, lambda value: None)
        self._visit()


FILE_NULL = File._define("FILE_NULL", None, 0)


def _permissions(hints: dict[str, str]) -> int:
    """The permissions of a file that is created, by the hint file_perm."""
    try:
        return int(hints.get("file_perm", "666"), 8) & 0o7777
    except ValueError:
        return 0o666


def _opened(
    universe: Universe, members: Members, values: dict[int, tuple[str, int, int]]
) -> OpenFile | FileError:
    """Open a file for all processes, by the name of rank 0."""
    path, amode, permissions = values[0]
    try:
        for mode in {value[1] for value in values.values()}:
            check_amode(mode)
        if any(value[1] != amode for value in values.values()):
            raise FileError(c.ERR_NOT_SAME, "the processes differ in amode")
        storage = Storage(path, amode, permissions)
        communicator = new_communicator(universe, members)
        communicator.kind = "file"
        file = OpenFile(communicator, storage, amode)
        if amode & c.MODE_APPEND:
            file.pointer = storage.size()
    except FileError as error:
        return error
    return file
