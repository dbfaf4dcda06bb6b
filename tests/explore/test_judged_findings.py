"""Findings about another message are kept, dropped or explained by the result with it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pysmpi.explore import evidence
from pysmpi.explore.strategy import TIME
from pysmpi.reports.findings import Finding

KIND: Any = SimpleNamespace(code="PSM000")


def finding(doubtful: bool, match: Any = "other") -> Finding:
    return Finding(KIND, "what", [], "rule", "cure", match=match, doubtful=doubtful)


@pytest.mark.parametrize(
    ("difference", "doubtful", "kept", "more"),
    [
        ("", False, True, "gives the same result"), ("", True, False, ""),
        ("it hangs", False, True, "it hangs"), ("it hangs", True, True, "it hangs"),
        (None, False, True, ""), (None, True, False, ""),
    ],
)  # fmt: skip
def test_what_the_other_message_shows(
    monkeypatch: pytest.MonkeyPatch, difference: str | None, doubtful: bool, kept: bool, more: str
) -> None:
    monkeypatch.setattr(evidence, "_difference", lambda *arguments: difference)
    job: Any = SimpleNamespace(options=SimpleNamespace(schedule=TIME, replay_schedule=None))
    result: Any = SimpleNamespace(wall_seconds=0.0)
    one, plain = finding(doubtful), finding(doubtful, None)
    assert evidence.judged(job, result, [one, plain]) == ([one] if kept else []) + [plain]
    assert more in "".join(one.more) and bool(one.more) == bool(more)


@pytest.mark.parametrize(
    ("schedule", "repeated", "seconds", "expected"),
    [
        (TIME, None, 0.0, True), ("random", None, 0.0, False), (TIME, "d0", 0.0, False),
        (TIME, None, evidence.LONGEST, True), (TIME, None, evidence.LONGEST + 1, False),
    ],
)  # fmt: skip
def test_which_runs_are_tried_again(
    schedule: str, repeated: str | None, seconds: float, expected: bool
) -> None:
    options = SimpleNamespace(schedule=schedule, replay_schedule=repeated)
    job: Any = SimpleNamespace(options=options)
    result: Any = SimpleNamespace(wall_seconds=seconds)
    assert evidence._repeatable(job, result) == expected
