"""Decision tables as text: the files of libraries in this folder, and the selection files of users.

    allreduce
        names    1=ring 2=tree
        P < 8    <8K:1 <1M:2 else:linear
        else     2
    allreduce in order
        like     allreduce

A heading begins with the name of an operation. A line below it has a condition on the number of
ranks (`P == n`, `P < n`, `P <= n`, `else`) and the entries for growing sizes: `<n:name` (below n),
`<=n:name` (up to n), and at the end `else:name`, or a plain name. K is 1024 and M is 1024 K. The
first line and the first entry that hold are used; a line that begins with an entry continues the
line before it. If a library numbers its algorithms, `names` gives names to the numbers, in all
tables of the operation; names before the first heading are for all tables. `like` takes the lines
of another table, of the same file or of that of a library (`like ompi:allreduce`), and its names if
there are no others. A star after a name is kept; it marks entries that work in two levels. `#`
begins a comment.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from pysmpi.collectives.call import OPERATIONS, Call
from pysmpi.errors import UsageError

INFINITY = float("inf")
_CONDITION = re.compile(r"(?:P\s*(==|<=|<)\s*(\S+)|else)\s+(\S.*)")
_ENTRY = re.compile(r"(?:(<=|<)([^:]+)|else):(.+)")
_NUMBER = re.compile(r"[0-9]{1,15}[KM]?")
_OPERATION = "the name of a collective operation"


class _Wrong(Exception):
    """An error of one line: what was expected, and what was read."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")


def _number(text: str, expected: str) -> int:
    """Read `12`, `8K` or `2M`."""
    if not _NUMBER.fullmatch(text):
        raise _Wrong(expected, repr(text))
    scale = {"K": 1024, "M": 1024 * 1024}.get(text[-1], 1)
    return int(text.rstrip("KM")) * scale


class Row:
    """The entries of one line: names by size."""

    __slots__ = ("limits", "names")

    def __init__(self, text: str) -> None:
        """Read the entries; the last one is for every larger size."""
        self.limits: list[float] = []
        self.names: list[str] = []
        entries = text.split()
        last = -1
        for entry in entries:
            final = len(self.names) == len(entries) - 1
            match = _ENTRY.fullmatch(entry)
            if match is None or not match[1]:
                if not final:
                    raise _Wrong("the entry for all sizes last", f"{entry!r} before others")
                self.limits.append(INFINITY)
                self.names.append(match[3] if match else entry)
                continue
            limit = _number(match[2], "a size such as 64K")
            if limit <= last:
                raise _Wrong("greater sizes from left to right", repr(entry))
            if final:
                raise _Wrong("`else:NAME` at the end", f"{entry!r} as the last entry")
            last = limit
            # Sizes are integers: below n means up to n - 1.
            self.limits.append(limit - (1 if match[1] == "<" else 0))
            self.names.append(match[3])

    def choose(self, size: float) -> str:
        """The name of the first entry that holds for `size`."""
        return self.names[bisect_left(self.limits, size)]


class SelectorTable:
    """Rows by number of ranks, and the meaning of their names."""

    __slots__ = ("exact", "limits", "names", "rows")

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.exact: dict[int, Row] = {}
        self.limits: list[float] = []
        self.rows: list[Row] = []

    def add(self, line: str) -> Row:
        """Read one more line."""
        if self.complete:
            raise _Wrong(_OPERATION, "a line behind `else`")
        match = _CONDITION.fullmatch(line)
        if match is None:
            raise _Wrong("`P == N`, `P < N`, `P <= N` or `else`, and algorithms", repr(line))
        sign, ranks, entries = match.groups()
        limit: float = INFINITY
        if sign:
            limit = _number(ranks, "a number of ranks")
            if sign == "==":
                row = self.exact[int(limit)] = Row(entries)
                return row
            limit -= 1 if sign == "<" else 0
            if self.limits and limit <= self.limits[-1]:
                raise _Wrong(f"more ranks than {self.limits[-1]:g}", f"P {sign} {ranks}")
        row = Row(entries)
        self.limits.append(limit)
        self.rows.append(row)
        return row

    @property
    def complete(self) -> bool:
        """Whether the line `else` was read."""
        return bool(self.limits) and self.limits[-1] == INFINITY

    def row(self, ranks: int) -> Row:
        """The row for a number of ranks."""
        return self.exact.get(ranks) or self.rows[bisect_left(self.limits, ranks)]

    def choose(self, ranks: int, size: float) -> str:
        """The name for a number of ranks and a size in the table's unit."""
        return self.named(self.row(ranks).choose(size))

    def named(self, entry: str) -> str:
        """The name that an entry stands for."""
        plain = entry.removesuffix("*")
        return self.names.get(plain, plain) + entry[len(plain) :]


