"""A sample of the cases of `python -m tests.fuzz`, and what the guards see."""

from __future__ import annotations

import os
from pathlib import Path

from tests.fuzz import samples
from tests.fuzz.cases import FuzzCase
from tests.fuzz.execution import Fuzzer, execute

CASES = int(os.environ.get("PYSMPI_FUZZ", "120"))


def test_some_cases():
    with Fuzzer(seed=1) as fuzzer:
        found = [fuzzer.run(number) for number in range(CASES)]
    assert [problem for problem in found if problem is not None] == []


def test_samples_are_right(tmp_path: Path):
    """Otherwise their mutations would try the first check of a reader only."""
    for name, (text, commands) in samples.READERS.items():
        words = [part.replace("{}", name) for part in commands[0]]
        if name == "primitive.py":
            continue  # it ends with an error of its own
        _, _, _, problem = execute(FuzzCase(words, {name: text.encode()}), tmp_path)
        assert problem is None


def test_what_the_guards_see(tmp_path: Path, monkeypatch):
    from pysmpi.cli import main

    def broken(words):
        raise ZeroDivisionError

    monkeypatch.setattr(main, "status_of", broken)
    assert "ZeroDivisionError" in execute(FuzzCase(["models"]), tmp_path)[3]
    monkeypatch.setattr(main, "status_of", lambda words: 70)
    assert execute(FuzzCase(["models"]), tmp_path)[3].startswith("internal error")
    monkeypatch.setattr(main, "status_of", lambda words: len(bytearray(200 << 20)) * 0)
    assert execute(FuzzCase(["models"]), tmp_path)[2] > 200 << 20
