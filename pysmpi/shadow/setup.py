"""Shadow execution of one job, from its options to its report."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.loading import set_order
from pysmpi.isolation.loading.imports import ImportSystem
from pysmpi.mpi.base.ranks import Rank
from pysmpi.patching.patches import Patches
from pysmpi.ranks.instruments import Instrument
from pysmpi.shadow import source as sources
from pysmpi.shadow.annotations import Annotations
from pysmpi.shadow.automatic import LIBRARIES, Automatic
from pysmpi.shadow.install import Installer, Replacement, like, put_back
from pysmpi.shadow.once import READERS, Once, names_file
from pysmpi.shadow.passes import Point, Shadow, running
from pysmpi.shadow.targets import OnceTarget, Target, parse_once, parse_sample
from pysmpi.time.figures import ShadowFigures
from pysmpi.time.stopwatch import Stopwatch
from pysmpi.time.timing import ComputeTiming, NativeTiming, SteadyTiming

# A call of a replaced function by a rank.
Call = Callable[[Rank, tuple[Any, ...], Mapping[str, Any]], Any]


class Shadowing(Instrument):
    """The targets of `--sample` and `--once`, in one run.

    `sample` holds targets, `auto` or `none`; `once` targets or `files`. Raises `UsageError`.
    """

    def __init__(
        self,
        sample: Sequence[str] | str,
        once: Sequence[str] | str,
        timing: ComputeTiming,
        ranks: int,
        seed: int = 0,
    ) -> None:
        sample = [sample] if isinstance(sample, str) else sample
        once = [once] if isinstance(once, str) else once
        factor = timing.factor if isinstance(timing, NativeTiming) else None
        self.shadow = Shadow(timing.stopwatch, factor, seed)
        self.shadow.steady = isinstance(timing, SteadyTiming)
        self.annotated = "none" not in sample
        if not self.annotated and len(sample) > 1:
            raise UsageError("--sample none: expected it alone, it turns all sampling off")
        self.targets = [parse_sample(text) for text in sample if text not in ("auto", "none")]
        self.timing = timing
        self.once: list[Once] = []
        self.automatic: Automatic | None = None
        self.ranks = ranks
        replacements = [
            Replacement(target.name, "--sample", self._sampled(target)) for target in self.targets
        ]
        for text in once:
            if text == "files":
                replacements += [self._reader(name) for name in READERS]
            else:
                single = parse_once(text)
                replacements.append(Replacement(single.name, "--once", self._run_once(single)))
        self.named = list(replacements)
        for target in self.targets:
            self._check(target.scope, f"--sample {target.name}")
        if "auto" in sample:
            known = {one.name for one in replacements}
            self.automatic = Automatic(self.shadow, known)
            for module, names in LIBRARIES.items():
                for name in names:
                    if f"{module}:{name}" not in known:
                        replacements.append(self._watched(f"{module}:{name}", optional=True))
        self.installer = Installer(replacements)
        self.orders = False  # whether sets have an order of each rank
        if self.automatic is not None:
            self.installer.visit = self._visit
        self.annotations = Annotations(self.shadow, self._check)

    def order_sets(self) -> None:
        """Give sets an order of each rank, unless the order of all sets is fixed."""
        if not set_order.is_fixed():
            self.orders = True
            self.installer.visit = self._visit

    def run_dry(self) -> None:
        """Run everything, and only count passes that may communicate."""
        self.shadow.dry = True
        self.automatic = None
        collective = {target.name for target in self.targets if target.scope == "collective"}
        self.installer = Installer([one for one in self.named if one.name in collective])

    @property
    def rewriter(self) -> Installer | None:
        """Compiles the modules of the program; None if they are not changed."""
        return self.installer if self.installer.busy else None

    def install(self, patches: Patches, imports: ImportSystem, exchange: Exchange) -> None:
        """Sample until the patches are undone."""
        if self.orders:
            set_order.install(patches)
        if self.annotated:
            self.annotations.install(patches)
        if self.installer.busy:
            self.installer.install(patches, imports, exchange)
        if self.automatic is not None:
            self.automatic.start()
        patches.call_back(self._close)

    def _close(self) -> None:
        for one in self.once:
            one.close()

    def _check(self, scope: str, where: str) -> None:
        """Refuse targets that a recording of compute does not contain."""
        if scope == "collective" and getattr(self.timing, "record", None) is not None:
            raise UsageError(
                f"{where}: compute cannot be recorded while passes that communicate are skipped"
            )

    # Replacements of functions

    def _sampled(self, target: Target) -> Callable[[Any, bool], Any]:
        point: Point | None = None

        def replace(function: Any, constructor: bool) -> Any:
            nonlocal point
            if point is None:
                point = self.shadow.point(
                    target.name,
                    target.rule,
                    scope=target.scope,
                    by=target.by,
                    charge=target.charge,
                    outputs=target.outputs,
                )
            mine, shadow = point, self.shadow

            def call(rank: Rank, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
                return shadow.call(mine, rank, function, args, kwargs, constructor)

            return _in_place_of(function, call, self.shadow.clock)

        return replace

    def _run_once(self, target: OnceTarget, reader: bool = False) -> Callable[[Any, bool], Any]:
        once = Once(self.shadow, target, self.ranks, reader)
        self.once.append(once)

        def replace(function: Any, constructor: bool) -> Any:
            if constructor:
                raise UsageError(f"--once {target.name}: expected a function, got a class")

            def call(rank: Rank, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
                if reader and not names_file(args, kwargs):
                    return function(*args, **kwargs)
                return once.call(rank, function, args, kwargs)

            return _in_place_of(function, call, self.shadow.clock)

        return replace

    def _reader(self, name: str) -> Replacement:
        module, _, path = name.partition(":")
        target = OnceTarget(module, path, writable=True)
        return Replacement(name, "--once", self._run_once(target, reader=True), optional=True)

    def _watched(self, place: str, optional: bool = False) -> Replacement:
        automatic = self.automatic
        assert automatic is not None

        def replace(function: Any, constructor: bool) -> Any:
            watched = automatic.replace(place, function)

            def call(rank: Rank, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
                if automatic.excluded(place):
                    put_back(place, function, replaced)
                    return function(*args, **kwargs)
                return watched(rank, args, kwargs)

            replaced = _in_place_of(function, call, self.shadow.clock)
            return replaced

        return Replacement(place, "--sample", replace, optional)

    def _visit(self, module: str, tree: ast.Module) -> None:
        if self.orders:
            set_order.transform(tree)
        if self.automatic is None:
            return
        places = self.automatic.places(module, tree)
        for place in places.values():
            self.installer.add(self._watched(place))
        sources.replace(tree, module, places, "--sample")

    # Results

    @property
    def failure(self) -> UsageError | None:
        """An error that a program may have caught."""
        return self.shadow.failure

    def finish(self, result: Any) -> None:
        """Add the figures of the run, and the error that the program may have caught."""
        result.shadow = self.report()
        failure = self.failure
        if failure is not None:
            result.exit_status, result.error = failure.exit_status, f"pysmpi: error: {failure}"
            result.unreceived = None

    def report(self) -> ShadowFigures | None:
        """The figures of the run; None if no function was sampled or named."""
        sampled = self.shadow.report()
        once = [one.report() for one in self.once if one.ran or one.shared]
        unmet = [one.name for one in self.named if not one.met and not one.optional]
        if not (sampled or once or unmet or self.automatic):
            return None
        found: ShadowFigures = {"sampled": sampled, "once": once, "not_loaded": unmet}
        if self.automatic is not None:
            found["not_sampled"] = self.automatic.report()
        return found


def _in_place_of(function: Any, call: Call, clock: Stopwatch) -> object:
    """A function that passes the calls of programs to `call`, and all others to `function`.

    While the clock of compute pauses, and in calls of MPI, pysmpi calls the function.
    """

    def replaced(*args: Any, **kwargs: Any) -> object:
        rank = running()
        if rank is None or rank.in_call or rank.record is not None or clock.pauses:
            return function(*args, **kwargs)
        return call(rank, args, kwargs)

    return like(function, replaced)
