"""Selection files: selectors as text, written by the user or by `pysmpi collectives tune`.

    allreduce
        P == 16   <=1024:rdb <=65536:rab_rdb else:lr
        else      ompi5
    bcast
        else      <8K:binomial_tree else:scatter_LR_allgather

The name of an operation begins a line. The lines of its decision table (see `tables`) follow,
indented. Sizes are bytes of a vector or block, as in `pysmpi collectives --bytes`; a name is that
of an algorithm or of a selector. `#` begins a comment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from zlib import crc32

from pysmpi.collectives import registry
from pysmpi.collectives.call import OPERATIONS, Call
from pysmpi.collectives.registry import Selector
from pysmpi.collectives.selectors.tables import SelectorTable, number
from pysmpi.errors import UsageError
from pysmpi.io.reading import read_text

_CONDITION = r"(?:P\s*(==|<=|<)\s*(\S+)|else)\s+(\S.*)"
_ENTRY = r"(?:(<=|<)([^:]+)|(else)):(.+)"
_NUMBER = r"[0-9]{1,15}[KM]?"


def size_of(call: Call) -> float:
    """The size for a table: bytes of the vector or block, the mean of unequal ones.

    0 if ranks do not know each other's counts.
    """
    if call.op in ("gatherv", "scatterv", "alltoallv", "alltoallw", "barrier"):
        return 0
    if call.recv_counts is not None and call.op in ("allgatherv", "reduce_scatter"):
        return sum(call.recv_counts) * call.type_size / call.size
    return call.nbytes


def looks_like_file(name: str) -> bool:
    """Whether the name of a selector is the name of a file."""
    return any(sign in name for sign in "/\\.") or os.path.isfile(name)


def load(path: str) -> Selector:
    """Read a selection file; its selector exists for the lifetime of the returned object."""
    text = read_text(path, "a selection file")
    # The contents are part of the name, so that cached results of other files are not used.
    name = f"{path}#{crc32(text.encode()):08x}"
    if registry.is_selector(name):
        return registry.find_selector(name)
    rules = {op: _rule(table) for op, table in _Reader(path).read(text).items()}
    return registry.lend_selector(Selector(name, f"the file {path}", rules))


def _rule(table: SelectorTable) -> Callable[[Call], str]:
    return lambda call: table.choose(call.size, size_of(call))


class _Reader:
    """Reads one file strictly: every complaint names the line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.line = 0

    def fail(self, found: str, expected: str) -> UsageError:
        """The error for this line."""
        return UsageError(f"{self.path}:{self.line}: expected {expected}, got {found}")

    def read(self, text: str) -> dict[str, SelectorTable]:
        """The tables by operation."""
        tables: dict[str, list[str]] = {}
        op = ""
        for self.line, raw in enumerate(text.splitlines(), 1):
            line = raw.partition("#")[0].rstrip()
            if not line:
                continue
            if not line[0].isspace():
                self._close(op, tables)
                op = line
                if op not in OPERATIONS or op.startswith("neighbor"):
                    raise self.fail(repr(op), "the name of a collective operation")
                if op in tables:
                    raise self.fail(f"{op} a second time", "one table for an operation")
                tables[op] = []
                self.last = 0.0
            elif not op:
                raise self.fail(repr(line.strip()), "the name of a collective operation")
            else:
                tables[op].append(self._row(op, line.strip(), tables[op]))
        self._close(op, tables)
        if not tables:
            self.line = max(self.line, 1)
            raise self.fail("nothing", "the name of a collective operation")
        return {op: SelectorTable("\n".join(lines)) for op, lines in tables.items()}

    def _close(self, op: str, tables: dict[str, list[str]]) -> None:
        if op and not (tables[op] and tables[op][-1].startswith("else")):
            raise self.fail(f"no line `else` for {op} above", "one that holds for all ranks")

    def _row(self, op: str, line: str, before: list[str]) -> str:
        if before and before[-1].startswith("else"):
            raise self.fail("a line behind `else`", "the name of a collective operation")
        match = re.fullmatch(_CONDITION, line)
        if match is None:
            raise self.fail(repr(line), "`P == N`, `P < N`, `P <= N` or `else`, and algorithms")
        sign, ranks, entries = match.groups()
        if sign:
            limit = self._number(ranks, "a number of ranks")
            if sign != "==":
                if limit <= self.last:
                    raise self.fail(f"P {sign} {ranks}", f"more ranks than {self.last:g}")
                self.last = limit
        self._entries(op, entries.split())
        return line

    def _entries(self, op: str, entries: list[str]) -> None:
        last = -1.0
        for i, entry in enumerate(entries):
            match = re.fullmatch(_ENTRY, entry)
            final = i == len(entries) - 1
            if match is None or match[3]:
                if not final:
                    raise self.fail(f"{entry!r} before others", "the entry for all sizes last")
                self._check(op, match[4] if match else entry)
                return
            limit = self._number(match[2], "a size such as 64K")
            if limit <= last:
                raise self.fail(repr(entry), "greater sizes from left to right")
            last = limit
            self._check(op, match[4])
            if final:
                raise self.fail(f"{entry!r} as the last entry", "`else:NAME` at the end")

    def _number(self, text: str, expected: str) -> float:
        if not re.fullmatch(_NUMBER, text):
            raise self.fail(repr(text), expected)
        return number(text)

    def _check(self, op: str, name: str) -> None:
        if name in registry.SELECTORS:
            return
        try:
            registry.find(op, name.partition(":")[0])
        except UsageError as error:
            raise UsageError(f"{self.path}:{self.line}: {error}") from None
