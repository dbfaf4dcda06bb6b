"""The report of a test is made of those of its ranks, and of what was noticed besides."""

from __future__ import annotations

from typing import Any

import pytest

from pysmpi.diagnostics import DIAGNOSTICS
from pysmpi.pytest_plugin.merging import merged
from pysmpi.pytest_plugin.outcomes import ItemOutcome
from pysmpi.reports.findings import Finding


def outcome_of(item: Any, results: list[str], **facts: Any) -> ItemOutcome:
    """The outcome of a test whose ranks have these results in the call."""
    reports = {
        pid: pytest.TestReport(item.nodeid, item.location, {}, result, None, "call", duration=pid)
        for pid, result in enumerate(results)
    }
    return ItemOutcome(len(results), {"call": reports}, **facts)


def finding(error: bool) -> Finding:
    return Finding(next(iter(DIAGNOSTICS.values())), "what", [], "rule", "cure", error)


@pytest.mark.parametrize(
    ("results", "facts", "expected"),
    [
        (["passed", "passed"], {}, "passed"),
        (["passed", "failed"], {}, "failed"),
        (["skipped", "passed"], {}, "passed"),  # some ranks may have nothing to test
        (["skipped", "skipped"], {}, "skipped"),
        (["passed"], {"findings": [finding(False)]}, "passed"),
        (["passed"], {"findings": [finding(False), finding(True)]}, "failed"),
        (["passed"], {"left": ["rank 0: a receive"]}, "failed"),
        (["passed"], {"seconds": 2.0, "timeout": 1.0}, "failed"),
        (["passed"], {"seconds": 1.0, "timeout": 1.0}, "passed"),
    ],
)
def test_what_decides(
    request: pytest.FixtureRequest, results: list[str], facts: dict[str, Any], expected: str
) -> None:
    report = merged(request.node, "call", outcome_of(request.node, results, **facts), 0.5)
    assert report is not None and report.outcome == expected
    assert report.duration == 0.5
    shown = [title for title, _ in report.sections if title == "Checked by pysmpi"]
    assert bool(shown) == (expected == "passed" and bool(facts.get("findings")))
