"""The real file behind an MPI file: opened once for all its processes, read and written in place.

All operations here happen at an instant of simulated time, which other modules determine. Errors of
the operating system become a `FileError` with MPI's class of the error.
"""

from __future__ import annotations

import builtins
import errno
import os
import re
import resource
import stat
from typing import Any

import numpy as np

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import named
from pysmpi.mpi.datatypes.copy_plans import CopyPlan
from pysmpi.mpi.datatypes.layouts import basic, indexed
from pysmpi.mpi.files.views import Pieces

# Scattered pieces are read and written through a window of the file (bytes), where they are
# shorter than SHORT on average (bytes) and the window holds a useful byte among SPARSE.
WINDOW = 1 << 22
SHORT = 4096
SPARSE = 64

_WAYS = c.MODE_RDONLY | c.MODE_WRONLY | c.MODE_RDWR
_BYTES = basic(1, 1, None)

# ROMIO lets a file name begin with the kind of its file system.
_FILE_SYSTEM = r"(ufs|nfs|xfs|pvfs2|gpfs|lustre|panfs|testfs|daos|ime|quobyte):"

_CLASSES = {
    errno.ENOENT: c.ERR_NO_SUCH_FILE,
    errno.EEXIST: c.ERR_FILE_EXISTS,
    errno.EACCES: c.ERR_ACCESS,
    errno.EPERM: c.ERR_ACCESS,
    errno.EROFS: c.ERR_READ_ONLY,
    errno.ENAMETOOLONG: c.ERR_BAD_FILE,
    errno.ENOTDIR: c.ERR_BAD_FILE,
    errno.EISDIR: c.ERR_BAD_FILE,
    errno.ELOOP: c.ERR_BAD_FILE,
    errno.ETXTBSY: c.ERR_FILE_IN_USE,
    errno.ENOSPC: c.ERR_NO_SPACE,
    errno.EDQUOT: c.ERR_QUOTA,
}


class FileError(builtins.Exception):
    """An error of a file; `code` is the error class of MPI."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def refused(error: OSError, what: str) -> FileError:
    """The error that the operating system has raised, as MPI's."""
    code = _CLASSES.get(error.errno or 0, c.ERR_IO)
    return FileError(code, f"{what}: {error.strerror or error}")


def real_path(name: Any) -> str:
    """The absolute path of a file name argument, in the calling rank's working directory."""
    try:
        text = os.fsdecode(name)
    except TypeError as error:
        raise TypeError(f"{named(name)}{error}") from None
    if "\0" in text:
        raise ValueError("embedded null byte")
    prefix = re.match(_FILE_SYSTEM, text)
    return os.path.abspath(text[prefix.end() :] if prefix else text)


def check_amode(amode: int) -> None:
    """Refuse access modes that contradict each other (MPI 4.1, section 14.2.1)."""
    if (amode & _WAYS).bit_count() != 1:
        raise FileError(c.ERR_AMODE, "amode needs one of MODE_RDONLY, MODE_WRONLY and MODE_RDWR")
    if amode & c.MODE_RDONLY and amode & (c.MODE_CREATE | c.MODE_EXCL):
        raise FileError(c.ERR_AMODE, "MODE_RDONLY with MODE_CREATE or MODE_EXCL")
    if amode & c.MODE_RDWR and amode & c.MODE_SEQUENTIAL:
        raise FileError(c.ERR_AMODE, "MODE_RDWR with MODE_SEQUENTIAL")


def delete(path: str) -> None:
    """Remove a file."""
    try:
        os.unlink(path)
    except OSError as error:
        raise refused(error, path) from None


