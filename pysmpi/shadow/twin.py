"""Twins: the same program in full, on the same or a smaller number of ranks, before a run.

A run with folded, skipped or missing data goes another way than a full one if its control flow
depends on the data. The twin keeps the calls of its ranks. The run compares its own calls with them
while it goes on, and knows at the first difference that it is no longer right.

Results of reductions and broadcasts of at most 1 KiB that steer the program (`decisions.py`) are
taken from the twin: a solver then makes as many steps as in full. Times that a program measures
steer nothing, and stay its own.

Ranks of a smaller twin have other neighbours and other sizes. Only their collectives over all ranks
are compared, by name and line, and sums of whole numbers, which may count ranks, are not taken.
"""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

import numpy as np

from pysmpi.mpi import calls
from pysmpi.mpi.base.procedures import CallKind, Procedure
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.python.records import record
from pysmpi.ranks.instruments import Instrument
from pysmpi.shadow.decisions import DataDecision
from pysmpi.text import count

MOST = 1024  # bytes of a value that is kept

# Calls whose number depends on time.
_POLLS = frozenset(
    ["Test", "Testall", "Testany", "Testsome", "test", "testall", "testany", "testsome", "Iprobe",
     "iprobe", "Improbe", "improbe", "Get_status", "get_status_all"]
)  # fmt: skip
# The position of the buffer that a call fills; None: it returns an object.
_RESULT: dict[str, int | None] = {
    "allreduce": None, "reduce": None, "scan": None, "exscan": None,
    "Allreduce": 2, "Reduce": 2, "Scan": 2, "Exscan": 2, "Bcast": 1,
}  # fmt: skip
_PLAIN = (bool, int, float, complex, np.generic)


@record
class Divergence:
    """The first call in which a run differs from its twin; None stands for the end."""

    rank: int
    position: int
    expected: str | None
    made: str | None

    def __str__(self) -> str:
        other = "nothing more" if self.expected is None else self.expected
        mine = "nothing more" if self.made is None else self.made
        return f"call {self.position + 1} of rank {self.rank} is {mine}, and {other} in full"


class _Watch(Instrument):
    """Follows the calls of a run: `noted` gets each of them before it begins.

    `replaced` gets its result, and returns that for the program.
    """

    def __init__(self, nprocs: int, whole: bool) -> None:
        self.nprocs = nprocs
        self.whole = whole  # whether all calls count, or only collectives of all ranks
        self._restore: Callable[[], None] | None = None

    def attach(self, run: Any) -> None:
        self.universe = run.simulation.universe

    def ranks_ready(self, simulation: Any) -> None:
        """Begin: from now on nothing else takes the place of functions."""
        self._restore = calls.replace_functions(self._watched)

    def run_ended(self, result: object) -> None:
        """The program has ended."""
        self._end()

    def close(self, error: BaseException | None) -> None:
        self._end()

    def _end(self) -> None:
        if self._restore is not None:
            self._restore()
            self._restore = None

    def _watched(self, procedure: Procedure, function: Any) -> object:
        if procedure.kind is CallKind.LOCAL or procedure.name in _POLLS:
            return function
        collective = procedure.kind is CallKind.COLLECTIVE
        if not (self.whole or collective):
            return function
        name, universe = procedure.name, self.universe
        result = _RESULT.get(name, -1)

        def watched(*values: object, **named: object) -> object:
            rank = current()
            call = rank.call
            if (
                rank.universe is not universe
                or rank.engine.stopped
                or call is None
                or call.procedure is not procedure
                or rank.pid >= self.nprocs
            ):
                return function(*values, **named)
            all_ranks = collective and _ranks_of(values[0]) == self.nprocs
            if not (self.whole or all_ranks):
                return function(*values, **named)
            key = f"{name} at {call.site}"
            if self.whole:
                key += _details(procedure, values)
            position = self.noted(rank, key)
            out = function(*values, **named)
            if result == -1 or not all_ranks or position < 0 or rank.engine.stopped:
                return out
            return self.replaced(rank, position, call.site, result, values, out)

        return watched

    @abstractmethod
    def noted(self, rank: Rank, key: str) -> int:
        """A rank makes a call; returns its position among those of the rank."""

    def replaced(
        self,
        rank: Rank,
        position: int,
        site: object,
        buffer: int | None,
        values: tuple[object, ...],
        out: object,
    ) -> object:
        """The result of a call in place of `out`."""
        return out


