"""Checkers: they listen to a run and report a program's violations of the rules of MPI.

Each checker is one file in `kinds/`, or in another package with an entry point in the group
`pysmpi.checkers`. It holds a class under `@checker(name, line)`; the diagnostics that those of
pysmpi report are in `problems/`. `CheckSession(listeners(["all"]))` is the instrument of a run
(`ranks/instruments.py`) that has checkers and adds their findings to the result.
"""

from __future__ import annotations

from pysmpi.checkers.base import Checker
from pysmpi.checkers.registry import CHECKERS, checker, chosen, exemptions, listeners, names_of
from pysmpi.checkers.session import CheckSession

__all__ = [
    "CHECKERS",
    "Checker",
    "CheckSession",
    "checker",
    "chosen",
    "exemptions",
    "listeners",
    "names_of",
]
