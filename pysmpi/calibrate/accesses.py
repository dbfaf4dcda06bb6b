"""Reads and writes of memory by functions of the C library, called through ctypes.

Python alone is too slow to measure a cache. `memchr` for a byte that does not occur is a stream of
loads, `memset` a stream of stores, and `memmove` a copy. `tfind` in a tree with one long branch
follows pointers from line to line; each line must arrive before the next address is known. The
fixed cost of a call is measured with empty calls and subtracted.
"""

from __future__ import annotations

import ctypes
import mmap
import random
from collections.abc import Sequence
from time import perf_counter_ns

from pysmpi.errors import UsageError

LINE = 64
ABSENT = 1  # a byte that no buffer holds


class CLibrary:
    """The functions of the C library that touch memory."""

    def __init__(self) -> None:
        libc = ctypes.PyDLL(None)  # keeps the interpreter lock: quicker
        try:
            self.memchr, self.memset = libc.memchr, libc.memset
            self.memmove, self.tfind = libc.memmove, libc.tfind
            order = libc.strverscmp
        except AttributeError as error:
            raise UsageError(
                f"calibrate memory: the C library has no such function ({error}), expected glibc"
            ) from None
        address, length, byte = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self.memchr.argtypes, self.memchr.restype = (address, byte, length), None
        self.memset.argtypes, self.memset.restype = (address, byte, length), None
        self.memmove.argtypes, self.memmove.restype = (address, address, length), None
        self.tfind.argtypes, self.tfind.restype = (address, address, address), None
        self.order = ctypes.cast(order, address)
        self._key = ctypes.create_string_buffer(b"a")
        self.key = ctypes.addressof(self._key)

    def load(self, address: int, nbytes: int) -> None:
        """Read a buffer."""
        self.memchr(address, ABSENT, nbytes)

    def store(self, address: int, nbytes: int) -> None:
        """Write a buffer."""
        self.memset(address, 0, nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy a buffer."""
        self.memmove(target, source, nbytes)

    def follow(self, root: int) -> None:
        """Follow a chain of lines to its end; `root` is the address of its first pointer."""
        self.tfind(self.key, root, self.order)


class SharedArena:
    """Memory that a process shares with its forked processes, at the same address in all.

    `take` returns addresses of parts of the memory; no two parts share a page.
    """

    def __init__(self, nbytes: int) -> None:
        self._map = mmap.mmap(-1, nbytes)
        self._view = ctypes.c_char.from_buffer(self._map)
        self.address = ctypes.addressof(self._view)
        self.size = nbytes
        self._used = 0

    def take(self, nbytes: int) -> int:
        """The address of a part with this number of zero bytes."""
        begin = self._used
        self._used += -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        if self._used > self.size:
            raise ValueError(f"the arena holds {self.size} bytes, not {self._used}")
        return self.address + begin

    def close(self) -> None:
        """Give the memory back."""
        del self._view
        self._map.close()


class PointerChain:
    """Lines in random order, each with a pointer to the next, laid out as a tree for `tfind`.

    A node holds the address of its key, which is in the same line, its left and its right subtree.
    """

    def __init__(self, arena: SharedArena, lines: int, seed: int = 1) -> None:
        self.lines = lines
        self.nbytes = lines * LINE
        self.address = arena.take(self.nbytes)
        self.root = arena.take(mmap.PAGESIZE)
        self.empty = arena.take(mmap.PAGESIZE)
        order = list(range(lines))
        random.Random(seed).shuffle(order)
        places = [self.address + i * LINE for i in order]
        ctypes.c_uint64.from_address(self.root).value = places[0]
        for here, following in zip(places, [*places[1:], 0], strict=True):
            node = (ctypes.c_uint64 * 3).from_address(here)
            node[0], node[1], node[2] = here + 24, following, 0
            ctypes.memmove(here + 24, b"b\0", 2)


def calls(function: object, arguments: Sequence[object], times: int = 1) -> float:
    """Seconds of one call of a function, from `times` calls in a row."""
    run = range(times)
    begin = perf_counter_ns()
    for _ in run:
        function(*arguments)  # type: ignore[operator]
    return (perf_counter_ns() - begin) / times * 1e-9
