"""The decision tables of selectors have the entries of the libraries that they are from."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pysmpi.collectives.selectors.tables import SelectorTable

DATA = Path(__file__).parents[1] / "data" / "decisions.json.gz"
DECISIONS: dict[str, dict[str, dict[str, list[tuple[int, str]]]]] = json.loads(
    gzip.decompress(DATA.read_bytes())
)


def tables_of(selector: str) -> Iterator[tuple[str, SelectorTable]]:
    """The tables of a selector; those by ranks on a node are named as ALLREDUCE/16."""
    module: Any = import_module(f"pysmpi.collectives.selectors.{selector}")
    for name, value in vars(module).items():
        if isinstance(value, SelectorTable):
            yield name, value
        elif isinstance(value, dict) and isinstance(next(iter(value.values()), 0), SelectorTable):
            for ranks, table in value.items():
                yield f"{name}/{ranks}", table


@pytest.mark.parametrize("selector", DECISIONS)
def test_every_entry_is_that_of_the_library(selector: str) -> None:
    """For the first and the last size of each entry, in the first and the last row of each kind."""
    tables = dict(tables_of(selector))
    expected = DECISIONS[selector]
    covered = {id(tables[name]) for name in expected}
    # Those of `ompi5` are those of `ompi`, but for one.
    assert selector == "ompi5" or covered == {id(table) for table in tables.values()}
    for name, rows in expected.items():
        for ranks, entries in rows.items():
            ends = [size - 1 for size, _ in entries[1:]] + [2 * entries[-1][0] + 1]
            for (first, number), last in zip(entries, ends):
                row = tables[name].row(int(ranks))
                assert row.choose(first) == row.choose(last) == number, (name, ranks, first, last)
