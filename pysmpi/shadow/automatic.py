"""Finding the functions to sample: `--sample auto`.

Every function of the program, and the expensive ones of numpy and scipy, are measured at first. A
function is then sampled if

- it has never communicated, waited or slept,
- its calls with arguments of the same shapes have been measured often enough,
- it returns nothing, or arrays: numbers, strings and truth values control programs,
- it changes only arrays of its object,
- its results do not reach a test that decides about calls or sizes (`decisions.py`),
- the norm of the arrays that it reads stays about the same: in an iterative solver it does not, and
  the control flow depends on it,
- the time of its calls neither rises nor falls,
- a call takes long enough, and all calls together take a large part of the run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from time import thread_time_ns
from typing import Any

import numpy as np

from pysmpi.mpi.base.ranks import Rank
from pysmpi.shadow import source as sources
from pysmpi.shadow.decisions import Steering
from pysmpi.shadow.entry import Entry
from pysmpi.shadow.estimate import StoppingRule
from pysmpi.shadow.outputs import ArrayWatch, Outputs, norm
from pysmpi.shadow.passes import NO_COSTS, Guard, Point, Shadow
from pysmpi.time.figures import NotSampledFigures

SHORTEST = 20_000  # smallest time of a sampled call (ns)
PART = 0.02  # smallest part of this machine's time that all calls together take
TRIES = 8  # calls after which a function is known to be short
LEAST = 6  # measures of a kind of calls before they are skipped
CHANGE = 1.1  # largest factor between the norms of what calls read
KINDS = 64  # kinds of calls after which calls count as hardly ever alike
_CHANGES = "reads numbers whose size changes from call to call"

# The modules of expensive functions of libraries.
LIBRARIES = {
    "numpy": ("dot", "matmul", "einsum", "tensordot", "inner", "outer", "kron", "convolve", "sort",
              "argsort"),
    "numpy.fft": ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft", "rfft2",
                  "irfft2", "rfftn", "irfftn"),
    "numpy.linalg": ("inv", "solve", "eig", "eigh", "svd", "qr", "cholesky", "lstsq", "pinv"),
    "scipy.fft": ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft", "rfftn",
                  "irfftn", "dct", "idct", "dctn", "idctn", "dst", "idst", "dstn", "idstn"),
    "scipy.linalg": ("inv", "solve", "eig", "eigh", "svd", "qr", "cholesky", "lu", "lu_factor",
                     "lu_solve", "expm"),
    "scipy.ndimage": ("convolve", "correlate", "gaussian_filter", "uniform_filter", "laplace"),
    "scipy.signal": ("convolve", "fftconvolve", "oaconvolve"),
}  # fmt: skip


class Candidate:
    """A candidate for sampling; `why_not` is the reason against it, once known."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.why_not: str | None = None
        self.host = 0  # ns of its calls
        self.called: set[int] = set()  # ranks that have called it
        self.chosen = False


class SoftGuard(Guard):
    """Notes that a call communicates, and does not refuse it."""

    __slots__ = ("candidate",)

    def __init__(self, rank: Rank, candidate: Candidate, shadow: Shadow) -> None:
        super().__init__(rank, candidate.point.name, shadow)
        self.candidate = candidate

    def begun(self, rank: Rank) -> None:
        self.candidate.why_not = "communicates"
        if rank.timer is self:
            rank.timer = self.real
        rank.unwatch(self)

    def end(self) -> None:
        timer = self.rank.timer
        super().end()
        if timer is not self:
            self.rank.timer = timer


