"""`pysmpi.sample` inside a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from pysmpi import hints
from pysmpi.mpi.base.ranks import Rank
from pysmpi.patching.patches import Patches
from pysmpi.python import facts
from pysmpi.python.frames import BodySkipped, shorten
from pysmpi.shadow.entry import Entry
from pysmpi.shadow.estimate import FEWEST, StoppingRule
from pysmpi.shadow.passes import Meter, Point, Shadow, running


class Annotations:
    """Answers the annotations of the program in one run."""

    def __init__(self, shadow: Shadow, check: Callable[[str, str], None]) -> None:
        self.shadow = shadow
        self._check = check  # refuses scopes that the run cannot have
        self._points: dict[object, Point] = {}
        self._open: dict[tuple[int, int], list[tuple[Point, Entry, Meter] | None]] = {}

    def install(self, patches: Patches) -> None:
        """Answer until the patches are undone."""
        patches.set(hints, "sampling", self)

    def _point(self, sample: Any, function: Callable[..., Any] | None = None) -> Point:
        if function is not None:
            key: Any = sample.name, function.__module__, function.__qualname__
        elif sample.name is not None:
            key = sample.name
        else:
            key = sample.file, sample.line
        point = self._points.get(key)
        if point is None:
            name = sample.name
            if name is None:
                name = (
                    f"{shorten(sample.file)}:{sample.line}"
                    if function is None
                    else f"{function.__module__}:{function.__qualname__}"
                )
            options = dict(sample.options)
            self._check(options["scope"], name)
            if function is None or options["scope"] == "collective":
                options["by"] = "none"
            point = self.shadow.point(name, _rule(sample), **options)
            self._points[key] = point
        return point

    def _idle(self, sample: Any) -> bool:
        """Whether annotations have no effect, as in a full run."""
        return self.shadow.dry and sample.options["scope"] != "collective"

    def call(
        self,
        sample: object,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """A call of a decorated function."""
        rank = running()
        if rank is None or self._idle(sample):
            return function(*args, **kwargs)
        return self.shadow.call(self._point(sample, function), rank, function, args, kwargs)

    def loop(self, sample: Any) -> Iterator[object]:
        """The passes of an annotated loop that are to run."""
        rank = running()
        if rank is None or self._idle(sample):
            yield from sample.what
            return
        point = self._point(sample)
        shadow = self.shadow
        items = iter(sample.what)
        for item in items:
            entry = point.entry(rank, None)
            if entry.done:
                with shadow.paused():
                    rest = None if entry.left < 0 else entry.left - 1
                    passes = 1 + sum(1 for _ in islice(items, rest))
                    shadow.skip(point, entry, rank, passes)
                continue
            meter = shadow.begin(point, entry, rank)
            whole = False
            try:
                yield item
                whole = True
            finally:
                shadow.end(point, entry, meter, whole)

    def enter_block(self, sample: object) -> bool:
        """Begin the `with` statement of an annotated block; return whether its body is skipped."""
        rank = running()
        if rank is None or self._idle(sample):
            return False
        shadow = self.shadow
        point = self._point(sample)
        entry = point.entry(rank, None)
        blocks = self._open.setdefault(_place(rank, sample), [])
        if entry.done and facts.holds("blocks"):
            blocks.append(None)
            with shadow.paused():
                shadow.skip(point, entry, rank)
            return True
        blocks.append((point, entry, shadow.begin(point, entry, rank)))
        return False

    def leave_block(self, sample: object, error: BaseException | None) -> bool:
        """End the block; return True if it was skipped."""
        rank = running()
        if rank is None or self._idle(sample):
            return False
        opened = self._open[_place(rank, sample)].pop()
        if opened is None:
            return isinstance(error, BodySkipped)
        self.shadow.end(*opened, error is None)
        return False


def _place(rank: Rank, sample: object) -> tuple[int, int]:
    return rank.pid, id(sample)


def _rule(sample: Any) -> StoppingRule:
    iters, precision = sample.iters, sample.precision
    if sample.options["scope"] == "collective":
        return StoppingRule(FEWEST if iters is None else iters, None, sample.warmup, sample.every)
    if iters is None and precision is None:
        return StoppingRule(warmup=sample.warmup, every=sample.every)
    return StoppingRule(iters, precision, sample.warmup, sample.every)
