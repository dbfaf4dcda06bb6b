"""Executions of a program: what they are asked for, and their outcomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pysmpi.explore.files import FileWatch
from pysmpi.job.job import Job
from pysmpi.kernel.choices import Alternative, Control
from pysmpi.ranks.simulation import Simulation

T = TypeVar("T")
JobMaker = Callable[[], Job]

# Makes a job with a number of ranks and arguments of the program.
JobFactory = Callable[[int, Sequence[str]], Job]


class Decider(Protocol):
    """Decides the choices of one execution."""

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """The index of an option."""
        ...

    def attach(self, control: Control) -> None:
        """Decide and watch a run."""

    def enter(self, simulation: Simulation, output: int, files: FileWatch) -> None:
        """The execution begins in this process; `output` is the descriptor of its output."""

    @property
    def given_up(self) -> bool:
        """Whether only the record of the execution counts, because others do the rest."""
        ...

    def summary(self) -> object:
        """The record of the decider, for the parent."""

    def schedule(self) -> object:
        """The schedule that repeats the execution."""


@dataclass
class Trial:
    """The outcome of one execution; `trace` is the record of its decider."""

    status: int = 0
    error: str | None = None
    output: bytes = b""
    returns: str = ""
    schedule: str = ""
    seconds: float = 0.0  # of wall time
    killed: bool = False
    trace: Any = None
    modules: Sequence[str] = ()  # that the execution has loaded for all ranks
    shares_files: bool = False  # whether ranks used files that others had changed
    outside: bool = False  # whether it has changed anything outside of its process

    @property
    def failed(self) -> bool:
        """Whether the program failed."""
        return self.status != 0

    @property
    def cause(self) -> str:
        """The cause of a failure, the same for failures of one kind."""
        if not self.failed:
            return ""
        if self.killed:
            return "no end"
        if self.error:
            lines = self.error.strip().splitlines()
            head = lines[0].partition(" at t=")[0].partition(":")[0]
            places = [i for i, line in enumerate(lines) if line.lstrip().startswith('File "')]
            if not places:
                # Of a deadlock, the lines at which ranks wait.
                waits = {
                    found[1]
                    for line in lines[1:]
                    if (found := re.match(r"  ranks? .*\s(\S+:\d+)\b", line))
                }
                return f"{head} at {', '.join(sorted(waits))}" if waits else head
            kinds = [
                line.partition(":")[0] for line in lines[places[-1] :] if not line.startswith(" ")
            ]
            return f"{head}: {(kinds or [''])[0]} in {lines[places[-1]].strip()}"
        return f"exit status {self.status}"

    @property
    def result(self) -> tuple[Any, ...]:
        """The result of the program: its lines of output in any order, and its return values."""
        return tuple(sorted(self.output.splitlines())), self.returns


class ExecutionsLost(Exception):
    """Executions have no outcome, for a reason outside of the program."""


class Executions(Protocol):
    """Executes a job under many deciders, some at the same time."""

    def serve(self, work: Callable[[Executions], T]) -> T:
        """Return `work(self)`, which calls the other methods."""
        ...

    def submit(self, decider: Decider, tag: object) -> None:
        """Begin an execution."""

    @property
    def busy(self) -> bool:
        """Whether the largest number of executions runs."""
        ...

    @property
    def idle(self) -> bool:
        """Whether no execution runs."""
        ...

    def next(self) -> tuple[Any, Trial]:
        """Wait for the end of an execution; return its tag and its outcome."""
        ...

    def stop(self) -> list[object]:
        """Give up all executions; return their tags."""
        ...


class LimitedExecutions:
    """At most `jobs` executions at a time."""

    jobs: int
    _running: Sized

    @property
    def busy(self) -> bool:
        """Whether the largest number of executions runs."""
        return len(self._running) >= self.jobs

    @property
    def idle(self) -> bool:
        """Whether no execution runs."""
        return len(self._running) == 0
