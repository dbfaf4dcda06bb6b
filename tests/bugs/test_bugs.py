"""The checkers find the errors of small programs, name the lines, and spare correct programs."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from pathlib import Path

import pytest

from tests.bugs.collection import Bug, judge, programs

PROGRAMS = list(programs())


@pytest.mark.parametrize("bug", PROGRAMS, ids=lambda bug: f"{bug.kind}/{bug.name}")
def test_program(bug: Bug, tmp_path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        verdict = judge(bug, tmp_path)
    if not bug.wrong:
        assert not verdict.report
        return
    assert verdict.found
    assert verdict.right, verdict.report
    assert verdict.named, f"lines {sorted(bug.lines)} are at fault:\n{verdict.report}"


def test_there_are_three_programs_of_each_class() -> None:
    wrong = Counter(bug.kind for bug in PROGRAMS if bug.wrong)
    assert all(count >= 3 for count in wrong.values())
    assert len(PROGRAMS) >= 200
