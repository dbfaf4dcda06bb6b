"""Copies of the data of messages from memory to memory.

This module is compiled: every block of contiguous data passes through it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pysmpi.mpi.base.exporting import address_of

_LARGE: Final = 128 << 10  # bytes; with less, finding the addresses takes as long as is won
_VECTOR: Final = 32  # bytes
_WORD: Final = 8  # bytes

_word: Final = np.dtype(np.uint64)


def copy(target: memoryview, source: bytes | bytearray | memoryview) -> None:
    """Copy packed data to a view of as many bytes."""
    if len(source) >= _LARGE and _shifted(address_of(target), address_of(source)):
        _copy_words(target, source)
    else:
        target[:] = source


def _shifted(target: int, source: int) -> bool:
    """Whether two addresses are aligned for words, but not in the same way for vectors.

    The C library often copies with one instruction (`rep movsb`), which on AMD's processors then
    takes up to twice as long.
    """
    return (target - source) % _VECTOR != 0 and target % _WORD == 0 and source % _WORD == 0


def _copy_words(target: memoryview, source: bytes | bytearray | memoryview) -> None:
    """Copy with numpy's loop over words."""
    count = len(source) // _WORD
    np.positive(np.frombuffer(source, _word, count), np.frombuffer(target, _word, count))
    rest = count * _WORD
    if rest < len(source):
        target[rest:] = source[rest:]
