"""Decision tables as text.

    P < 8    <8K:ring <1M:tree else:linear
    else     tree

A line holds a condition on the number of ranks (`P == n`, `P < n`, `P <= n`, `else`) and the
entries for growing sizes: `<n:name` (below n), `<=n:name` (up to n), and at the end `else:name`, or
a plain name. K is 1024 and M is 1024 K. The first line and the first entry that hold are used; a
line that begins with an entry continues the previous one. If a library numbers its algorithms, a
legend `1=ring 2=tree` gives names to the numbers. A star after a name is kept; it marks entries
that work in two levels.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from pysmpi.collectives.call import Call

INFINITY = float("inf")
_LINE = re.compile(r"(?:P\s*(==|<=|<)\s*(\w+)|(else))\s+(.+)")
_ENTRY = re.compile(r"(?:(<=|<)(\w+)|(else)):(\S+)|(\S+)")


def number(text: str) -> float:
    """Read `12`, `8K`, `2M` or `inf`."""
    if text == "inf":
        return INFINITY
    scale = {"K": 1024, "M": 1024 * 1024}.get(text[-1], 1)
    return int(text.rstrip("KM")) * scale


class Row:
    """The entries of one line: names by size."""

    __slots__ = ("limits", "names")

    def __init__(self, text: str) -> None:
        """Read the entries; the last one is for every larger size."""
        self.limits: list[float] = []
        self.names: list[str] = []
        for sign, limit, otherwise, name, bare in _ENTRY.findall(text):
            if bare or otherwise:
                self.limits.append(INFINITY)
            else:
                # Sizes are integers: below n means up to n - 1.
                self.limits.append(number(limit) - (1 if sign == "<" else 0))
            self.names.append(name or bare)

    def choose(self, size: float) -> str:
        """The name of the first entry that holds for `size`, or of the last one."""
        return self.names[self.index(size)]

    def index(self, size: float) -> int:
        """The position of that entry."""
        return min(bisect_left(self.limits, size), len(self.names) - 1)


class SelectorTable:
    """Rows by number of ranks, and the meaning of their names."""

    __slots__ = ("exact", "legend", "limits", "rows")

    def __init__(self, text: str, legend: str = "") -> None:
        """Read the lines of a table, and the names of its numbers."""
        self.legend: dict[str, str] = dict(item.split("=") for item in legend.split())
        self.exact: dict[int, Row] = {}
        self.limits: list[float] = []
        self.rows: list[Row] = []
        whole = re.sub(r"\n\s*(?=<|else:)", " ", text)
        for line in filter(None, map(str.strip, whole.splitlines())):
            match = _LINE.fullmatch(line)
            if match is None:
                raise ValueError(f"not a line of a decision table: {line!r}")
            sign, ranks, otherwise, entries = match.groups()
            row = Row(entries)
            if sign == "==":
                self.exact[int(ranks)] = row
                continue
            limit = INFINITY if otherwise else number(ranks)
            self.limits.append(limit - (1 if sign == "<" else 0))
            self.rows.append(row)

    def row(self, ranks: int) -> Row:
        """The row for a number of ranks; the last one beyond the table."""
        if ranks in self.exact:
            return self.exact[ranks]
        return self.rows[min(bisect_left(self.limits, ranks), len(self.rows) - 1)]

    def choose(self, ranks: int, size: float) -> str:
        """The name for a number of ranks and a size in the table's unit."""
        name = self.row(ranks).choose(size)
        plain = name.removesuffix("*")
        return self.legend.get(plain, plain) + name[len(plain) :]

    def by_message(self, call: Call) -> str:
        """The name for the bytes of a call's message or block."""
        return self.choose(call.size, call.nbytes)

    def by_ranks(self, call: Call) -> str:
        """The name for the number of ranks alone."""
        return self.choose(call.size, 0)

    def renamed(self, legend: str) -> SelectorTable:
        """The same decisions with another legend."""
        table = SelectorTable("", legend)
        table.exact, table.limits, table.rows = self.exact, self.limits, self.rows
        return table


def by_order(commutative: SelectorTable, in_order: SelectorTable) -> Callable[[Call], str]:
    """Choose by one table for operators that commute, and by another for the others."""

    def choose(call: Call) -> str:
        return (commutative if call.commutative else in_order).by_message(call)

    return choose
