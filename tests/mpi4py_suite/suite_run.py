"""Runs mpi4py's test suite in one simulation: `python suite_run.py RANKS RECORDS MAIN [ARG...]`.

MAIN is the suite's own `main.py`, which every rank runs unmodified, with its own arguments. The
events of each test in each rank are written to RECORDS, a line of JSON each. PYSMPI_SUITE_OPTIONS
holds options of `pysmpi.run`, such as "selector=ompi seed=3".
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import unittest
from typing import Any

import pysmpi
from pysmpi.mpi.base.ranks import current

_clocks = [time.process_time]  # in a list, where a switch of ranks does not exchange it for its own


def watch(stream: Any) -> None:
    """Let all test results record their events."""

    def note(test: Any, outcome: str, text: str = "") -> None:
        record = {
            "rank": current().index,
            "test": test.id(),
            "outcome": outcome,
            "text": text,
            "clock": round(_clocks[0](), 3),
        }
        stream.write(json.dumps(record) + "\n")
        stream.flush()

    def formatted(error: Any) -> str:
        return "".join(traceback.format_exception(*error)[-6:])

    kind: Any = unittest.TestResult

    def hear(name: str, describe: Any) -> None:
        real = getattr(kind, name)

        def method(self: Any, test: Any, *args: Any) -> Any:
            describe(test, *args)
            return real(self, test, *args)

        setattr(kind, name, method)

    def subtest(test: Any, part: Any, error: Any) -> None:
        if error is not None:
            note(test, "failed", formatted(error))

    hear("startTest", lambda test: note(test, "started"))
    hear("addSuccess", lambda test: note(test, "passed"))
    hear("addFailure", lambda test, error: note(test, "failed", formatted(error)))
    hear("addError", lambda test, error: note(test, "failed", formatted(error)))
    hear("addSkip", lambda test, reason: note(test, "skipped", reason))
    hear("addExpectedFailure", lambda test, error: note(test, "passed"))
    hear("addUnexpectedSuccess", lambda test: note(test, "failed", "unexpected success"))
    hear("addSubTest", subtest)


def options() -> dict[str, Any]:
    """The options of the simulation: fixed ones, and those of the environment."""
    chosen: dict[str, Any] = {"compute": "none", "on_deadlock": "raise"}
    for word in os.environ.get("PYSMPI_SUITE_OPTIONS", "").split():
        name, _, value = word.partition("=")
        chosen[name] = int(value) if value.isdigit() else value
    return chosen


def main() -> None:
    """Run the suite; leaves with the status of the run."""
    nprocs, records, program, *arguments = sys.argv[1:]
    with open(records, "w", encoding="utf-8") as stream:
        watch(stream)
        result = pysmpi.run(program, int(nprocs), args=arguments, check=False, **options())
    if result.error:
        print(result.error, file=sys.stderr)
    sys.exit(result.exit_status)


if __name__ == "__main__":
    main()
