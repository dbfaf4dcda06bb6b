"""Selection files: selectors as text, written by the user or by `pysmpi collectives tune`.

    allreduce
        P == 16   <=1024:rdb <=65536:rab_rdb else:lr
        else      ompi5
    bcast
        else      <8K:binomial_tree else:scatter_LR_allgather

The form is that of decision tables (see `tables`), with the name of an operation as the heading of
each. Sizes are bytes of a vector or block, as in `pysmpi collectives --bytes`; a name is that of an
algorithm or of a selector.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from zlib import crc32

from pysmpi.collectives import registry
from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import Selector
from pysmpi.collectives.selectors.tables import SelectorTable, Tables
from pysmpi.io.reading import read_text


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
    tables = Tables(path, text, _check, plain=True)
    rules = {op: _rule(table) for op, table in tables.items()}
    return registry.lend_selector(Selector(name, f"the file {path}", rules))


def _rule(table: SelectorTable) -> Callable[[Call], str]:
    return lambda call: table.choose(call.size, size_of(call))


def _check(op: str, name: str) -> None:
    """Raise UsageError unless there is an algorithm or a selector of that name."""
    if name not in registry.SELECTORS:
        registry.find(op, name.partition(":")[0])
