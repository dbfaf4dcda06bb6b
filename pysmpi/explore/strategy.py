"""The interface of strategies, and their registry.

A strategy decides the choices of a run (kernel/choices.py). It has three methods: `begin` before a
run, `pick` for each choice, `end` after the run. To add one, write a function that makes it under
`@strategy(name, line)` in a file in `strategies/` with that name, or in your own package, which is
found through the entry point group `pysmpi.strategies`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeVar

from pysmpi.errors import UsageError
from pysmpi.kernel.choices import ORDER, SEND, Alternative
from pysmpi.plugins import Registry
from pysmpi.text import whole


class Strategy(Protocol):
    """Decides the choices of one or several runs."""

    def begin(self, run: int, ranks: int) -> None:
        """Run number `run` (from 0) begins, with so many ranks."""

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """The index of an option; there are at least two. The first is the default."""
        ...

    def end(self, pids: Sequence[int]) -> str:
        """The run is over; a note on it, or nothing.

        `pids` are the ranks of the options that were taken, of the steps with several options. The
        run may have been in another process: state that `pick` has changed is lost then.
        """
        ...


@dataclass(frozen=True)
class StrategyKind:
    """A plug-in: a name, one line, and a function that makes a strategy.

    `make(argument, seed)` gets the text after the colon of `NAME:ARGUMENT`, None without a colon,
    and raises ValueError with the expected form if it is wrong. `noise` says that the clock still
    decides, with perturbed latencies and compute.
    """

    name: str
    line: str
    make: Callable[[str | None, int], Strategy]
    noise: bool = False


STRATEGIES: Registry[StrategyKind] = Registry(
    "schedule", "pysmpi.strategies", "pysmpi.explore.strategies", apart=True
)

_Make = TypeVar("_Make", bound=Callable[[str | None, int], Strategy])


def strategy(name: str, line: str, *, noise: bool = False) -> Callable[[_Make], _Make]:
    """Register a function that makes a strategy under `name`; see `StrategyKind`."""

    def register(make: _Make) -> _Make:
        STRATEGIES.add(StrategyKind(name, line, make, noise))
        return make

    return register


DEEPEST = 10_000  # events that have to be in a certain order: failures need a few
TIME = "time"  # the schedule without a strategy


def find_strategy(text: str, where: str = "--schedule") -> tuple[StrategyKind, str | None]:
    """The kind and the argument of a strategy such as `pct:3`; UsageError if there is none."""
    name, colon, argument = text.partition(":")
    return STRATEGIES.find(name, f"{where} {text}"), argument if colon else None


def make_strategy(text: str, seed: int, where: str = "--schedule") -> Strategy:
    """The strategy that a text such as `pct:3` names; UsageError if it is wrong."""
    kind, argument = find_strategy(text, where)
    try:
        return kind.make(argument, seed)
    except ValueError as error:
        raise UsageError(f"{where} {text}: {error}") from None


def no_argument(argument: str | None, name: str) -> None:
    """Refuse an argument of a strategy that has none."""
    if argument is not None:
        raise ValueError(f"expected {name} without an argument, got {argument!r}")


def depth(argument: str | None, name: str, default: int) -> int:
    """The number after the colon; `default` without a colon."""
    if argument is None:
        return default
    found = whole(argument)
    if found is None or not 1 <= found <= DEEPEST:
        raise ValueError(f"expected {name}:D with a number from 1 to {DEEPEST:,}, got {argument!r}")
    return found


class Seeded(ABC):
    """The common part of strategies with random numbers: they depend on seed and run only.

    The order of ranks and the buffering of sends are decided here: in some runs all standard sends
    are buffered, in some all wait, in others each is decided on its own.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random()
        self.ranks = 1
        self._buffering = 0

    def begin(self, run: int, ranks: int) -> None:
        """Start the random numbers of a run."""
        self.random = Random(f"{self.seed}/{run}")
        self.ranks = ranks
        self._buffering = self.random.randrange(3)
        self.start(run)

    def start(self, run: int) -> None:  # noqa: B027
        """Prepare for the steps of a run, if the strategy needs to."""

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """Decide."""
        if kind == ORDER:
            return self.random.randrange(len(options))
        if kind == SEND:
            return (0, 1, self.random.randrange(2))[self._buffering]
        return self.step(options)

    @abstractmethod
    def step(self, options: Sequence[Alternative]) -> int:
        """Choose the next event among the options."""

    def end(self, pids: Sequence[int]) -> str:
        """Note nothing."""
        return ""
