"""The decision tables of selectors have the entries of the libraries that they are from."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from pysmpi.collectives import registry, selectors
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
