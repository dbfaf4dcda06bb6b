"""Annotations of compute in programs: `pysmpi.sample`.

Under a real MPI library, and outside of simulations, they do nothing. Importing them imports no
other module of pysmpi.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# The run's handler of annotations; None outside of runs.
run: Any = None


class sample:
    """Measure a part of the program a few times; afterwards skip it, and charge the measured time.

    A loop with passes that are alike::

        for row in pysmpi.sample(rows):
            relax(row)

    a block, which is skipped as a whole::

        with pysmpi.sample(iters=10):
            field = step(field)

    and a function; calls with the same shapes of arguments are alike::

        @pysmpi.sample(precision=0.02)
        def step(field): ...

    Parameters: passes are measured until there are `iters` of them or the relative standard error
    of their mean is at most `precision` (30 and 0.01 if neither is given). The first `warmup`
    passes do not count. Afterwards, if `every` is given, one pass in `every` is measured again.
    `scope` is "local": each rank measures its own passes; "global": all ranks measure together; or
    "collective": all ranks pass together, and passes may communicate; then only `iters` decides.
    `charge` is "mean", "median", or "draw": a random one of the measures. `name` is the name in
    reports; places with the same name are joined.

    For functions, `by` is the rule for calls that are alike: "shape", "type" or "none". A skipped
    call returns the result of the last executed call. With `outputs="keep"` it writes the values
    that this call wrote to arrays; with "scale" it scales written and returned values with the
    arrays that it reads; with "leave" it writes nothing.

    A loop that is skipped in the middle leaves its variable at the last executed pass. A skipped
    block does not change its variables.

    Raises ValueError for invalid parameters, and in a run `pysmpi.UsageError` if the sampled part
    communicates.
    """

    def __init__(
        self,
        what: Any = None,
        /,
        *,
        iters: int | None = None,
        precision: float | None = None,
        warmup: int = 1,
        every: int | None = None,
        scope: str = "local",
        by: str = "shape",
        charge: str = "mean",
        outputs: str = "keep",
        name: str | None = None,
    ) -> None:
        frame = sys._getframe(1)
        self.what = what
        self.name = name
        self.file = frame.f_code.co_filename
        self.line = frame.f_lineno
        self.iters = iters
        self.precision = precision
        self.warmup = warmup
        self.every = every
        self.options = {"scope": scope, "by": by, "charge": charge, "outputs": outputs}
        self._function: Callable[..., Any] | None = None
        if callable(what) and not isinstance(what, Iterable):
            self._function = what
            functools.update_wrapper(self, what)
        # Also outside of runs, so that tests of the program find wrong parameters.
        if scope not in ("local", "global", "collective"):
            raise ValueError(f"scope: expected local, global or collective, found {scope!r}")
        if by not in ("shape", "type", "none"):
            raise ValueError(f"by: expected shape, type or none, found {by!r}")
        if charge not in ("mean", "median", "draw"):
            raise ValueError(f"charge: expected mean, median or draw, found {charge!r}")
        if outputs not in ("keep", "scale", "leave"):
            raise ValueError(f"outputs: expected keep, scale or leave, found {outputs!r}")
        if iters is not None and iters < 1:
            raise ValueError(f"iters: expected at least 1, found {iters}")
        if precision is not None and not 0.0 < precision < 1.0:
            raise ValueError(f"precision: expected a relative error below 1, found {precision}")
        if warmup < 0:
            raise ValueError(f"warmup: expected 0 or more passes, found {warmup}")
        if every is not None and every < 2:
            raise ValueError(f"every: expected 2 or more passes, found {every}")
        if scope == "collective" and precision is not None:
            raise ValueError("precision: expected none with scope='collective', only iters")

    # A loop

    def __iter__(self) -> Iterator[Any]:
        if run is None:
            return iter(self.what)
        loop: Iterator[Any] = run.loop(self)
        return loop

    # A block

    def __enter__(self) -> sample:
        if run is not None:
            run.enter_block(self, sys._getframe(1))
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return False if run is None else bool(run.leave_block(self, error))

    # A function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._function
        if function is None:
            if len(args) != 1 or kwargs or not callable(args[0]):
                raise TypeError("pysmpi.sample: expected a function to decorate")
            return self._decorated(args[0])
        if run is None:
            return function(*args, **kwargs)
        return run.call(self, function, args, kwargs)

    def _decorated(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def sampled(*args: Any, **kwargs: Any) -> Any:
            if run is None:
                return function(*args, **kwargs)
            return run.call(self, function, args, kwargs)

        return sampled

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind the method that `@pysmpi.sample` decorates."""
        return self if instance is None else functools.partial(self, instance)
