"""The shared and the private state of the processes of a file: pointers, views, hints.

An `OpenFile` is made once for all by `File.Open`; each process has a `FileSide` of it, to which its
handles point. Pointers count etypes, relative to the view.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.datatypes.datatypes import BYTE
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.files.disks import SIEVING, Disk
from pysmpi.mpi.files.representations import NATIVE, Representation
from pysmpi.mpi.files.storage import FileError, Storage
from pysmpi.mpi.files.views import View
from pysmpi.mpi.groups.communicator import Communicator

# The hints that have an effect: their defaults and the values that they may have. Others are
# ignored, as MPI requires (MPI 4.1, section 14.2.8).
HINTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "collective_buffering": ("true", ("true", "false")),
    "romio_cb_read": ("automatic", SIEVING),
    "romio_cb_write": ("automatic", SIEVING),
    "romio_ds_read": ("automatic", SIEVING),
    "romio_ds_write": ("automatic", SIEVING),
}


class RangeClaim:
    """Bytes of a file that an access has to itself, or waits for; `go()` is called once it has."""

    __slots__ = ("followers", "go", "high", "low", "waits", "write")

    def __init__(self, low: int, high: int, write: bool, go: Callable[[], object]) -> None:
        self.low = low
        self.high = high
        self.write = write
        self.go = go
        self.waits = 0
        self.followers: deque[RangeClaim] = deque()


class Claims:
    """The accesses in atomic mode: conflicting ones run one after the other."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: dict[RangeClaim, None] = {}

    def take(self, claim: RangeClaim) -> None:
        """Let an access go as soon as those before it with which it conflicts are over."""
        for other in self.held:
            conflict = claim.write or other.write
            if conflict and other.low < claim.high and claim.low < other.high:
                other.followers.append(claim)
                claim.waits += 1
        self.held[claim] = None
        if claim.waits == 0:
            claim.go()

    def release(self, claim: RangeClaim) -> None:
        """An access is over."""
        del self.held[claim]
        for follower in claim.followers:
            follower.waits -= 1
            if follower.waits == 0:
                follower.go()


class OpenFile:
    """The shared state of a file that processes have opened together.

    `pointer` is the shared file pointer, `communicator` a communicator for the file's own messages.
    """

    __slots__ = ("amode", "atomic", "claims", "communicator", "pointer", "storage")

    def __init__(self, communicator: Communicator, storage: Storage, amode: int) -> None:
        self.communicator = communicator
        self.storage = storage
        self.amode = amode
        self.pointer = 0
        self.atomic = False
        self.claims = Claims()


class FileSide:
    """One process of a file.

    `split` is the split collective call under way, with its name.
    """

    __slots__ = (
        "disk", "etype", "file", "filetype", "hints", "me", "pointer", "rank", "representation",
        "split", "view", "__weakref__",
    )  # fmt: skip

    def __init__(self, rank: Rank, file: OpenFile, disk: Disk) -> None:
        self.rank = rank
        self.file = file
        self.me = file.communicator.rank_of(rank.pid)
        self.disk = disk
        self.pointer = 0
        self.split: tuple[str, Any] | None = None
        self.hints = {name: default for name, (default, _) in HINTS.items()}
        self.look(0, BYTE._live(), BYTE._live(), NATIVE)

    def look(self, disp: int, etype: Type, filetype: Type, representation: Representation) -> None:
        """Set a view; FileError if it is not valid."""
        unit = representation.layout(etype).size
        layout = representation.layout(filetype)
        if unit == 0:
            raise FileError(c.ERR_ARG, "etype has no data")
        if layout.size % unit:
            raise FileError(
                c.ERR_ARG, f"filetype has {layout.size} bytes, etype {unit}: "
                           "it is not made of etypes"
            )  # fmt: skip
        view = View(disp, unit, layout)
        flaw = view.tile.flaw(writable=not self.file.amode & c.MODE_RDONLY)
        if flaw:
            raise FileError(c.ERR_IO, flaw)
        self.view = view
        self.etype = etype
        self.filetype = filetype
        self.representation = representation

    def hint(self, pairs: dict[str, str]) -> None:
        """Set the hints that are known and valid."""
        for name, value in pairs.items():
            if name in HINTS and value in HINTS[name][1]:
                self.hints[name] = value

    def end(self) -> int:
        """The position (etypes) of the end of the file."""
        view = self.view
        return view.position_after(self.file.storage.size()) // view.unit

    def sought(self, offset: int, whence: int, pointer: int) -> int:
        """The target of a seek; FileError if it is before the begin of the view."""
        if whence == c.SEEK_CUR:
            offset += pointer
        elif whence == c.SEEK_END:
            offset += self.end()
        elif whence != c.SEEK_SET:
            raise FileError(c.ERR_ARG, f"whence is {whence}, which is none of the SEEK_ constants")
        if offset < 0:
            raise FileError(c.ERR_ARG, f"offset: position {offset} is before the view")
        return offset
