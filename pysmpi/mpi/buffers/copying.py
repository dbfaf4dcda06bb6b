"""Copies of the data of messages from memory to memory.

This module is compiled: every block of contiguous data passes through it.
"""

from __future__ import annotations

import sys
from typing import Final

try:
    from pysmpi.mpi.base import memcopy
except ImportError:  # pysmpi was installed without a C compiler
    memcopy = None  # type: ignore[assignment]

# Bytes of a block that is copied with `memcopy`; for less, the C library's way is as good.
_LARGE: Final = 128 << 10
_LEAST: Final = 64 << 10  # the same for a block that is copied past the cache
# Three quarters of the cache that the cores of most machines share, in bytes. The C library copies
# single blocks of three quarters of its size past the cache.
_CACHE: Final = 24 << 20


class _Limits:
    """The sizes from which a block is copied with `memcopy`, and with it past the cache."""

    __slots__ = ("large", "past_cache")

    def __init__(self) -> None:
        self.large = sys.maxsize if memcopy is None else _LARGE
        self.past_cache = sys.maxsize

    def suit(self, ranks: int) -> None:
        """Copy a block past the cache if as many ranks with such blocks would fill it.

        With 0 ranks no block is.
        """
        if memcopy is not None:
            self.past_cache = max(_LEAST, _CACHE // ranks) if ranks else sys.maxsize
            self.large = min(_LARGE, self.past_cache)


LIMITS: Final = _Limits()


def copy(target: memoryview, source: bytes | bytearray | memoryview) -> None:
    """Copy packed data to a view of as many bytes."""
    nbytes = len(source)
    if nbytes >= LIMITS.large:
        memcopy.copy(target, source, nbytes >= LIMITS.past_cache)
    else:
        target[:] = source