class Tables(Mapping[str, SelectorTable]):
    """The tables of a file by their headings. A table is read when it is first used.

    Raises UsageError, with the file and the line, for text that is no table. `check(operation,
    name)` may refuse names of algorithms. `plain` headings are names of operations.
    """

    def __init__(
        self,
        path: str,
        text: str,
        check: Callable[[str, str], object] | None = None,
        plain: bool = False,
    ) -> None:
        self._path = path
        self._plain = plain
        self._check = check
        self._tables: dict[str, SelectorTable] = {}
        # By operation; those of "" are for all tables.
        self._names: dict[str, dict[str, str]] = {}
        # The lines of each table with their numbers, and the number of the line after them.
        self._lines: dict[str, list[tuple[int, str]]] = {}
        self._ends: dict[str, int] = {}
        self._split(text)

    def _split(self, text: str) -> None:
        """Find the headings, the names, and the lines of each table."""
        lines: list[tuple[int, str]] | None = None
        heading = op = ""
        number = 1
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.partition("#")[0].rstrip()
            content = line.lstrip()
            indented = content != line
            try:
                if not line:
                    continue
                if content.startswith("names ") and indented is (lines is not None):
                    self._names.setdefault(op, {}).update(_names(content.removeprefix("names ")))
                elif indented and lines is not None:
                    if lines and content.startswith(("<", "else:")):
                        lines[-1] = lines[-1][0], f"{lines[-1][1]} {content}"
                    else:
                        lines.append((number, content))
                else:
                    op = operation_of(content)
                    is_operation = op in OPERATIONS and not op.startswith("neighbor")
                    if indented or not is_operation or (self._plain and content != op):
                        raise _Wrong(_OPERATION, repr(content))
                    if content in self._lines:
                        raise _Wrong("one table for an operation", f"{content} a second time")
                    self._ends[heading] = number
                    heading = content
                    lines = self._lines[heading] = []
            except _Wrong as error:
                raise self._error(number, error) from None
        if lines is None:
            raise self._error(number, _Wrong(_OPERATION, "nothing"))
        self._ends[heading] = number

    def _error(self, number: int, error: Exception) -> UsageError:
        return UsageError(f"{self._path}:{number}: {error}")

    def __getitem__(self, heading: str) -> SelectorTable:
        table = self._tables.get(heading)
        if table is None:
            table = self._tables[heading] = self._read(heading)
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def _read(self, heading: str) -> SelectorTable:
        op = operation_of(heading)
        names = self._names.get(op, self._names.get(""))
        table = SelectorTable(names or {})
        for number, line in self._lines[heading]:
            key, _, rest = line.partition(" ")
            try:
                if key == "like":
                    other = self._other(rest.strip())
                    table.exact, table.limits, table.rows = other.exact, other.limits, other.rows
                    table.names = other.names if names is None else names
                    continue
                for entry in table.add(line).names:
                    if self._check is not None:
                        self._check(op, table.named(entry))
            except (_Wrong, UsageError) as error:
                raise self._error(number, error) from None
        if not table.complete:
            wrong = _Wrong("one that holds for all ranks", f"no line `else` for {heading} above")
            raise self._error(self._ends[heading], wrong)
        return table

    def _other(self, name: str) -> SelectorTable:
        """The table of this file, or, as `LIBRARY:HEADING`, of that of a library."""
        library, colon, heading = name.rpartition(":")
        tables = library_tables(library) if colon else self
        if heading not in tables:
            raise _Wrong(f"one of the tables {', '.join(tables)}", repr(name))
        return tables[heading]


def _names(text: str) -> dict[str, str]:
    pairs = [item.partition("=") for item in text.split()]
    if not all(sign and name for _, sign, name in pairs):
        raise _Wrong("names such as `1=ring 2=tree`", repr(text))
    return {number: name for number, _, name in pairs}


def operation_of(heading: str) -> str:
    """The operation that the heading of a table begins with."""
    return heading.replace("/", " ").partition(" ")[0]


def file_of(library: str) -> str:
    """The path of the tables of a library."""
    return os.path.join(os.path.dirname(__file__), f"{library}.table")


@cache
def library_tables(library: str) -> Tables:
    """The tables of a library by their headings."""
    path = file_of(library)
    if not library.isidentifier() or not os.path.isfile(path):
        raise _Wrong("a library with a file of tables", repr(library))
    with open(path, encoding="utf-8") as stream:
        return Tables(path, stream.read())


def by_message(tables: Tables, heading: str) -> Callable[[Call], str]:
    """Choose from a table by the bytes of a call's message or block."""
    return lambda call: tables[heading].choose(call.size, call.nbytes)


def by_ranks(tables: Tables, heading: str) -> Callable[[Call], str]:
    """Choose from a table by the number of ranks alone."""
    return lambda call: tables[heading].choose(call.size, 0)


def by_order(tables: Tables, op: str) -> Callable[[Call], str]:
    """Choose as `by_message`, from the table `OP in order` if the operator does not commute."""

    def choose(call: Call) -> str:
        heading = op if call.commutative else f"{op} in order"
        return tables[heading].choose(call.size, call.nbytes)

    return choose


def mean_block(call: Call) -> int:
    """The bytes of the mean block of an allgatherv."""
    return sum(call.recv_counts or ()) * call.type_size // call.size
