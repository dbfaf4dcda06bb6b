"""Whole numbers as platform files write them: counts, and the numbers of a cluster's hosts."""

from __future__ import annotations

import math
import re

from pysmpi.errors import UsageError

# Limits of a machine, and the options that change them: a typing error should be a message,
# not an exhausted memory.
MOST = {
    "hosts": ("platform/most-hosts", 2_000_000),
    "links": ("platform/most-links", 4_000_000),
}

_RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")


def read_count(text: str) -> int:
    """An integer of at least 1. Raises UsageError."""
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdecimal()) or not 0 < len(stripped) < 10:
        raise UsageError(f'expected a whole number above 0, got "{text}"')
    if int(stripped) == 0:
        raise UsageError(f'expected a whole number above 0, got "{text}"')
    return int(stripped)


def read_counts(text: str, separator: str = ",") -> tuple[int, ...]:
    """Whole numbers from 1 on, separated. Raises UsageError."""
    return tuple(read_count(part) for part in text.split(separator))


def read_coordinates(text: str) -> tuple[float, float, float]:
    """Three numbers with spaces between: x, y and height."""
    try:
        x, y, height = map(float, text.split())
    except ValueError:
        x = y = height = math.nan
    if not all(map(math.isfinite, (x, y, height))):
        raise UsageError(f'expected three numbers such as "25.5 9.4 1.4", got "{text}"')
    return x, y, height


def read_radical(text: str) -> list[tuple[int, int]]:
    """Host numbers such as "0-3,8,10-11", as inclusive ranges in order. Raises UsageError."""
    ranges: list[tuple[int, int]] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise UsageError(f'expected host numbers, e.g. "0-63" or "0-3,8", got "{text}"')
        first = int(match.group(1))
        last = first if match.group(2) is None else int(match.group(2))
        if last < first:
            raise UsageError(f'expected a range that does not go down, got "{part.strip()}"')
        ranges.append((first, last))
    return ranges


def write_radical(ranges: list[tuple[int, int]]) -> str:
    """The text that `read_radical` reads as `ranges`."""
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)
