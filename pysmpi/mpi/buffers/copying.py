"""Copies of the data of messages from memory to memory.

This module is compiled: every block of contiguous data passes through it.
"""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np

_LARGE: Final = 128 << 10  # bytes; with less, finding the addresses takes as long as is won
_VECTOR: Final = 32  # bytes
_WORD: Final = 8  # bytes

_address: Final = ctypes.addressof
_first_byte: Final = ctypes.c_char.from_buffer
_frombuffer: Final = np.frombuffer
_positive: Final = np.positive
_word: Final = np.dtype(np.uint64)


def copy(target: memoryview, source: bytes | bytearray | memoryview) -> None:
    """Copy packed data to a view of as many bytes."""
    if len(source) >= _LARGE and isinstance(source, memoryview) and _shifted(target, source):
        _copy_words(target, source)
    else:
        target[:] = source


def _shifted(target: memoryview, source: memoryview) -> bool:
    """Whether two views are aligned for words, but not in the same way for vectors.

    The C library often copies with one instruction (`rep movsb`), which on AMD's processors then
    takes up to twice as long.
    """
    if source.readonly or source.itemsize != 1:
        return False
    to: int = _address(_first_byte(target))
    start: int = _address(_first_byte(source))
    return (to - start) % _VECTOR != 0 and to % _WORD == 0 and start % _WORD == 0


def _copy_words(target: memoryview, source: memoryview) -> None:
    """Copy with numpy's loop over words."""
    count = len(source) // _WORD
    _positive(_frombuffer(source, _word, count), _frombuffer(target, _word, count))
    rest = count * _WORD
    if rest < len(source):
        target[rest:] = source[rest:]