class Twin(_Watch):
    """Records the calls of a full run, and the small results of its reductions.

    After `limit` seconds of wall time the twin ends; it then is a prefix.
    """

    def __init__(self, nprocs: int, whole: bool, limit: float | None = None) -> None:
        super().__init__(nprocs, whole)
        self.limit = limit
        self.complete = True
        self.sequences: list[list[str]] = [[] for _ in range(nprocs)]
        self.values: dict[tuple[int, int], object] = {}  # by rank and position
        self._keys: dict[str, str] = {}  # one text for equal calls

    def ranks_ready(self, simulation: Any) -> None:
        super().ranks_ready(simulation)
        self._deadline = None if self.limit is None else monotonic() + self.limit

    def noted(self, rank: Rank, key: str) -> int:
        sequence = self.sequences[rank.pid]
        if self._deadline is not None and monotonic() > self._deadline:
            self.complete = False
            rank.abort(0)
        sequence.append(self._keys.setdefault(key, key))
        return len(sequence) - 1

    def replaced(
        self,
        rank: Rank,
        position: int,
        site: object,
        buffer: int | None,
        values: tuple[object, ...],
        out: object,
    ) -> object:
        value = _plain(out) if buffer is None else _contents(_argument(values, buffer))
        if value is not None:
            counts = not self.whole and _may_count(values, buffer, out)
            if not counts:
                self.values[rank.pid, position] = value
        return out


class TwinGuide(_Watch):
    """Compares a run with its twin, and gives it the twin's values that steer.

    `choice` is what to do at the first difference: `report`, `stop` or `full`.
    """

    def __init__(
        self, nprocs: int, twin: Twin, decisions: Sequence[DataDecision], choice: str = "report"
    ) -> None:
        super().__init__(nprocs, twin.whole)
        self.twin = twin
        self.choice = choice
        self.decisions = decisions
        self.steering = {
            (os.path.abspath(source.file), line)
            for decision in decisions
            for source in decision.sources
            for line in range(source.line, source.last + 1)
        }
        self.positions = [0] * nprocs
        self.divergence: Divergence | None = None
        self.sites: dict[str, int] = {}  # of the calls that got a value of the twin
        self.lines: set[tuple[str, int]] = set()  # of these calls
        self._last = -1  # last position that all ranks have in common with the twin; -1: all

    def noted(self, rank: Rank, key: str) -> int:
        if self.divergence is not None:
            return -1
        pid = rank.pid
        position = self.positions[pid]
        self.positions[pid] = position + 1
        theirs = self.twin.sequences[pid % self.twin.nprocs]
        if position < len(theirs):
            if theirs[position] == key:
                return position
            self._differs(rank, position, theirs[position], key)
        elif self.twin.complete:
            self._differs(rank, position, None, key)
        return -1

    def replaced(
        self,
        rank: Rank,
        position: int,
        site: object,
        buffer: int | None,
        values: tuple[object, ...],
        out: object,
    ) -> object:
        place = (os.path.abspath(getattr(site, "file", "")), getattr(site, "line", 0))
        if self.divergence is not None or place not in self.steering:
            return out
        value = self.twin.values.get((rank.pid % self.twin.nprocs, position))
        if value is None:
            return out
        if buffer is not None:
            if not _fill(_argument(values, buffer), value):
                return out
        elif out is not None:  # not of other ranks than the root
            out = copy.deepcopy(value)
        self.sites[str(site)] = self.sites.get(str(site), 0) + 1
        self.lines.add(place)
        return out

    def undecided(self) -> list[DataDecision]:
        """The decisions by values that do not come from the twin."""
        if self.whole and self.twin.complete:
            return []
        return [
            decision
            for decision in self.decisions
            if not all(
                any((file, line) in self.lines for line in range(source.line, source.last + 1))
                for source in decision.sources
                for file in [os.path.abspath(source.file)]
            )
        ]

    def _differs(self, rank: Rank, position: int, expected: str | None, made: str) -> None:
        self.divergence = Divergence(rank.pid, position, expected, made)
        if self.choice != "report":
            rank.abort(1, "made other calls than the twin")

    def run_ended(self, result: Any) -> None:
        super().run_ended(result)
        if self.divergence is None and self.twin.complete and not result.exit_status:
            for pid, position in enumerate(self.positions):
                theirs = self.twin.sequences[pid % self.twin.nprocs]
                if position < len(theirs):
                    self.divergence = Divergence(pid, position, theirs[position], None)
                    break

    def _advice(self) -> str:
        if self.choice != "report":
            return ""
        more = "" if self.whole else "; --twin all takes the results that decide from all ranks"
        return f"{more}; --on-divergence full runs it again in full"

    def finish(self, result: Any) -> None:
        """Say in the result how far the run was as in full."""
        twin = self.twin
        which = f"a run in full on {count(twin.nprocs, 'rank')}"
        if self.divergence is not None:
            result.remarks.append(
                f"the calls are not those of {which}: {self.divergence}; "
                f"the predicted time is not that of the program{self._advice()}"
            )
            if self.choice == "stop":
                result.exit_status = 1
                result.error = f"pysmpi: error: --on-divergence stop: {self.divergence}"
                result.unreceived = None
            return
        compared = max((len(sequence) for sequence in twin.sequences), default=0)
        kind = "calls" if self.whole else "collectives of all ranks"
        begun = "the" if twin.complete else f"the first {compared:,}"
        result.twin = f"twin: {begun} {kind} of each rank are those of {which}"
        if self.sites:
            places = ", ".join(sorted(self.sites))
            result.twin += f"; {count(sum(self.sites.values()), 'result')} of {places} come from it"
            if not self.whole:
                result.twin += f", and may decide otherwise on {count(self.nprocs, 'rank')}"


