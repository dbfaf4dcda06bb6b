"""Copies of executables and libraries: files in memory that differ from the original in few bytes.

The parts of a loaded copy that cannot change are mapped from the original file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from mmap import PAGESIZE

from pysmpi.abi import engine
from pysmpi.abi.elf import SharedLibrary

LEAST = 1 << 16  # bytes that are worth a mapping of their own
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_numbers = count(1)
_originals: dict[str, str] = {}
# Of the process, whichever functions a rank sees.
_open, _close, _pwrite, _sendfile, _memfd_create, _fstat, _readlink = (
    os.open, os.close, os.pwrite, os.sendfile, os.memfd_create, os.fstat, os.readlink,
)  # fmt: skip


def short_name() -> str:
    """A name that no other copy has, no longer than the name of a library."""
    number, text = next(_numbers), ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        text = _DIGITS[digit] + text
    return f"%{text}"


def original_of(path: str) -> str | None:
    """The file of which one with a path for the loader is a copy; None if it is none."""
    return _originals.get(path)


class FileCopy:
    """A copy of a file, ready to be loaded; a context manager that frees what loading needs."""

    def __init__(self, library: SharedLibrary, changes: Sequence[tuple[int, bytes]]) -> None:
        self.library = library
        self.original = _open(library.path, os.O_RDONLY | os.O_CLOEXEC)
        self.descriptor = _memfd_create(os.path.basename(library.path), os.MFD_CLOEXEC)
        try:
            size, sent = _fstat(self.original).st_size, 0
            while sent < size:
                sent += _sendfile(self.descriptor, self.original, sent, size - sent)
            for offset, data in changes:
                _pwrite(self.descriptor, data, offset)
        except BaseException:
            self.close()
            raise
        # A debugger reads it too, while it is being loaded.
        self.file = f"/proc/{_readlink('/proc/self')}/fd/{self.descriptor}"

    def path(self) -> str:
        """A path for the loader, which takes two files with one name for one."""
        digits = f"{next(_numbers):b}".replace("1", "//.").replace("0", "/.")
        folder, _, name = self.file.rpartition("/")
        path = f"{folder}/.{digits}/{name}"
        _originals[path] = self.library.path
        return path

    def share(self, base: int) -> None:
        """Map from the original what cannot change, after the copy was loaded at an address."""
        if self.library.relocated_text:
            return
        for offset, length, address, executable in _unchanging(self.library):
            if length >= LEAST:
                engine.share(
                    self.descriptor, self.original, base + address, offset, length, executable
                )

    def close(self) -> None:
        """Close both files."""
        _close(self.original)
        _close(self.descriptor)


def _unchanging(library: SharedLibrary) -> list[tuple[int, int, int, bool]]:
    """The whole pages of a library that are the same in each copy."""
    parts = []
    for segment in library.segments:
        if segment.writable:
            continue
        stop = segment.offset + segment.size
        ends = [segment.offset]
        for first, end in sorted(library.kept):
            if segment.offset <= first < stop:
                ends += [first, end]
        ends.append(stop)
        for low, high in zip(ends[::2], ends[1::2]):
            low = -(-low // PAGESIZE) * PAGESIZE
            high = high // PAGESIZE * PAGESIZE
            if low < high:
                address = segment.address + low - segment.offset
                parts.append((low, high - low, address, segment.executable))
    return parts