class Automatic:
    """Watches the functions of one run."""

    def __init__(self, shadow: Shadow, known: set[str]) -> None:
        self.shadow = shadow
        self.known = known  # functions that were named by the user
        self.candidates: dict[str, Candidate] = {}
        self.steering = Steering()
        self._since = thread_time_ns()

    def start(self) -> None:
        """The run begins."""
        self._since = thread_time_ns()

    def places(self, module: str, tree: ast.Module) -> dict[str, str]:
        """The functions of a module of the program to watch, from their paths to their places."""
        self.steering.add(module, tree)
        found = {}
        for path, node in sources.functions(tree):
            place = f"{module}:{path}"
            if not node.name.startswith("__") and place not in self.known:
                found[path] = place
        return found

    def replace(self, place: str, function: Callable[..., object]) -> Callable[..., Any]:
        """The replacement of a function: `call(rank, args, kwargs)`."""
        candidate = self.candidates.get(place)
        if candidate is None:
            point = Point(place, StoppingRule(), by="shape")
            point.steady = self.shadow.steady
            candidate = self.candidates[place] = Candidate(point)
        watched = candidate

        def call(rank: Rank, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
            return self._call(watched, rank, function, args, kwargs)

        return call

    def excluded(self, place: str) -> bool:
        """Whether a function is certain not to be sampled, so that it can go back."""
        return self.candidates[place].why_not is not None

    def _call(
        self,
        candidate: Candidate,
        rank: Rank,
        function: Callable[..., object],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> Any:
        shadow, point = self.shadow, candidate.point
        with shadow.paused():
            if shadow.costs is None:
                shadow.calibrate(rank)
            costs = shadow.costs or NO_COSTS
            entry = point.entry(rank, point.key(args, kwargs))
            if entry.done:
                assert entry.outputs is not None
                if entry.resembles(norm(args, kwargs, entry.written or []), CHANGE):
                    shadow.skip(point, entry, rank)
                    shadow.clock.charge(-costs.skipped)
                    return entry.outputs.leave(args, kwargs)
                entry.done = False
            candidate.called.add(rank.pid)
            first = entry.written is None
            watch = ArrayWatch(args, kwargs) if first else None
            state = _state(args) if first else {}
            guard = rank.timer = SoftGuard(rank, candidate, shadow)
        try:
            result = function(*args, **kwargs)
        finally:
            with shadow.paused():
                guard.end()
        if candidate.why_not is not None:
            return result
        with shadow.paused():
            point.ran += 1
            shadow.clock.charge(-costs.measured)
            measured = guard.measured() if shadow.native else float(guard.host)
            measured = max(0.0, measured - costs.inside)
            counted = shadow.count(point, entry, measured)
            guard.note(entry)
            candidate.host += guard.host
            if watch is not None:
                entry.written = watch.written()
            entry.note_norm(norm(args, kwargs, entry.written or []))
            if watch is not None:
                if not _same(state, _state(args)):
                    candidate.why_not = "changes its object"
            if counted:
                self._decide(candidate, entry, result, args, kwargs)
        return result

    def _decide(
        self,
        candidate: Candidate,
        entry: Entry,
        result: object,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> None:
        """Decide after a call whether to skip calls like it, or to exclude the function."""
        point = candidate.point
        if point.name.rpartition(":")[2].rpartition(".")[2] in self.steering:
            candidate.why_not = "returns numbers that decide about further calls"
        elif not _harmless(result):
            candidate.why_not = f"returns {_article(type(result).__name__)}"
        elif point.ran >= TRIES and candidate.host < SHORTEST * point.ran:
            candidate.why_not = "is short"
        elif len(point.entries) > KINDS * max(1, len(candidate.called)):
            candidate.why_not = "is hardly ever called with the same shapes"
        if candidate.why_not is not None:
            point.forget()
            return
        if entry.greatest > CHANGE * entry.least:
            candidate.why_not = _CHANGES
            point.forget()
            return
        seen = entry.estimate.count if entry.norms <= 1 else entry.norms
        if seen < LEAST or not entry.estimate.enough(point.rule):
            return
        if self.shadow.native:
            entry.trend = entry.estimate.trend
            if entry.trend is not None:
                candidate.why_not = f"takes {entry.trend:+.0%} longer from call to call"
                point.forget()
                return
            entry.left = entry.estimate.gap()
        if candidate.host < PART * (thread_time_ns() - self._since):
            return
        if not self.shadow.native:
            entry.estimate.mean = 0.0  # this counting is not compute of the rank
            entry.estimate.values = [0.0]
        entry.done = True
        entry.outputs = Outputs(result, args, kwargs, entry.written or [], scaled=True)
        if not candidate.chosen:
            candidate.chosen = True
            self.shadow.points.append(point)

    def report(self) -> list[NotSampledFigures]:
        """Functions that take a large part of the run but are not sampled, with the reason."""
        total = max(1, thread_time_ns() - self._since)
        found: list[NotSampledFigures] = []
        for candidate in self.candidates.values():
            if candidate.chosen or candidate.host < PART * total:
                continue
            reason = candidate.why_not
            ranks = len(candidate.called)
            if reason is None:
                reason = f"was called {candidate.point.ran / max(1, ranks):.3g} times a rank"
            found.append(
                {
                    "place": candidate.point.name,
                    "reason": reason,
                    "host_seconds": candidate.host * 1e-9,
                }
            )
        found.sort(key=lambda one: -one["host_seconds"])
        return found


def _article(kind: str) -> str:
    return f"an {kind}" if kind[:1] in "aeiou" else f"a {kind}"


def _harmless(result: object, depth: int = 0) -> bool:
    """Whether a result is nothing or arrays, which do not control a program by themselves."""
    if result is None:
        return True
    if isinstance(result, np.ndarray):
        return result.ndim > 0
    if isinstance(result, tuple | list) and depth < 2 and len(result) <= 16:
        return all(_harmless(element, depth + 1) for element in result)
    return False


def _state(args: tuple[object, ...]) -> dict[str, object]:
    """The attributes of the object of a method."""
    attributes = getattr(args[0], "__dict__", None) if args else None
    return dict(attributes) if type(attributes) is dict else {}


def _same(before: dict[str, object], after: dict[str, object]) -> bool:
    """Whether attributes hold the same objects, in the same order; the contents may differ."""
    return list(before) == list(after) and all(
        value is after[name] or (isinstance(value, int | float | str) and value == after[name])
        for name, value in before.items()
    )
