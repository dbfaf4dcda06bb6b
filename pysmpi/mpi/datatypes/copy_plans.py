"""Copies between the memory of a message and its packed stream.

Each part of a layout is a `Run` or `IrregularBlocks`: the offsets of its bytes in memory and in
the packed stream. A copy is one numpy assignment for each part, without a loop over elements.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

try:
    from pysmpi.mpi.base import memcopy
except ImportError:  # pysmpi was installed without a C compiler
    memcopy = None  # type: ignore[assignment]

# A level of repetition: (number, stride in memory, stride in the packed stream), in bytes.
Dimension = tuple[int, int, int]

# The memory of a program, or a packed stream.
Memory = bytes | bytearray | memoryview

# Blocks at least this long on average (bytes) are copied one by one instead of through an index.
LONG_BLOCK = 256


def _copy_blocks(
    target: Memory,
    offset: int,
    strides: tuple[int, ...],
    source: Memory,
    origin: int,
    source_strides: tuple[int, ...],
    counts: tuple[int, ...],
    length: int,
) -> None:
    """The same as `memcopy.copy_blocks`, without C."""
    block = np.dtype((np.void, length))
    np.ndarray(counts, block, target, offset, strides)[...] = np.ndarray(
        counts, block, source, origin, source_strides
    )


copy_blocks = _copy_blocks if memcopy is None else memcopy.copy_blocks


class Run(NamedTuple):
    """`length` bytes at `offset`, repeated along `dims` (outermost first)."""

    offset: int
    packed: int
    length: int
    dims: tuple[Dimension, ...]


class IrregularBlocks(NamedTuple):
    """Blocks of bytes at irregular offsets, the whole group repeated along `dims`."""

    offsets: np.ndarray
    packed: np.ndarray
    lengths: np.ndarray
    dims: tuple[Dimension, ...]


RunOrBlocks = Run | IrregularBlocks


class CopyPlan:
    """Copies between memory and the packed stream for a whole message.

    `nbytes` is the length of the stream; `low` and `high` bound the accessed bytes of memory,
    relative to the address of the message.
    """

    __slots__ = ("high", "low", "moves", "nbytes", "parts")

    def __init__(self, parts: tuple[RunOrBlocks, ...], nbytes: int, low: int, high: int) -> None:
        self.parts = parts
        self.nbytes = nbytes
        self.low = low
        self.high = high
        self.moves: list[_Strided | _Indexed] = []
        for part in parts:
            if isinstance(part, Run):
                self.moves.append(_Strided(part))
            elif part.lengths.mean() >= LONG_BLOCK:
                self.moves.extend(
                    _Strided(Run(int(offset), int(packed), int(length), part.dims))
                    for offset, packed, length in zip(part.offsets, part.packed, part.lengths)
                )
            else:
                self.moves.append(_Indexed(part))

    @property
    def pieces(self) -> int:
        """The number of separate blocks in memory."""
        return sum(
            prod(dimension[0] for dimension in part.dims)
            * (1 if isinstance(part, Run) else len(part.offsets))
            for part in self.parts
        )

    def pack(self, memory: Memory, origin: int, stream: Memory) -> None:
        """Read the message at byte `origin` of `memory` into the writable buffer `stream`."""
        for move in self.moves:
            move.pack(memory, origin, stream)

    def unpack(self, memory: Memory, origin: int, stream: Memory) -> None:
        """Write the bytes of `stream` to the message at byte `origin` of `memory`."""
        for move in self.moves:
            move.unpack(memory, origin, stream)

    def suits(self, other: CopyPlan) -> bool:
        """Whether `move` can copy to a message of another plan."""
        return self is other and len(self.moves) == 1 and isinstance(self.moves[0], _Strided)

    def move(self, memory: Memory, origin: int, target: Memory, offset: int) -> None:
        """Copy a message to one of the same plan, at byte `offset` of `target`, without a stream.

        A halo exchange sends columns of a matrix to columns of an equal one.
        """
        strided = self.moves[0]
        assert isinstance(strided, _Strided)
        strided.move(memory, origin, target, offset)

    def unpack_some(self, memory: Any, origin: int, stream: Any, nbytes: int) -> None:
        """As `unpack`, for a stream that ends after `nbytes` bytes, inside the message."""
        where = self.positions()[:nbytes]
        target = np.ndarray((self.high - self.low,), np.uint8, memory, origin + self.low)
        target[where - self.low] = np.frombuffer(stream, np.uint8, nbytes)

    def positions(self) -> np.ndarray:
        """The offset in memory of each byte of the stream, relative to the address."""
        where = np.empty(self.nbytes, dtype=np.int64)
        for part in self.parts:
            runs = (
                [part]
                if isinstance(part, Run)
                else [
                    Run(int(o), int(p), int(n), part.dims)
                    for o, p, n in zip(part.offsets, part.packed, part.lengths)
                ]
            )
            for run in runs:
                source, target = (
                    _spread(run.offset, run.length, [d[:2] for d in run.dims]),
                    _spread(run.packed, run.length, [(d[0], d[2]) for d in run.dims]),
                )
                where[target] = source
        return where


def _spread(offset: int, length: int, dims: list[tuple[int, int]]) -> np.ndarray:
    """Every byte position of a run, in the order of its dimensions."""
    where = np.arange(offset, offset + length, dtype=np.int64)
    for count, stride in reversed(dims):
        where = (np.arange(count, dtype=np.int64)[:, None] * stride + where).reshape(-1)
    return where


class _Strided:
    """Blocks of bytes that are repeated along dimensions."""

    __slots__ = ("counts", "length", "offset", "packed", "packed_strides", "strides")

    def __init__(self, run: Run) -> None:
        self.offset = run.offset
        self.packed = run.packed
        self.length = run.length
        self.counts = tuple([d[0] for d in run.dims])
        self.strides = tuple([d[1] for d in run.dims])
        self.packed_strides = tuple([d[2] for d in run.dims])

    def pack(self, memory: Memory, origin: int, stream: Memory) -> None:
        copy_blocks(
            stream,
            self.packed,
            self.packed_strides,
            memory,
            origin + self.offset,
            self.strides,
            self.counts,
            self.length,
        )

    def unpack(self, memory: Memory, origin: int, stream: Memory) -> None:
        copy_blocks(
            memory,
            origin + self.offset,
            self.strides,
            stream,
            self.packed,
            self.packed_strides,
            self.counts,
            self.length,
        )

    def move(self, memory: Memory, origin: int, target: Memory, offset: int) -> None:
        copy_blocks(
            target,
            offset + self.offset,
            self.strides,
            memory,
            origin + self.offset,
            self.strides,
            self.counts,
            self.length,
        )


class _Indexed:
    """One gather or scatter through an index of words."""

    __slots__ = (
        "dtype",
        "index",
        "offset",
        "packed",
        "packed_index",
        "packed_span",
        "shape",
        "span",
        "strides",
        "packed_strides",
    )

    def __init__(self, part: IrregularBlocks) -> None:
        offsets, packed, lengths = part.offsets, part.packed, part.lengths
        self.offset = int(offsets.min())
        self.packed = int(packed.min())
        offsets, packed = offsets - self.offset, packed - self.packed
        word = gcd(16, *(int(np.gcd.reduce(a)) for a in (lengths, offsets, packed)))
        self.dtype = np.dtype((np.void, word))
        words = lengths // word
        self.index = _ranges(offsets // word, words)
        self.span = int(self.index.max()) + 1
        self.packed_index: Any = _ranges(packed // word, words)
        self.packed_span = int(self.packed_index.max()) + 1
        if self.packed_span == len(self.packed_index) and (np.diff(self.packed_index) == 1).all():
            self.packed_index = slice(None)
        self.shape = tuple(d[0] for d in part.dims)
        self.strides = (*(d[1] for d in part.dims), word)
        self.packed_strides = (*(d[2] for d in part.dims), word)

    def _views(self, memory: Any, origin: int, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        return (
            np.ndarray(
                (*self.shape, self.span), self.dtype, memory, origin + self.offset, self.strides
            ),
            np.ndarray(
                (*self.shape, self.packed_span),
                self.dtype,
                stream,
                self.packed,
                self.packed_strides,
            ),
        )

    def pack(self, memory: Memory, origin: int, stream: Memory) -> None:
        source, target = self._views(memory, origin, stream)
        target[..., self.packed_index] = source[..., self.index]

    def unpack(self, memory: Memory, origin: int, stream: Memory) -> None:
        target, source = self._views(memory, origin, stream)
        target[..., self.index] = source[..., self.packed_index]


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The concatenation of range(start, start + length)."""
    ends = np.cumsum(lengths)
    shift = np.repeat(starts - (ends - lengths), lengths)
    return shift + np.arange(int(ends[-1]), dtype=np.int64)
