"""The address range of shared blocks.

All ranks are in one process, so a block that they share as a whole is one mapping at one address.
The whole range is reserved at the start and made accessible when needed. One comparison then tells
whether an address is in a folded array, and the number of mappings does not depend on the number of
ranks.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from bisect import insort
from typing import Protocol

from pysmpi.errors import UsageError
from pysmpi.folding.ledger import PAGE

RANGE = 1 << 42  # bytes of addresses
HUGE = 1 << 21
# Numpy requests huge pages above this size (PyDataMem's default allocator); so does pysmpi.
ON_HUGE_PAGES = 1 << 22

# Of Linux; the mmap module names them in later versions of Python.
_MAP_FIXED = 0x10
_MAP_NORESERVE = 0x4000
_MADV_HUGEPAGE = 14
_FAILED = ctypes.c_void_p(-1).value


class Pages:
    """The calls of the C library that map memory."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(None, use_errno=True)
            self._mmap, self._munmap = library.mmap, library.munmap
            self._mprotect, self._madvise = library.mprotect, library.madvise
        except (OSError, TypeError, AttributeError):
            raise unsupported() from None
        size, integer, pointer = ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
        self._mmap.restype = pointer
        self._mmap.argtypes = [pointer, size, integer, integer, integer, ctypes.c_long]
        self._munmap.argtypes = [pointer, size]
        self._mprotect.argtypes = [pointer, size, integer]
        self._madvise.argtypes = [pointer, size, integer]

    def reserve(self, nbytes: int) -> int:
        """A range of addresses without memory; 0 if the range is not available."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        address = self._mmap(None, nbytes, 0, flags, -1, 0)
        return 0 if address is None or address == _FAILED else int(address)

    def map_file(self, address: int, nbytes: int, file: int, offset: int) -> None:
        """Show a piece of a file at reserved addresses; MemoryError if that is impossible."""
        flags = mmap.MAP_SHARED | _MAP_FIXED
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        if self._mmap(address, nbytes, protection, flags, file, offset) == _FAILED:
            raise MemoryError(f"cannot map {nbytes} bytes: {_reason()}")

    def map_private(self, address: int, nbytes: int) -> None:
        """Replace a mapping by private memory, filled with zeros."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        if self._mmap(address, nbytes, protection, flags, -1, 0) == _FAILED:
            raise MemoryError(f"cannot map {nbytes} bytes: {_reason()}")

    def open(self, address: int, nbytes: int) -> None:
        """Make reserved addresses private memory of zeros; MemoryError if there is none."""
        if self._mprotect(address, nbytes, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError(f"cannot get {nbytes} bytes of memory: {_reason()}")

    def empty(self, address: int, nbytes: int) -> None:
        """Release the memory of addresses; the next reads return zeros."""
        self._madvise(address, nbytes, mmap.MADV_DONTNEED)

    def enlarge(self, address: int, nbytes: int) -> None:
        """Ask for huge pages, as numpy does for large arrays."""
        self._madvise(address, nbytes, _MADV_HUGEPAGE)

    def close(self, address: int, nbytes: int) -> None:
        """Give addresses back."""
        self._munmap(address, nbytes)


def unsupported() -> UsageError:
    """There are no shared mappings here."""
    return UsageError("--fold: expected Linux, with mmap and memfd")


def _reason() -> str:
    return os.strerror(ctypes.get_errno())


class Backing(Protocol):
    """The memory operations of a range of addresses."""

    def open(self, address: int, nbytes: int) -> None:
        """Make addresses usable for the first time."""

    def empty(self, address: int, nbytes: int) -> None:
        """Give their memory back."""


class Space:
    """A range of addresses, allocated first-fit in multiples of a unit."""

    def __init__(self, pages: Backing, start: int, stop: int, unit: int) -> None:
        self.pages = pages
        self.unit = unit
        self.top = -(-start // unit) * unit  # all addresses below have been allocated before
        self.stop = stop
        self.holes: list[tuple[int, int]] = []  # (start, stop), ascending

    def allocate(self, nbytes: int) -> int:
        """Allocate this number of bytes; return their address."""
        nbytes = self._whole(nbytes)
        for i, (start, stop) in enumerate(self.holes):
            if stop - start >= nbytes:
                if stop - start == nbytes:
                    del self.holes[i]
                else:
                    self.holes[i] = start + nbytes, stop
                return start
        address = self.top
        if address + nbytes > self.stop:
            raise MemoryError("too many folded arrays: the reserved addresses are used up")
        self.pages.open(address, nbytes)
        self.top += nbytes
        return address

    def release(self, address: int, nbytes: int) -> None:
        """Release an allocation and its memory."""
        start, stop = address, address + self._whole(nbytes)
        self.pages.empty(start, stop - start)
        insort(self.holes, (start, stop))
        merged: list[tuple[int, int]] = []
        for hole in self.holes:
            if merged and merged[-1][1] == hole[0]:
                merged[-1] = merged[-1][0], hole[1]
            else:
                merged.append(hole)
        self.holes = merged

    def _whole(self, nbytes: int) -> int:
        return -(-nbytes // self.unit) * self.unit


class Arena:
    """A reserved range of addresses, `start` to `stop`, and the memory in it.

    Large blocks are separate from small ones: they are on huge pages if the system has these.
    """

    def __init__(self, nbytes: int = RANGE) -> None:
        self.pages = Pages()
        while not (start := self.pages.reserve(nbytes)):
            nbytes //= 2
            if nbytes < 1 << 28:
                raise unsupported()
        self.start, self.stop = start, start + nbytes
        middle = start + nbytes // 16
        self.small = Space(self.pages, start, middle, PAGE)
        self.large = Space(self.pages, middle, self.stop, HUGE)

    def allocate(self, nbytes: int) -> int:
        """Allocate memory and return its address; it is zero unless it was released before."""
        if nbytes < ON_HUGE_PAGES:
            return self.small.allocate(nbytes)
        address = self.large.allocate(nbytes)
        self.pages.enlarge(address, -(-nbytes // HUGE) * HUGE)
        return address

    def release(self, address: int, nbytes: int) -> None:
        """Release an allocation of `allocate`."""
        (self.small if nbytes < ON_HUGE_PAGES else self.large).release(address, nbytes)

    def clear(self, address: int, nbytes: int) -> None:
        """Let memory read as zero."""
        self.pages.empty(address, nbytes)

    def close(self) -> None:
        """Release the whole range; no access is allowed afterwards."""
        if self.start:
            self.pages.close(self.start, self.stop - self.start)
            self.start = self.stop = 0
