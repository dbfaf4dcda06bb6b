"""File views: the bytes of a file that a process sees (MPI 4.1, section 14.3).

A view is a displacement, followed by copies of a filetype one after the other. The data bytes of
the filetype, in order, form the stream that the process reads and writes. Positions in it count
bytes here, and etypes in the calls of MPI. A filetype becomes three arrays: the begin of its runs
of bytes in the stream and in the file, and their lengths. Array arithmetic then maps a part of the
stream of any length to the file.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pysmpi.mpi.datatypes.copy_plans import IrregularBlocks, Run
from pysmpi.mpi.datatypes.layouts import Layout

_NONE = np.empty(0, np.int64)


class Pieces:
    """Runs of bytes of a file, in the order of the stream.

    There are `count` of `nbytes` in all; the lowest begins at `low`, the highest ends at `high`.
    """

    __slots__ = ("count", "high", "lengths", "low", "nbytes", "offsets")

    def __init__(self, offsets: np.ndarray, lengths: np.ndarray) -> None:
        self.offsets = offsets
        self.lengths = lengths
        self.count = len(offsets)
        self.nbytes = int(lengths.sum())
        self.low = int(offsets.min()) if self.count else 0
        self.high = int((offsets + lengths).max()) if self.count else 0

    @classmethod
    def run(cls, offset: int, nbytes: int) -> Pieces:
        """A single piece: it needs no arrays."""
        self = cls.__new__(cls)
        self.offsets = self.lengths = _NONE
        self.count = 1
        self.nbytes = nbytes
        self.low = offset
        self.high = offset + nbytes
        return self

    def each(self) -> Iterable[tuple[int, int]]:
        """(offset, length) of each."""
        if self.count == 1:
            return ((self.low, self.nbytes),)
        return zip(self.offsets.tolist(), self.lengths.tolist())

    def ascending(self) -> bool:
        """Whether each begins at the end of the previous one, or later."""
        return bool((self.offsets[1:] >= (self.offsets + self.lengths)[:-1]).all())

    def bytes_below(self, offset: int) -> int:
        """The number of the bytes before an offset of the file."""
        return int(np.clip(offset - self.offsets, 0, self.lengths).sum())


class Tile:
    """The runs of bytes of one filetype.

    `size` is the number of data bytes, `extent` the distance between copies; `starts` are the
    positions of the runs in the stream, `offsets` those in the file.
    """

    __slots__ = ("dense", "extent", "lengths", "offsets", "size", "starts")

    def __init__(self, layout: Layout) -> None:
        self.size = layout.size
        self.extent = layout.extent
        self.dense = layout.dense
        only = layout.parts[0] if len(layout.parts) == 1 else None
        if isinstance(only, Run) and not only.dims:
            self.starts = np.zeros(1, np.int64)
            self.offsets = np.array([only.offset], np.int64)
            self.lengths = np.array([only.length], np.int64)
            return
        starts, offsets, lengths = [_NONE], [_NONE], [_NONE]
        for part in layout.parts:
            if isinstance(part, IrregularBlocks):
                start, offset, length = part.packed, part.offsets, part.lengths
            else:
                start, offset, length = (
                    np.array([n], np.int64) for n in (part.packed, part.offset, part.length)
                )
            for count, stride, packed_stride in reversed(part.dims):
                steps = np.arange(count, dtype=np.int64)[:, None]
                start = (steps * packed_stride + start).reshape(-1)
                offset = (steps * stride + offset).reshape(-1)
                length = np.tile(length, count)
            starts.append(start)
            offsets.append(offset)
            lengths.append(length)
        begin = np.concatenate(starts)
        order = np.argsort(begin, kind="stable")
        where, length = np.concatenate(offsets)[order], np.concatenate(lengths)[order]
        self.offsets, self.lengths = _joined(where, length)
        self.starts = np.cumsum(self.lengths) - self.lengths

    def flaw(self, writable: bool) -> str:
        """The reason why it is not a valid filetype; empty if it is valid."""
        offsets = self.offsets
        if len(offsets) == 0 or self.dense:
            return ""
        if int(offsets.min()) < 0:
            return "the filetype has negative displacements"
        if (np.diff(offsets) < 0).any():
            return "the displacements of the filetype decrease"
        if writable and not Pieces(offsets, self.lengths).ascending():
            return "the filetype of a file that may be written overlaps itself"
        return ""


class View:
    """The places of the stream of a process in the file.

    `unit` is the size of an etype in the file, in bytes.
    """

    __slots__ = ("disp", "tile", "unit")

    def __init__(self, disp: int, unit: int, filetype: Layout) -> None:
        self.disp = disp
        self.unit = unit
        self.tile = Tile(filetype)

    def pieces(self, position: int, nbytes: int) -> Pieces:
        """The places of `nbytes` bytes of the stream, from a position in it on."""
        tile = self.tile
        if nbytes == 0 or tile.size == 0:
            return Pieces(_NONE, _NONE)
        if tile.dense:
            return Pieces.run(self.disp + position, nbytes)
        runs = len(tile.offsets)
        first, skipped = self._run_at(position)
        last, _ = self._run_at(position + nbytes - 1)
        if first == last:
            copy, run = divmod(first, runs)
            start = self.disp + copy * tile.extent + int(tile.offsets[run])
            return Pieces.run(start + skipped, nbytes)
        copies, which = np.divmod(np.arange(first, last + 1, dtype=np.int64), runs)
        offsets = self.disp + copies * tile.extent + tile.offsets[which]
        lengths = tile.lengths[which]
        offsets[0] += skipped
        lengths[0] -= skipped
        lengths[-1] -= int(lengths.sum()) - nbytes
        return Pieces(*_joined(offsets, lengths))

    def _run_at(self, position: int) -> tuple[int, int]:
        """The run of a byte of the stream, counted through all copies, and its offset there."""
        tile = self.tile
        copy, rest = divmod(position, tile.size)
        run = int(np.searchsorted(tile.starts, rest, "right")) - 1
        return copy * len(tile.starts) + run, rest - int(tile.starts[run])

    def offset_of(self, position: int) -> int:
        """The place in the file of a byte of the stream."""
        if self.tile.size == 0:
            return self.disp
        return self.pieces(position, 1).low

    def position_after(self, size: int) -> int:
        """The position of the first etype that begins after the end of a file of `size` bytes."""
        tile = self.tile
        inside = size - self.disp
        if inside <= 0 or tile.size == 0:
            return 0
        if tile.extent <= 0:
            position = Pieces(tile.offsets, tile.lengths).bytes_below(inside)
        else:
            # Copies with data that end after the begin of the next are counted one by one.
            reach = int((tile.offsets + tile.lengths).max())
            whole = max(0, (inside - reach) // tile.extent + 1)
            position = whole * tile.size
            runs = Pieces(tile.offsets, tile.lengths)
            while whole * tile.extent < inside:
                position += runs.bytes_below(inside - whole * tile.extent)
                whole += 1
        return -(-position // self.unit) * self.unit


def _joined(offsets: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs without the empty ones, neighbours that touch made one."""
    if len(offsets) and not lengths.all():
        used = lengths > 0
        offsets, lengths = offsets[used], lengths[used]
    if len(offsets) < 2:
        return offsets, lengths
    fresh = np.ones(len(offsets), bool)
    fresh[1:] = offsets[1:] != (offsets + lengths)[:-1]
    if fresh.all():
        return offsets, lengths
    first = np.flatnonzero(fresh)
    return offsets[first], np.add.reduceat(lengths, first)
