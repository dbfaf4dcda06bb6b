"""Comparing two runs of a program: the simulated time, and the MPI calls of each rank in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pysmpi import text
from pysmpi.trace.events import RankPlace, TracedCall
from pysmpi.trace.recorder import Recorder

if TYPE_CHECKING:
    from pysmpi.reports.result import Result

# The number of polls depends on time, which may differ a little.
_POLLS = frozenset(
    ["Test", "Testall", "Testany", "Testsome", "test", "testall", "testany", "testsome", "Iprobe",
     "iprobe", "Improbe", "improbe", "Get_status", "get_status_all"]
)  # fmt: skip


class Sequences:
    """A format of timelines that records the sequence of calls of each rank.

    Calls inside a pass that all ranks may skip together count as that pass.
    """

    def __init__(self) -> None:
        self.kinds: list[str] = []  # of calls, by their number
        self.ranks: dict[int, list[int]] = {}
        self._numbers: dict[str, int] = {}
        self._inside: dict[int, int] = {}

    def begin(self, places: Sequence[RankPlace]) -> None:
        for place in places:
            self.ranks.setdefault(place.rank, [])

    def call(self, call: TracedCall) -> None:
        if call.name in _POLLS or self._inside.get(call.rank):
            return
        peers = ", ".join(f"{name}={value}" for name, value in call.peers)
        self._note(call.rank, f"{call.name}({peers}) at {call.site}")

    def end(self, ends: Sequence[float]) -> None:
        """Nothing is left to write."""

    def close(self) -> None:
        """There is no file."""

    def passing(self, rank: int, place: str, change: int) -> None:
        """A rank begins a pass through a place (+1), ends it (-1), or skips one (0)."""
        depth = self._inside.get(rank, 0)
        if change >= 0 and depth == 0:
            self._note(rank, f"a pass of {place}")
        self._inside[rank] = depth + change

    def _note(self, rank: int, kind: str) -> None:
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
        self.ranks.setdefault(rank, []).append(number)

    def named(self, rank: int) -> Iterator[str]:
        """The calls of a rank."""
        return (self.kinds[number] for number in self.ranks.get(rank, ()))


class SequenceRecorder(Recorder):
    """Keeps the calls of a run in `sequences`."""

    def __init__(self) -> None:
        self.sequences = Sequences()
        super().__init__(self.sequences)

    def attach(self, run: Any) -> None:
        super().attach(run)
        run.shadowing.shadow.on_pass = self.sequences.passing


@dataclass
class Difference:
    """The first call in which two runs of a rank differ; None stands for the end of a run."""

    rank: int
    position: int
    full: str | None
    shadow: str | None

    def __str__(self) -> str:
        made = [call or "nothing more" for call in (self.full, self.shadow)]
        return (
            f"call {self.position + 1} of rank {self.rank} is {made[0]} in full, "
            f"and {made[1]} with shadow options"
        )


@dataclass
class ShadowComparison:
    """A run in full against one with shadow options."""

    full: Result
    shadow: Result
    tolerance: float
    calls: int
    differing: int  # ranks whose calls differ
    first: Difference | None
    again: ShadowComparison | None = None  # difference of two full runs

    @property
    def error(self) -> float:
        """The relative error of the predicted time."""
        if self.full.seconds == 0.0:
            return 0.0 if self.shadow.seconds == 0.0 else float("inf")
        return self.shadow.seconds / self.full.seconds - 1.0

    @property
    def passed(self) -> bool:
        return (
            abs(self.error) <= self.tolerance and self.first is None and self.shadow.error is None
        )

    def lines(self) -> list[str]:
        """The result, for people."""
        full, shadow = self.full, self.shadow
        found = [
            f"check: simulated {text.seconds(full.seconds)} in full, "
            f"{text.seconds(shadow.seconds)} with shadow options: {self.error:+.2%}, "
            f"tolerance {self.tolerance:.3g}; wall time {full.wall_seconds:.3g} s and "
            f"{shadow.wall_seconds:.3g} s"
        ]
        if self.first is None:
            found.append(f"check: every rank made the same MPI calls, {self.calls:,} in all")
        else:
            found.append(
                f"check: {text.count(self.differing, 'rank')} made other MPI calls; {self.first}"
            )
        if full.exit_status != shadow.exit_status:
            found.append(
                f"check: exit status {full.exit_status} in full, "
                f"{shadow.exit_status} with shadow options, whose results are wrong"
            )
        idle = shadow.shadow is None and shadow.folding is None and shadow.data == full.data
        if idle and self.first is None:
            found.append("check: no shadow option had an effect")
        found.append("check: passed" if self.passed else "check: FAILED")
        if self.again is not None:
            found += self._own_spread(self.again)
        return found

    def _own_spread(self, again: ShadowComparison) -> list[str]:
        """The difference of two full runs, reported after a failed check."""
        found = []
        if abs(again.error) > self.tolerance:
            found.append(
                f"check: but two full runs differ by {again.error:+.2%} themselves: "
                "measure on a less busy computer, or raise the tolerance"
            )
        if again.first is not None:
            found.append(
                "check: but two runs in full make different MPI calls themselves: the program's "
                "messages depend on time; --compute none or SECONDS makes runs repeat"
            )
        return found

    def report(self) -> dict[str, object]:
        """The figures, as plain data."""
        return {
            "passed": self.passed,
            "full_seconds": self.full.seconds,
            "shadow_seconds": self.shadow.seconds,
            "relative_error": self.error,
            "tolerance": self.tolerance,
            "calls": self.calls,
            "ranks_that_differ": self.differing,
            "first_difference": None if self.first is None else str(self.first),
            "relative_error_in_full": None if self.again is None else self.again.error,
        }


def compare(
    full: Result, shadow: Result, one: Sequences, other: Sequences, tolerance: float
) -> ShadowComparison:
    """Compare a run in full (`one` are its calls) with one with shadow options (`other`)."""
    differing = 0
    first: Difference | None = None
    for rank in sorted({*one.ranks, *other.ranks}):
        difference = _difference(rank, list(one.named(rank)), list(other.named(rank)))
        if difference is not None:
            differing += 1
            first = first or difference
    calls = sum(map(len, one.ranks.values()))
    return ShadowComparison(full, shadow, tolerance, calls, differing, first)


def _difference(rank: int, one: list[str], other: list[str]) -> Difference | None:
    for position, (left, right) in enumerate(zip(one, other)):
        if left != right:
            return Difference(rank, position, left, right)
    shorter = min(len(one), len(other))
    if len(one) == len(other):
        return None
    return Difference(
        rank,
        shorter,
        one[shorter] if len(one) > shorter else None,
        other[shorter] if len(other) > shorter else None,
    )
