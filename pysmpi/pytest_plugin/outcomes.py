"""The outcome of a test on ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from pysmpi.errors import PysmpiError
from pysmpi.reports.deadlock import DeadlockReport
from pysmpi.reports.findings import Finding


@dataclass
class ItemOutcome:
    """The outcome of a test.

    `reports` has the reports of each phase by rank. `stuck` is the report of ranks that could not
    go on, with the ranks; `ended` tells why the simulation ended in the middle, or is empty.
    `missing` are reasons why ranks do not have the test. `seconds` is simulated. `left` describes
    the operations that the test has not completed.
    """

    size: int
    reports: dict[str, dict[int, pytest.TestReport]] = field(default_factory=dict)
    stuck: DeadlockReport | None = None
    stuck_ranks: set[int] = field(default_factory=set)
    ended: str = ""
    missing: dict[int, tuple[str, Any]] = field(default_factory=dict)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    timeout: float | None = None
    left: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    schedule: str = ""  # how to repeat the order of events
    errors: dict[int, BaseException] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # of Hypothesis

    @property
    def spoiled(self) -> bool:
        """Whether the ranks must not run another test."""
        return bool(
            self.ended or self.stuck or self.missing or self.late or self.left
            or any(finding.error for finding in self.findings)
            or any(
                report.failed or hasattr(report, "wasxfail")
                for phase in self.reports.values() for report in phase.values()
            )
        )  # fmt: skip

    def error(self) -> BaseException | None:
        """The exception of the first rank that failed by itself, or None."""
        own = [pid for pid in sorted(self.errors) if pid not in self.stuck_ranks]
        if own:
            return self.errors[own[0]]
        if self.stuck is not None:
            return self.stuck.exception()
        if self.ended or self.missing or self.late:
            return PysmpiError(self.ended or "the test did not run")
        return None

    @property
    def late(self) -> bool:
        """Whether the test took more simulated time than it may."""
        return self.timeout is not None and self.seconds > self.timeout