def _ranks_of(comm: object) -> int:
    """The size of an intracommunicator; 0 for others."""
    size = getattr(comm, "size", 0)
    return 0 if getattr(comm, "is_inter", True) else int(size)


def _details(procedure: Procedure, values: tuple[object, ...]) -> str:
    """The peers of a call, and the sizes of its buffers."""
    found = []
    for name, value in zip(procedure.parameters, values):
        role = procedure.roles[name].name
        if role in ("PEER", "ROOT", "TAG") and isinstance(value, int):
            found.append(f"{name}={value}")
        elif role == "BUFFER":
            nbytes = _size(value)
            if nbytes is not None:
                found.append(f"{name} of {nbytes} B")
    return f" ({', '.join(found)})" if found else ""


def _size(value: object) -> int | None:
    """The bytes of a buffer, or of the part of it that the counts name."""
    if isinstance(value, list | tuple) and value:
        array, *rest = value
        if rest and isinstance(array, np.ndarray):
            counts = rest[0]
            if isinstance(counts, tuple | list) and counts and not isinstance(counts[0], int):
                counts = counts[0]
            if isinstance(counts, int | np.integer):
                return int(counts) * array.itemsize
            if isinstance(counts, np.ndarray | tuple | list):
                return int(np.sum(counts)) * array.itemsize
        return _size(array)
    return int(value.nbytes) if isinstance(value, np.ndarray | memoryview) else None


def _plain(value: object) -> object | None:
    """A copy of a small value of numbers; None for all others."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.ndarray):
        return value.copy() if value.nbytes <= MOST and not value.dtype.hasobject else None
    if isinstance(value, tuple | list) and 0 < len(value) <= 16:
        if all(isinstance(one, _PLAIN) for one in value):
            return copy.copy(value)
    return None


def _argument(values: tuple[object, ...], index: int) -> object:
    buffer = values[index] if index < len(values) else None
    if isinstance(buffer, list | tuple) and buffer:
        buffer = buffer[0]
    return buffer


def _bytes(buffer: Any) -> memoryview | None:
    try:
        view = memoryview(buffer)
        return view.cast("B") if view.c_contiguous and view.nbytes <= MOST else None
    except (TypeError, ValueError):
        return None


def _contents(buffer: object) -> bytes | None:
    view = _bytes(buffer)
    return None if view is None else bytes(view)


def _fill(buffer: object, value: object) -> bool:
    view = _bytes(buffer)
    if view is None or view.readonly or not isinstance(value, bytes) or view.nbytes != len(value):
        return False
    view[:] = value
    return True


def _may_count(values: tuple[object, ...], buffer: int | None, out: object) -> bool:
    """Whether a result may depend on the number of ranks: a sum or product of whole numbers."""
    value = out if buffer is None else _argument(values, buffer)
    kind = np.asarray(value).dtype.kind if isinstance(value, (np.ndarray, *_PLAIN)) else "i"
    if kind not in "iu":
        return False
    op = next((one for one in values if hasattr(one, "Is_commutative")), None)
    return op is None or getattr(op, "name", "MPI_SUM") in ("MPI_SUM", "MPI_PROD")
