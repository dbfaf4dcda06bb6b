"""The registry of checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from pysmpi.checkers.clocks import Clocks
from pysmpi.checkers.memory import MemoryWatch
from pysmpi.checkers.pending import PendingMemory, PendingOperations
from pysmpi.diagnostics import DIAGNOSTICS
from pysmpi.errors import UsageError
from pysmpi.kernel.requests import AbstractProcess, KernelRequest
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import MpiCall
from pysmpi.plugins import Registry
from pysmpi.python.records import record
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding
from pysmpi.text import did_you_mean


class CheckContext(Protocol):
    """The state that the checkers of a run share (see `session.py`)."""

    clean: bool  # whether every rank came to its end
    deadlocked: bool  # whether the run ended by a deadlock
    starts: dict[KernelRequest, MpiCall]  # the calls that started requests which are under way
    clocks: Clocks
    pending: PendingOperations
    memory: MemoryWatch
    explained: set[MpiCall]  # whose memory another finding already concerns

    def report(self, finding: Finding) -> None:
        """Note a problem."""

    def call_on(self, process: AbstractProcess) -> MpiCall | None:
        """The call in which a process is."""

    def prepared_by(self, call: MpiCall, request: KernelRequest | None) -> MpiCall:
        """The call that made a persistent request which `call` starts; for others `call` itself."""


class Checker:
    """The base class of checkers.

    A checker is a listener (`kernel/listeners.py`): it is notified of the events for which it has a
    method. It may also have these methods. Every MPI call of the program reaches them, local calls
    included:

    - `call_made(call)`: the call begins
    - `call_returned(call, result)`: it has returned its result
    - `call_failed(call, error)`: it has raised an exception

    `finish(simulation)` is called once the run is over. Problems go to `session.report(finding)`.
    """

    session: CheckContext
    needs_clocks = False  # whether it asks `session.clocks` for the order of events
    needs_pending = False  # whether it is a watcher of `session.pending`

    def begin(self, simulation: Simulation) -> None:
        """The run begins."""

    def close(self) -> None:
        """The run is over, however it has ended."""

    def operation_begun(self, rank: Rank, pending: PendingMemory) -> None:
        """An operation owns memory from now on; only if `needs_pending`."""

    def operation_ended(self, rank: Rank, pending: PendingMemory, call: MpiCall) -> None:
        """A call has completed an operation; only if `needs_pending`."""

    def finish(self, simulation: Simulation) -> None:
        """The run is over; `session.clean` tells whether every rank came to its end."""


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
