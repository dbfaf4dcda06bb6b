"""Whole numbers as platform files write them: counts, and the numbers of a cluster's hosts."""

from __future__ import annotations

import re

from pysmpi.errors import UsageError

# A typing error such as 0-9999999999 should be a message, not an exhausted memory.
MOST_HOSTS = 10_000_000

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def read_count(text: str) -> int:
    """A whole number from 1 on. Raises UsageError."""
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdecimal()) or not 0 < len(stripped) < 10:
        raise UsageError(f'expected a whole number above 0, got "{text}"')
    if int(stripped) == 0:
        raise UsageError(f'expected a whole number above 0, got "{text}"')
    return int(stripped)


def read_counts(text: str, separator: str = ",") -> tuple[int, ...]:
    """Whole numbers from 1 on, separated. Raises UsageError."""
    return tuple(read_count(part) for part in text.split(separator))


def read_radical(text: str) -> list[tuple[int, int]]:
    """Host numbers such as "0-3,8,10-11", as inclusive ranges in order. Raises UsageError."""
    ranges: list[tuple[int, int]] = []
    total = 0
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise UsageError(f'expected host numbers, e.g. "0-63" or "0-3,8", got "{text}"')
        first = int(match.group(1))
        last = first if match.group(2) is None else int(match.group(2))
        if last < first:
            raise UsageError(f'expected a range that does not go down, got "{part.strip()}"')
        total += last - first + 1
        if total > MOST_HOSTS:
            raise UsageError(f'expected at most {MOST_HOSTS} hosts, got "{text}"')
        ranges.append((first, last))
    return ranges


def write_radical(ranges: list[tuple[int, int]]) -> str:
    """The text that `read_radical` reads as `ranges`."""
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)
