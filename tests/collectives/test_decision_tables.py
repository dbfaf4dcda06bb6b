"""The decision tables of selectors have the entries of the libraries that they are from."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from pysmpi.collectives import registry, selectors
from pysmpi.collectives.call import Call
from pysmpi.collectives.selection import Selection
from pysmpi.collectives.selectors.tables import Tables, file_of, library_tables
from pysmpi.errors import UsageError

DATA = Path(__file__).parents[1] / "data" / "decisions.json.gz"
DECISIONS: dict[str, dict[str, dict[str, list[tuple[int, str]]]]] = json.loads(
    gzip.decompress(DATA.read_bytes())
)

LIBRARIES = sorted(path.stem for path in Path(selectors.__file__).parent.glob("*.table"))


def heading_of(name: str) -> str:
    """The heading of a table: `reduce in order` for REDUCE_IN_ORDER, `bcast/16` for BCAST/16."""
    found = re.fullmatch(r"(\w+?)(_INSIDE|_IN_ORDER)?(?:[_/](\d+))?", name)
    assert found is not None
    operation, kind, ranks = found.groups()
    words = [operation + (f"/{ranks}" if ranks else ""), *(kind or "").split("_")[1:]]
    return " ".join(words).lower()


@pytest.mark.parametrize("selector", DECISIONS)
def test_every_entry_is_that_of_the_library(selector: str) -> None:
    """For the first and the last size of each entry, in the first and the last row of each kind."""
    tables = library_tables(selector)
    expected = {heading_of(name): rows for name, rows in DECISIONS[selector].items()}
    # Those of `ompi5` are those of `ompi`, but for one.
    assert selector == "ompi5" or set(expected) == set(tables)
    for heading, rows in expected.items():
        for ranks, entries in rows.items():
            ends = [size - 1 for size, _ in entries[1:]] + [2 * entries[-1][0] + 1]
            for (first, number), last in zip(entries, ends):
                row = tables[heading].row(int(ranks))
                assert row.choose(first) == row.choose(last) == number, (heading, ranks, first)


def call_of(op: str, ranks: int, size: int, in_order: bool) -> Call:
    """A call whose size is the one by which Open MPI decides (bytes)."""
    count, counts = size, None
    if op == "reduce_scatter":  # of all blocks
        counts = tuple(size // ranks + (rank < size % ranks) for rank in range(ranks))
    elif op == "reduce_scatter_block":
        count = size // ranks
    elif op == "allgatherv":  # of a block in the mean
        counts = (size,) * ranks
    return Call(op, 0, ranks, count=count, recv_counts=counts, commutative=not in_order)


@pytest.mark.parametrize("selector", ["ompi", "ompi5"])
def test_a_call_has_the_algorithm_of_its_entry(selector: str) -> None:
    """By its ranks and its bytes, for the first size of each entry."""
    tables, selection = library_tables(selector), Selection(selector)
    differ = set()
    for table, rows in {**DECISIONS["ompi"], **DECISIONS[selector]}.items():
        op, in_order = table.removesuffix("_IN_ORDER").lower(), table.endswith("_IN_ORDER")
        for number, entries in rows.items():
            ranks = int(number)
            for size, entry in entries:
                if op.startswith("reduce_scatter") and size % ranks or size == 0:
                    continue  # no block has this size, or some are empty
                chosen = selection.choose(call_of(op, ranks, size, in_order))
                expected = tables[heading_of(table)].named(entry)
                if chosen != expected:
                    differ.add((expected, chosen, ranks))
    # Algorithms for a power of two, or for an even number of ranks.
    assert all(
        ranks & (ranks - 1)
        if expected in ("pair", "rdb")
        else expected == "ompi_neighborexchange" and ranks % 2
        for expected, _, ranks in differ
    ), differ


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_name_is_an_algorithm(library: str) -> None:
    """Tables are read when they are first used; here all are, with all names that they have."""
    wrong = []

    def check(operation: str, name: str) -> None:
        # Names with a star are parts of a two-level algorithm. Intel's `halving` is one of two.
        known = {*registry.algorithms_of(operation), *registry.SELECTORS.names(), "halving"}
        if not name.endswith("*") and name not in known:
            wrong.append((operation, name))

    path = Path(file_of(library))
    tables = Tables(str(path), path.read_text(encoding="utf-8"), check)
    assert all(table.complete for table in tables.values())
    assert not wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bcast\n  P ~ 3  a\n", ":2: expected `P == N`, `P < N`, `P <= N` or `else`"),
        ("bcast\n  else a\nbcst/2\n", ":3: expected the name of a collective operation"),
        ("bcast\n  names 1:a\n", ":2: expected names such as `1=ring 2=tree`, got '1:a'"),
        ("bcast\n  like bcast/2\n", ":2: expected one of the tables bcast, got 'bcast/2'"),
        ("bcast\n  like opmi:bcast\n", ":2: expected a library with a file of tables, got 'opmi'"),
        ("bcast\n\n  P < 3  <4:a\n    <4:b else:c\n", ":3: expected greater sizes"),
        ("bcast\n  P < 3  a\nscan\n else b\n", ":3: expected one that holds for all ranks"),
    ],
)
def test_an_error_names_the_line(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        dict(Tables("x.table", text))
    assert str(error.value).startswith(f"x.table{message}")
