"""Rank files: the host and the core of each rank, one rank a line, as Open MPI writes them.

rank 0=node-1 slot=0
rank 1=node-2 slot=1:3      # the fourth core of the second socket
rank 2=node-1               # the next core of the host
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from pysmpi.errors import UsageError
from pysmpi.text import whole

_LINE = r"rank\s+(?P<rank>\d+)\s*=\s*(?P<host>\S+)(?:\s+slots?\s*=\s*(?P<slot>[0-9:,*-]+))?"


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """A pattern, which takes long to compile: most host files have no such line."""
    return re.compile(text, re.IGNORECASE)


class RankLine(NamedTuple):
    """The host of a rank, and its first core: `core` of `socket`, or of the host if that is None.

    `core` is None for the next core of the host.
    """

    where: str
    rank: int
    host: str
    socket: int | None = None
    core: int | None = None


def is_rank_line(content: str) -> bool:
    """Whether a line of a host file, without comments, places a rank."""
    if content[:4].lower() != "rank":
        return False
    return _pattern(r"rank\s+\S+\s*=").match(content) is not None


def read_rank_line(content: str, where: str) -> RankLine:
    """The rank that a line places. Raises UsageError."""
    match = _pattern(_LINE).fullmatch(content)
    rank = None if match is None else whole(match["rank"], 9)
    if match is None or rank is None:
        raise UsageError(f'{where}: expected "rank N=HOST slot=CORE", got "{content}"')
    if match["slot"] is None:
        return RankLine(where, rank, match["host"])
    socket, colon, cores = match["slot"].rpartition(":")
    first = re.split("[-,]", cores)[0]
    core = 0 if first == "*" else whole(first, 9)
    number = whole(socket, 9) if colon else None
    if core is None or (colon and number is None):
        raise UsageError(
            f'{where}: slot: expected a core such as 3, or SOCKET:CORE, got "{match["slot"]}"'
        )
    return RankLine(where, rank, match["host"], number, core)
