"""One report of a test, from those of its ranks."""

from __future__ import annotations

from typing import Any

import pytest
from _pytest._code.code import TerminalRepr

from pysmpi import text
from pysmpi.pytest_plugin.leftovers import report as leftovers_text
from pysmpi.pytest_plugin.outcomes import ItemOutcome
from pysmpi.reports.findings import report as findings_text

PHASES = ("setup", "call", "teardown")
_STUCK = ("DeadlockError", "PeerFailed")


class Crash:
    """The line of the summary."""

    def __init__(self, path: str, lineno: int, message: str) -> None:
        self.path, self.lineno, self.message = path, lineno, message


class Failure(TerminalRepr):
    """Shows the failures of ranks: one in full for each line of the program that failed."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, object]] = []  # a heading and its content
        self.reprcrash: Crash | None = None

    def toterminal(self, tw: Any) -> None:
        """Write it to a terminal."""
        for heading, body in self.parts:
            if heading:
                tw.sep("-", heading)
            if hasattr(body, "toterminal"):
                body.toterminal(tw)
            else:
                tw.line(str(body))

    def __str__(self) -> str:
        lines = []
        for heading, body in self.parts:
            lines += [f"{f' {heading} ':-^79}"] if heading else []
            lines.append(str(body))
        return "\n".join(lines)


def merged(
    item: pytest.Item, when: str, outcome: ItemOutcome, seconds: float
) -> pytest.TestReport | None:
    """The report of a phase; None if there was none."""
    reports = dict(sorted(outcome.reports.get(when, {}).items()))
    broken = when == "setup" and outcome.missing and not reports
    ended = bool(outcome.ended) and when == _last_phase(outcome)
    if not reports and not broken and not ended:
        return None
    keywords: dict[str, object] = {name: 1 for name in item.keywords}
    report = pytest.TestReport(
        item.nodeid, item.location, keywords, "passed", None, when,  # type: ignore[arg-type]
        duration=max((one.duration for one in reports.values()), default=0.0),
        start=min((one.start for one in reports.values()), default=0.0),
        stop=max((one.stop for one in reports.values()), default=0.0),
    )  # fmt: skip
    if when == "call":
        report.duration = seconds
    if broken:
        _missing(report, outcome)
    else:
        _join(report, reports, outcome, ended)
    if when == "call" and outcome.late and report.outcome == "passed":
        report.outcome = "failed"
        report.longrepr = (
            f"Timeout: the test took {text.seconds(outcome.seconds)} of simulated time, expected "
            f"at most {text.seconds(outcome.timeout or 0.0)}"
        )
    if when == "call" and outcome.left and report.outcome == "passed":
        said = leftovers_text(outcome.left)
        if hasattr(report, "wasxfail"):
            report.sections.append(("Left by the test", said))
        else:
            report.outcome = "failed"
            report.longrepr = _whole(said)
    if when == "call" and outcome.findings:
        said = findings_text(outcome.findings)
        if report.outcome == "passed" and any(finding.error for finding in outcome.findings):
            report.outcome = "failed"
            report.longrepr = _whole(said)
        else:
            report.sections.append(("Checked by pysmpi", said))
    if when == "call" and outcome.notes:
        report.sections.append(("Hypothesis", "\n".join(outcome.notes)))
    if report.failed and outcome.schedule:
        report.sections.append(("Schedule", outcome.schedule))
    for pid, one in reports.items():
        for title, content in one.sections:
            report.sections.append((f"{title} (rank {pid})", content))
    for one in reports.values():
        report.user_properties += [
            pair for pair in one.user_properties if pair not in report.user_properties
        ]
    return report


def _whole(said: str) -> Failure:
    """A failure of all ranks together."""
    failure = Failure()
    failure.parts.append(("", said))
    failure.reprcrash = Crash("", 0, said.partition("\n")[0])
    return failure


def _last_phase(outcome: ItemOutcome) -> str:
    """The phase in which the simulation ended."""
    for when in reversed(PHASES):
        if outcome.reports.get(when):
            return (
                when
                if len(outcome.reports[when]) < outcome.size or when == "teardown"
                else (PHASES[PHASES.index(when) + 1])
            )
    return "setup"


def _missing(report: pytest.TestReport, outcome: ItemOutcome) -> None:
    """Ranks could not import the test, or have skipped its module."""
    failed = {pid: why for pid, (kind, why) in outcome.missing.items() if kind == "failed"}
    if not failed:
        report.outcome = "skipped"
        report.longrepr = next(iter(outcome.missing.values()))[1]
        return
    report.outcome = "failed"
    failure = Failure()
    groups: dict[str, list[int]] = {}
    for pid, why in failed.items():
        groups.setdefault(str(why), []).append(pid)
    for pids in groups.values():
        failure.parts.append((f"{text.ranks(pids)}: not collected", failed[pids[0]]))
    report.longrepr = failure


def _join(
    report: pytest.TestReport,
    found: dict[int, pytest.TestReport],
    outcome: ItemOutcome,
    ended: bool,
) -> None:
    failed = {pid: one for pid, one in found.items() if one.failed}
    if failed or ended:
        report.outcome = "failed"
        report.longrepr = _failure(failed, outcome, ended)
        return
    expected = [one for one in found.values() if hasattr(one, "wasxfail")]
    skipped = [one for one in found.values() if one.skipped]
    chosen = next((one for one in expected if one.skipped), None)  # an expected failure
    if chosen is None and expected:
        chosen = expected[0]
    if chosen is None and len(skipped) == len(found):
        chosen = skipped[0]
    if chosen is not None:
        report.outcome = chosen.outcome
        report.longrepr = chosen.longrepr
        if hasattr(chosen, "wasxfail"):
            report.wasxfail = chosen.wasxfail


def _failure(failed: dict[int, pytest.TestReport], outcome: ItemOutcome, ended: bool) -> Any:
    failure = Failure()
    own = {pid: one for pid, one in failed.items() if getattr(one, "kind", "") not in _STUCK}
    groups: dict[tuple[object, ...], list[int]] = {}
    for pid, one in own.items():
        crash = getattr(one.longrepr, "reprcrash", None)
        place = (str(one.longrepr),) if crash is None else (crash.path, crash.lineno)
        groups.setdefault((*place, getattr(one, "kind", "")), []).append(pid)
    for pids in groups.values():
        first = own[pids[0]]
        failure.parts.append((text.ranks(pids), first.longrepr))
        message = _message(first)
        others = [(pid, _message(own[pid])) for pid in pids[1:] if _message(own[pid]) != message]
        if others:
            lines = "\n".join(f"rank {pid}: {said}" for pid, said in others)
            failure.parts.append(("", lines))
    if outcome.stuck is not None and len(own) < len(failed):
        if own:
            names = text.ranks(own)
            verb = "has" if len(own) == 1 else "have"
            stuck = [pid for pid in failed if pid not in own]
            waits = [f"{names} {verb} failed; {text.ranks(stuck)} would hang under mpiexec:"]
            waits += _waits(outcome)
            failure.parts.append(("", "\n".join(waits)))
        else:
            failure.parts.append(("", str(outcome.stuck)))
    if ended:
        failure.parts.append(("", outcome.ended))
    failure.reprcrash = _crash(own, outcome, ended)
    return failure


def _waits(outcome: ItemOutcome) -> list[str]:
    lines = str(outcome.stuck).splitlines()
    return [line for line in lines if line.startswith(("  rank", "  why"))]


def _message(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(report.longrepr if crash is None else crash.message).partition("\n")[0]


def _crash(own: dict[int, pytest.TestReport], outcome: ItemOutcome, ended: bool) -> Crash | None:
    if own:
        pid = min(own)
        first = own[pid]
        crash = getattr(first.longrepr, "reprcrash", None)
        path, line = ("", 0) if crash is None else (crash.path, crash.lineno)
        return Crash(path, line, f"{text.ranks(own)}: {_message(first)}")
    what = outcome.ended if ended or outcome.stuck is None else str(outcome.stuck)
    return Crash("", 0, what.partition("\n")[0])
