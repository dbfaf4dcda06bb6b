"""Programs of which the search proves that no order fails, and their twins with an error.

`PYSMPI_ALL_ORDERS=1` takes the consensus of four ranks, which takes a minute.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pysmpi.cli.main import status_of
from pysmpi.explore.states import MEETS

meets = pytest.mark.skipif(
    not MEETS, reason="orders do not meet without a C compiler, nor in Python 3.14"
)
PROOFS = Path(__file__).parent / "proofs"
RANKS = {
    "consensus": 4 if os.environ.get("PYSMPI_ALL_ORDERS") else 2,
    "halo": 3,
    "safra": 4,
    "stealing": 3,
    "tree_barrier": 4,
}
MOST = 400  # executions
ERRORS = {
    "consensus": "early",
    "halo": "order",
    "safra": "white",
    "stealing": "deaf",
    "tree_barrier": "count",
}


def explored(name: str, *words: str) -> tuple[int, dict[str, int]]:
    """The exit status of a search, and the figures of its outcome."""
    line = ["explore", "-q", "-n", str(RANKS[name]), "--sends", "buffered", "--check", "none"]
    line += ["--database", "none", "--no-shrink", "-j", "2", "--json", "found.json"]
    status = status_of([*line, str(PROOFS / f"{name}.py"), *words])
    return status, json.loads(Path("found.json").read_text())


@meets
@pytest.mark.parametrize("name", RANKS)
def test_loops_of_polls_and_orders_that_meet_are_proved(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, found = explored(name)
    assert status == 0
    assert found["complete"]
    assert found["meetings"] > 0
    if RANKS["consensus"] < 4:
        assert found["executions"] + found["redundant"] < MOST


@pytest.mark.parametrize("name", RANKS)
def test_their_twins_fail(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status, found = explored(name, ERRORS[name])
    assert status == 1
