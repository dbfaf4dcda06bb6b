"""Shrinking a failure: fewer deviations from the default order, and the point of no return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from pysmpi.explore.events import Trace
from pysmpi.explore.executions import Executions, Trial
from pysmpi.explore.observer import Observer
from pysmpi.explore.schedule import Decisions, Replayed
from pysmpi.kernel.choices import ORDER, SEND, Alternative

MOST = 200  # executions to shorten one failure
TRIES = 16  # random continuations that must all fail


@dataclass(frozen=True)
class Shrunk:
    """A failing schedule and its execution."""

    decisions: Decisions
    execution: Trial


def shorten(executor: Executions, failure: Shrunk, cause: str) -> Shrunk:
    """A failing schedule of the same cause from which no single deviation can be left out."""
    best = _in_default_order(executor, failure, cause)
    left = MOST
    tried: set[str] = set()
    progress = True
    while progress:
        progress = False
        for simpler in _simpler(best.decisions):
            text = str(simpler)
            if text in tried:
                continue
            tried.add(text)
            left -= 1
            if left < 0:
                return best
            executor.submit(Observer(strategy=Replayed(simpler)), None)
            execution = executor.next()[1]
            if execution.cause == cause:
                found = Decisions.parse(execution.schedule)
                if _size(found) < _size(best.decisions):
                    best = Shrunk(found, execution)
                    progress = True
                    break
    return best


def _in_default_order(executor: Executions, failure: Shrunk, cause: str) -> Shrunk:
    """The same events in the default order of ranks, in which they may have other numbers."""
    decisions = failure.decisions
    if not decisions.order or decisions.sends:
        return failure
    executor.submit(Observer(strategy=Replayed(decisions)), None)
    trace = executor.next()[1].trace
    if not isinstance(trace, Trace):
        return failure
    names = [event.name for event in trace.events]
    executor.submit(Observer(names, buffered=decisions.sends is not None), None)
    execution: Trial = executor.next()[1]
    if execution.cause != cause:
        return failure
    found = Decisions.parse(execution.schedule)
    return Shrunk(found, execution) if found.deviations <= decisions.deviations else failure


def _size(decisions: Decisions) -> tuple[int, int]:
    """Fewer deviations are simpler, then smaller ones."""
    return decisions.deviations, sum(decisions.steps.values())


def _simpler(decisions: Decisions) -> Sequence[Decisions]:
    """Schedules with fewer deviations, the fewest first."""
    steps = sorted(decisions.steps)
    found = [Decisions()]
    if decisions.order:
        found.append(replace(decisions, order=0, checksum=""))
    if decisions.sends is None or decisions.sends:
        found.append(replace(decisions, sends=frozenset(), checksum=""))
        found.append(replace(decisions, sends=None, checksum=""))
    size = len(steps) // 2
    while size:
        for begin in range(0, len(steps), size):
            kept = [step for i, step in enumerate(steps) if not begin <= i < begin + size]
            found.append(_with(decisions, {step: decisions.steps[step] for step in kept}))
        size //= 2
    if len(steps) == 1:
        found.append(_with(decisions, {}))
    for step in steps:
        if decisions.steps[step] > 1:
            found.append(_with(decisions, decisions.steps | {step: 1}))
    for number in sorted(decisions.sends or ()):
        found.append(replace(decisions, sends=(decisions.sends or frozenset()) - {number}))
    return found


def _with(decisions: Decisions, steps: dict[int, int]) -> Decisions:
    return Decisions(decisions.order, decisions.sends, steps)


class _Continued:
    """Decides sends and the order of ranks by a schedule, and all other choices at random."""

    def __init__(self, decisions: Decisions, seed: int) -> None:
        self._replayed = Replayed(decisions)
        self._random = Random(seed)

    @property
    def rule(self) -> tuple[int, frozenset[int] | None]:
        """The order and the sends of the schedule."""
        return self._replayed.rule

    def begin(self, run: int, ranks: int) -> None:
        """Prepare nothing."""

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """Decide."""
        if kind in (SEND, ORDER):
            return self._replayed.pick(kind, options)
        return self._random.randrange(len(options))

    def end(self, pids: Sequence[int]) -> str:
        """Note nothing."""
        return ""


def inevitable(executor: Executions, decisions: Decisions, trace: Trace) -> int | None:
    """The number of events after which every tried continuation of a failing execution fails."""
    names = [event.name for event in trace.events]
    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        if _always_fails(executor, decisions, names[:middle]):
            high = middle
        else:
            low = middle + 1
    return low


def _always_fails(executor: Executions, decisions: Decisions, prefix: list[str]) -> bool:
    """Whether every tried continuation of some events fails."""
    same = True
    for seed in range(TRIES):
        while executor.busy:
            same = executor.next()[1].failed and same
        if not same:
            break
        executor.submit(Observer(prefix, strategy=_Continued(decisions, seed)), None)
    while not executor.idle:
        same = executor.next()[1].failed and same
    return same


def passes_after(executor: Executions, decisions: Decisions, prefix: list[str]) -> str:
    """The schedule of a tried continuation of some events that passes; nothing if all fail."""
    for seed in range(TRIES):
        executor.submit(Observer(prefix, strategy=_Continued(decisions, seed)), None)
        execution = executor.next()[1]
        if not execution.failed:
            return str(execution.schedule)
    return ""
