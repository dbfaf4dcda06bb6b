"""Checkers: they listen to a run and report a program's violations of the rules of MPI.

Each checker is one file in `kinds/`, or in another package with an entry point in the group
`pysmpi.checkers`. It holds a class under `@checker(name, line)` and the diagnostics that it
reports. `CheckSession` connects checkers with one run:

    session = CheckSession(listeners(["all"]))
    session.start(simulation)  # before the ranks begin
    ...                        # the run
    session.finish()           # -> the findings

`checking(job, names)` does this for a `Job` and adds the findings to its result.
"""

from __future__ import annotations

from pysmpi.checkers.registry import CHECKERS, Checker, checker, chosen, listeners
from pysmpi.checkers.session import CheckSession, checking

__all__ = ["CHECKERS", "Checker", "CheckSession", "checker", "checking", "chosen", "listeners"]
