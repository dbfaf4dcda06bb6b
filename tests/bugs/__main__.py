"""`python -m tests.bugs [NAME...]`: run the programs, and print a table by class.

With names only programs whose class or name contains one of them run, and those with a wrong
verdict are printed with their report.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.bugs.collection import Verdict, judge, programs


def table(verdicts: list[Verdict]) -> str:
    """The figures by class, and of all."""
    by_kind: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_kind[verdict.bug.kind].append(verdict)
        by_kind["all"].append(verdict)
    last = by_kind.pop("all")
    rows = [
        "class                 wrong  found  class and lines  right  false alarms  median CPU ms"
    ]
    for kind, some in [*by_kind.items(), ("all", last)]:
        wrong = [v for v in some if v.bug.wrong]
        right = [v for v in some if not v.bug.wrong]
        rows.append(
            f"{kind:20}  {len(wrong):5}  {sum(v.found for v in wrong):5}  "
            f"{sum(v.right and v.named for v in wrong):15}  {len(right):5}  "
            f"{sum(v.found for v in right):12}  "
            f"{1000 * statistics.median(v.seconds for v in some):13.1f}"
        )
    wrong = [v for v in last if v.bug.wrong]
    found = sum(v.found for v in wrong)
    alarms = sum(v.found for v in last if not v.bug.wrong)
    rows.append(
        f"recall {found / len(wrong):.3f}   precision {found / max(1, found + alarms):.3f}   "
        f"class and lines {sum(v.right and v.named for v in wrong) / len(wrong):.3f}   "
        f"{len(last)} programs"
    )
    return "\n".join(rows)


def main(names: list[str]) -> int:
    """Run the programs and print the table; 0 if all verdicts are right."""
    verdicts = []
    with tempfile.TemporaryDirectory() as directory:
        for bug in programs():
            if names and not any(name in f"{bug.kind}/{bug.name}" for name in names):
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                verdict = judge(bug, Path(directory))
            verdicts.append(verdict)
            wrong = not (verdict.right and verdict.named) if bug.wrong else verdict.found
            if wrong:
                lines = f" (lines {sorted(bug.lines)})" if bug.lines else ""
                expected = sorted(bug.codes) or "nothing"
                print(f"--- {bug.kind}/{bug.name}: expected {expected}{lines}")
                print(verdict.report if names else verdict.report[:160])
    print(table(verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
