"""The registry of checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pysmpi.checkers.base import Checker
from pysmpi.diagnostics import DIAGNOSTICS
from pysmpi.errors import UsageError
from pysmpi.plugins import Registry
from pysmpi.python.records import record
from pysmpi.reports.findings import Finding
from pysmpi.text import did_you_mean

_C = TypeVar("_C", bound=type[Checker])


@record(frozen=True)
class CheckerKind:
    """A checker: its name, one line about it, and its class."""

    name: str
    line: str
    make: type[Checker]


CHECKERS: Registry[CheckerKind] = Registry("checker", "pysmpi.checkers", "pysmpi.checkers.kinds")


def checker(name: str, line: str) -> Callable[[_C], _C]:
    """Register a class of checkers under `name`."""

    def register(make: _C) -> _C:
        CHECKERS.add(CheckerKind(name, line, make))
        return make

    return register


@record(frozen=True)
class Exemption:
    """Findings that `--check` leaves out: of one code or of all, in one package or everywhere."""

    code: str | None
    package: str | None

    def holds(self, finding: Finding) -> bool:
        """Whether a finding is left out: that of a package has its first call in it."""
        if self.code not in (None, finding.code):
            return False
        return self.package in (None, *(place.package for place in finding.places[:1]))


def names_of(check: str | Iterable[str]) -> list[str]:
    """The parts of the value of `--check`: a text with commas, or several of them."""
    texts = [check] if isinstance(check, str) else check
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def chosen(check: str | Iterable[str]) -> list[str]:
    """The names of checkers in the value of `--check`."""
    parts = names_of(check)
    names = [name for name in parts if not name.startswith("-")]
    left_out = [name[1:] for name in parts if name.startswith("-") and name[1:] in CHECKERS.names()]
    if "none" in names:
        return []
    if "all" in names:
        names = CHECKERS.names()
    for name in names:
        CHECKERS.find(name, f"--check {name}")
    exempt = exemptions(check)
    if not names and (left_out or exempt):
        raise UsageError(f"--check {','.join(parts)}: no checker; write --check all,{parts[0]}")
    return [name for name in dict.fromkeys(names) if name not in left_out]


def exemptions(check: str | Iterable[str]) -> list[Exemption]:
    """The findings that the value of `--check` leaves out."""
    result = []
    for part in names_of(check):
        what, colon, package = part[1:].partition(":")
        if not part.startswith("-") or (what in CHECKERS.names() and not colon):
            continue
        code = what.upper()
        if (what != "all" and code not in DIAGNOSTICS) or bool(colon) != bool(package):
            hint = did_you_mean(what, [*CHECKERS.names(), *DIAGNOSTICS])
            raise UsageError(
                f"--check {part}: expected -CHECKER, -CODE, -CODE:PACKAGE or -all:PACKAGE{hint}"
            )
        if what == "all" and not package:
            raise UsageError("--check -all: expected none, or -all:PACKAGE")
        result.append(Exemption(None if what == "all" else code, package or None))
    return result


def listeners(check: str | Iterable[str] = "all") -> list[Checker]:
    """New checkers for one run, by their names; UsageError for an unknown name."""
    return [CHECKERS.find(name).make() for name in chosen(check)]
