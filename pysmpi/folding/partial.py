"""Arrays with a part that belongs to the rank, such as the halo of a block.

The shared part of each such array consists of pages of one file in memory, mapped once for each
rank that holds the array. The private part is memory of the rank, mapped in between.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from pysmpi.errors import UsageError
from pysmpi.folding.arena import Pages, Space, unsupported
from pysmpi.folding.ledger import PAGE, Ledger, MemoryOwner

# Largest size of the file in bytes; only used pages take memory.
_MOST = 1 << 42
_PUNCH_HOLE = 0x02 | 0x01  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE


class MemoryFile:
    """The file in memory; a `Space` uses `open` and `empty` for its pages."""

    def __init__(self) -> None:
        try:
            self.number = os.memfd_create("pysmpi-folded")
            self._fallocate = ctypes.CDLL(None).fallocate
        except (AttributeError, OSError):
            raise unsupported() from None
        long = ctypes.c_long
        self._fallocate.argtypes = [ctypes.c_int, ctypes.c_int, long, long]

    def open(self, offset: int, nbytes: int) -> None:
        """Extend the file to the end of these bytes."""
        os.ftruncate(self.number, offset + nbytes)

    def empty(self, offset: int, nbytes: int) -> None:
        """Release memory; the next reads return zeros."""
        self._fallocate(self.number, _PUNCH_HOLE, offset, nbytes)

    def close(self) -> None:
        """Close the file; mappings stay."""
        if self.number >= 0:
            os.close(self.number)
            self.number = -1


class Partial:
    """The partly private arrays of a run."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.file: MemoryFile | None = None
        self.ledger: Ledger | None = None
        self.owners: dict[int, MemoryOwner] = {}  # by pid
        self.private = 0  # bytes of private pages now, and at most
        self.most_private = 0
        self._arrays: list[tuple[int, int, list[tuple[int, int]]]] = []  # start, stop, private
        self._offsets: dict[int, int] = {}  # in the file, by address
        self._mappings = 0

    def _begin(self) -> Ledger:
        if self.ledger is None:
            self.file = MemoryFile()
            space = Space(self.file, 0, _MOST, PAGE)
            self.ledger = Ledger(space.allocate, space.release)
        return self.ledger

    def allocate(
        self, pid: int, place: Hashable, nbytes: int, private: Sequence[tuple[int, int]]
    ) -> int:
        """Allocate an array of a rank; `private` are its private runs of bytes."""
        ledger = self._begin()
        assert self.file is not None
        runs = whole_pages(private, nbytes)
        self._check_mappings(1 + 2 * len(runs))
        owner = self.owners.get(pid)
        if owner is None:
            owner = self.owners[pid] = ledger.owner()
        block = ledger.take(owner, place, nbytes)
        offset = block.address
        room = -(-nbytes // PAGE) * PAGE
        address = self.pages.reserve(room)
        if not address:
            ledger.give(owner, offset)
            raise MemoryError(f"no addresses for {nbytes} bytes")
        try:
            self.pages.map_file(address, room, self.file.number, offset)
            for start, stop in runs:
                self.pages.map_private(address + start, stop - start)
        except MemoryError:
            self.pages.close(address, room)
            ledger.give(owner, offset)
            raise
        absolute = [(address + start, address + stop) for start, stop in runs]
        insort(self._arrays, (address, address + room, absolute))
        self._offsets[address] = offset
        self._mappings += 1 + 2 * len(runs)
        self.private += sum(stop - start for start, stop in runs)
        self.most_private = max(self.most_private, self.private)
        return address

    def free(self, pid: int, address: int) -> None:
        """Release the array of a rank."""
        ledger = self.ledger
        assert ledger is not None
        at = bisect_left(self._arrays, (address,))
        start, stop, runs = self._arrays.pop(at)
        offset = self._offsets.pop(address)
        self.pages.close(start, stop - start)
        self._mappings -= 1 + 2 * len(runs)
        self.private -= sum(stop - start for start, stop in runs)
        ledger.give(self.owners[pid], offset)

    def close(self) -> None:
        """The run has ended: arrays that outlive it stay."""
        if self.ledger is not None:
            self.ledger.close()
        if self.file is not None:
            self.file.close()

    def _check_mappings(self, more: int) -> None:
        """Refuse an array if the system has too few mappings, before none are left."""
        most = _most_mappings()
        if self._mappings + more > most - most // 8:
            raise UsageError(
                f"pysmpi.shared_empty: partly private arrays take {self._mappings + more:,} "
                f"mappings of memory, expected less than the system's {most:,}: use fewer private "
                "ranges, or raise vm.max_map_count (sysctl)"
            )

    def shared(self, address: int, nbytes: int) -> bool:
        """Whether memory belongs to such an array, and none of it is private."""
        at = bisect_right(self._arrays, (address, 1 << 63)) - 1
        if at < 0:
            return False
        _, stop, runs = self._arrays[at]
        if address >= stop:
            return False
        first = bisect_right(runs, (address, 1 << 63))
        if first and runs[first - 1][1] > address:
            return False
        return first == len(runs) or runs[first][0] >= address + nbytes


def whole_pages(runs: Iterable[tuple[int, int]], nbytes: int) -> list[tuple[int, int]]:
    """Runs of bytes widened to whole pages, in order and joined where they touch."""
    room = -(-nbytes // PAGE) * PAGE
    result: list[tuple[int, int]] = []
    for start, stop in sorted(runs):
        if start >= stop:
            continue
        start, stop = start // PAGE * PAGE, min(room, -(-stop // PAGE) * PAGE)
        if result and start <= result[-1][1]:
            result[-1] = result[-1][0], max(stop, result[-1][1])
        else:
            result.append((start, stop))
    return result


def runs_of(shape: tuple[int, ...], dtype: np.dtype[Any], index: Any) -> list[tuple[int, int]]:
    """The runs of bytes that an index selects from a C-contiguous array.

    Raises TypeError for an index that makes a copy, IndexError for one out of bounds.
    """
    if dtype.itemsize == 0 or 0 in shape:
        return []
    # An array of that shape over almost no memory: only its addresses are used.
    probe = np.lib.stride_tricks.as_strided(_PROBE, shape, _strides(shape, dtype.itemsize))
    view = probe[index] if isinstance(index, tuple) else probe[index, ...]
    if view.size == 0:
        return []
    origin = probe.__array_interface__["data"][0]
    start = view.__array_interface__["data"][0] - origin
    if not np.may_share_memory(view, probe):
        raise TypeError(f"private={index!r}: expected integers, slices and ..., not a list")
    starts, run = np.zeros(1, np.int64) + start, dtype.itemsize
    for size, stride in sorted(zip(view.shape, view.strides), key=lambda item: abs(item[1])):
        if stride < 0:
            starts = starts + stride * (size - 1)
            stride = -stride
        if stride <= run:
            run += stride * (size - 1)
        elif size > 1:
            # Rows that are closer together than a page are one run anyway.
            if stride - run < PAGE:
                run += stride * (size - 1)
            else:
                starts = np.add.outer(np.arange(size) * stride, starts).reshape(-1)
    return [(int(at), int(at) + run) for at in np.sort(starts)]


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    for size in reversed(shape):
        strides.append(itemsize)
        itemsize *= size
    return tuple(reversed(strides))


_PROBE = np.zeros(1, np.uint8)


def _most_mappings() -> int:
    try:
        with open("/proc/sys/vm/max_map_count") as stream:
            return int(stream.read())
    except (OSError, ValueError):
        return 65530


def array_at(
    address: int, shape: tuple[int, ...], dtype: np.dtype[Any], free: Any, *args: Any
) -> np.ndarray:
    """An array over memory; `free(*args)` is called when the last reference is gone."""
    nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_ubyte * nbytes).from_address(address)
    weakref.finalize(memory, free, *args).atexit = False
    array: np.ndarray = np.frombuffer(memoryview(memory), dtype)
    return array.reshape(shape)
