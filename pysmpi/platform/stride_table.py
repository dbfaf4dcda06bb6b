"""Measured costs by size and stride: the function f(s, d) of log_nP as a table.

`bytes/stride:seconds;...` has a value for each pair of its sizes and its strides. Between sizes the
cost is linear in the size, between strides in the logarithm of the stride. Outside of the sizes it
is proportional to the size; outside of the strides it is that of the nearest.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from pysmpi.errors import UsageError
from pysmpi.platform.units import parse_time
from pysmpi.python.records import record

_CELL = re.compile(r"\s*([1-9]\d{0,14})\s*/\s*([1-9]\d{0,14})\s*:(.*)", re.DOTALL)
_EXPECTED = "expected cells bytes/stride:time;..., such as 1024/8:2us;1024/64:4us"


class Strides(NamedTuple):
    """The bytes of strided data, its separate pieces, and the bytes that they span."""

    nbytes: int
    pieces: int
    span: int


@record(frozen=True)
class StrideTable:
    """`seconds[i][j]` are those of `sizes[i]` bytes in pieces that are `strides[j]` bytes apart."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    seconds: tuple[tuple[float, ...], ...]

    def at(self, nbytes: int, stride: int) -> float:
        """Seconds of a message."""
        sizes = self.sizes
        columns = [self._of_stride(row, stride) for row in self.seconds]
        if nbytes <= sizes[0]:
            return columns[0] * nbytes / sizes[0]
        if nbytes >= sizes[-1]:
            return columns[-1] * nbytes / sizes[-1]
        right = bisect_left(sizes, nbytes)
        part = (nbytes - sizes[right - 1]) / (sizes[right] - sizes[right - 1])
        return columns[right - 1] + part * (columns[right] - columns[right - 1])

    def _of_stride(self, row: Sequence[float], stride: int) -> float:
        strides = self.strides
        if stride <= strides[0]:
            return row[0]
        if stride >= strides[-1]:
            return row[-1]
        right = bisect_left(strides, stride)
        low, high = strides[right - 1], strides[right]
        part = math.log(stride / low) / math.log(high / low)
        return row[right - 1] + part * (row[right] - row[right - 1])


def parse(text: str) -> StrideTable:
    """Read a table. Raises UsageError."""
    cells: dict[tuple[int, int], float] = {}
    for part in filter(None, (one.strip() for one in text.split(";"))):
        match = _CELL.fullmatch(part)
        if match is None:
            raise UsageError(f"{_EXPECTED}, got {part!r}")
        key = int(match[1]), int(match[2])
        if key in cells:
            raise UsageError(f"expected a cell once, got {key[0]}/{key[1]} again")
        cells[key] = parse_time(match[3].strip(), bare=True)
    if not cells:
        raise UsageError(f"{_EXPECTED}, got {text!r}")
    sizes = sorted({size for size, _ in cells})
    strides = sorted({stride for _, stride in cells})
    for size in sizes:
        for stride in strides:
            if (size, stride) not in cells:
                raise UsageError(
                    f"expected a cell for each size and stride, got none for {size}/{stride}"
                )
    seconds = tuple(tuple(cells[size, stride] for stride in strides) for size in sizes)
    return StrideTable(tuple(sizes), tuple(strides), seconds)