class Storage:
    """An open file: its descriptor, its path, and its access mode."""

    __slots__ = ("amode", "fd", "path", "readable")

    def __init__(self, path: str, amode: int, permissions: int = 0o666) -> None:
        self.fd = -1
        self.path = path
        self.amode = amode
        flags = os.O_CLOEXEC
        if amode & c.MODE_CREATE:
            flags |= os.O_CREAT
            if amode & c.MODE_EXCL:
                flags |= os.O_EXCL
        try:
            if amode & c.MODE_RDONLY:
                self.fd = _open(path, flags | os.O_RDONLY, permissions)
            else:
                self.fd = self._open_writable(path, flags, permissions)
            if stat.S_ISDIR(os.fstat(self.fd).st_mode):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        except OSError as error:
            self.close()
            raise refused(error, path) from None

    def _open_writable(self, path: str, flags: int, permissions: int) -> int:
        # Writing scattered pieces requires reading, also if the program only writes.
        self.readable = True
        try:
            return _open(path, flags | os.O_RDWR, permissions)
        except PermissionError:
            if self.amode & c.MODE_RDWR:
                raise
            self.readable = False
            return _open(path, flags | os.O_WRONLY, permissions)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; at the end of the simulation all open files are closed."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def close_for_good(self) -> None:
        """Close the file, and remove it if its access mode says so."""
        self.close()
        if self.amode & c.MODE_DELETE_ON_CLOSE:
            delete(self.path)

    # Its size.

    def size(self) -> int:
        """Bytes in the file."""
        try:
            return os.fstat(self.fd).st_size
        except OSError as error:
            raise refused(error, self.path) from None

    def resize(self, nbytes: int) -> None:
        """Cut the file, or extend it with zeros."""
        try:
            os.ftruncate(self.fd, nbytes)
        except OSError as error:
            raise refused(error, f"{self.path}: to set its size to {nbytes}") from None

    def reserve(self, nbytes: int) -> None:
        """Extend the file to at least this number of bytes.

        They are not allocated on disk: a program reads the same data, and a simulation may reserve
        more than this computer has.
        """
        if self.size() < nbytes:
            self.resize(nbytes)

    # Its bytes.

    def read(self, pieces: Pieces, stream: memoryview) -> int:
        """Read pieces in order into `stream`; return the bytes until the end of the file."""
        try:
            if not _scattered(pieces):
                return self._read_each(pieces, stream)
            return self._read_windows(pieces, stream)
        except OSError as error:
            raise refused(error, self.path) from None

    def _read_each(self, pieces: Pieces, stream: memoryview) -> int:
        done = 0
        for offset, length in pieces.each():
            got = self._read_run(offset, stream[done : done + length])
            done += got
            if got < length:
                break
        return done

    def _read_run(self, offset: int, room: memoryview) -> int:
        done = 0
        while done < len(room):
            got = os.preadv(self.fd, [room[done:]], offset + done)
            if got == 0:
                break
            done += got
        return done

    def _read_windows(self, pieces: Pieces, stream: memoryview) -> int:
        done = 0
        for part in _windows(pieces):
            low = part.low
            window = bytearray(part.high - low)
            got = self._read_run(low, memoryview(window))
            _plan(part).pack(window, 0, stream[done : done + part.nbytes])
            if got < len(window):
                return done + part.bytes_below(low + got)
            done += part.nbytes
        return done

    def write(self, pieces: Pieces, stream: memoryview) -> None:
        """Write `stream` to pieces, one after the other."""
        try:
            if not (_scattered(pieces) and self.readable):
                done = 0
                for offset, length in pieces.each():
                    self._write_run(offset, stream[done : done + length])
                    done += length
                return
            done = 0
            for part in _windows(pieces):
                window = bytearray(part.high - part.low)
                self._read_run(part.low, memoryview(window))
                _plan(part).unpack(window, 0, stream[done : done + part.nbytes])
                self._write_run(part.low, memoryview(window))
                done += part.nbytes
        except OSError as error:
            raise refused(error, self.path) from None

    def _write_run(self, offset: int, data: memoryview) -> None:
        done = 0
        while done < len(data):
            done += os.pwrite(self.fd, data[done:], offset + done)


def _open(path: str, flags: int, permissions: int) -> int:
    """Open a file; thousands of simulated processes may have more open than one may have."""
    try:
        return os.open(path, flags, permissions)
    except OSError as error:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if error.errno != errno.EMFILE or soft == hard:
            raise
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return os.open(path, flags, permissions)


def _scattered(pieces: Pieces) -> bool:
    """Whether to go through windows of the file rather than from piece to piece."""
    count = pieces.count
    nbytes = pieces.nbytes
    return (
        count > 1
        and nbytes < SHORT * count
        and pieces.high - pieces.low <= SPARSE * nbytes
        and pieces.ascending()
    )


def _windows(pieces: Pieces) -> list[Pieces]:
    """The same pieces in groups, each within a window of the file."""
    ends = pieces.offsets + pieces.lengths
    parts = []
    first = 0
    while first < len(ends):
        limit = pieces.offsets[first] + WINDOW
        last = max(first + 1, int(np.searchsorted(ends, limit, "right")))
        parts.append(Pieces(pieces.offsets[first:last], pieces.lengths[first:last]))
        first = last
    return parts


def _plan(part: Pieces) -> CopyPlan:
    """The plan to copy between a window that begins with the first piece and the packed stream."""
    return indexed(_BYTES, part.lengths.tolist(), (part.offsets - part.low).tolist()).new_plan()
