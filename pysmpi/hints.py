"""Annotations of programs: `pysmpi.sample`, `pysmpi.shared_empty` and `pysmpi.touch`.

Under a real MPI library, and outside of simulations, `sample` and `touch` do nothing and
`shared_empty` is `numpy.empty`. Importing them does not import the simulator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pysmpi.frames import caller, skip_body

if TYPE_CHECKING:
    from numpy import ndarray

# The handlers of the run; None outside of runs.
sampling: Any = None  # of `sample`
allocate: Any = None  # of `shared_empty`: called with shape, dtype, private elements and line
touched: Any = None  # of `touch`: called with the array and whether it is written


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
        code, line = caller()
        self.what = what
        self.name = name
        self.file = code.co_filename
        self.line = line
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
            raise ValueError(f"scope: expected local, global or collective, got {scope!r}")
        if by not in ("shape", "type", "none"):
            raise ValueError(f"by: expected shape, type or none, got {by!r}")
        if charge not in ("mean", "median", "draw"):
            raise ValueError(f"charge: expected mean, median or draw, got {charge!r}")
        if outputs not in ("keep", "scale", "leave"):
            raise ValueError(f"outputs: expected keep, scale or leave, got {outputs!r}")
        if iters is not None and iters < 1:
            raise ValueError(f"iters: expected at least 1, got {iters}")
        if precision is not None and not 0.0 < precision < 1.0:
            raise ValueError(f"precision: expected a relative error below 1, got {precision}")
        if warmup < 0:
            raise ValueError(f"warmup: expected 0 or more passes, got {warmup}")
        if every is not None and every < 2:
            raise ValueError(f"every: expected 2 or more passes, got {every}")
        if scope == "collective" and precision is not None:
            raise ValueError("precision: expected none with scope='collective', only iters")

    # A loop

    def __iter__(self) -> Iterator[Any]:
        if sampling is None:
            return iter(self.what)
        loop: Iterator[Any] = sampling.loop(self)
        return loop

    # A block

    def __enter__(self) -> sample:
        if sampling is not None and sampling.enter_block(self):
            skip_body()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return False if sampling is None else bool(sampling.leave_block(self, error))

    # A function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._function
        if function is None:
            if len(args) != 1 or kwargs or not callable(args[0]):
                raise TypeError("pysmpi.sample: expected a function to decorate")
            return self._decorated(args[0])
        if sampling is None:
            return function(*args, **kwargs)
        return sampling.call(self, function, args, kwargs)

    def _decorated(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def sampled(*args: Any, **kwargs: Any) -> Any:
            if sampling is None:
                return function(*args, **kwargs)
            return sampling.call(self, function, args, kwargs)

        return sampled

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind the method that `@pysmpi.sample` decorates."""
        return self if instance is None else functools.partial(self, instance)


def shared_empty(
    shape: int | tuple[int, ...], dtype: Any = float, private: Iterable[Any] = ()
) -> ndarray:
    """Return an array that shares its memory with the arrays of other ranks in a simulation.

    All ranks that allocate an array of about this size at this line get the same memory, so it
    holds the last value that any of them wrote. Arrays that one rank holds at the same time always
    have different memory. `private` lists the elements that each rank keeps for itself, as indices
    of the array: `[0, -1]` are the first and last row, `[np.s_[:, :4]]` the first four columns.
    Whole pages (4 KiB) around these elements are private too.

    Returns an array of `shape` (elements), C-contiguous, with undefined values. Raises TypeError
    and IndexError for indices that the array does not have.
    """
    import numpy as np  # not needed by programs that only sample

    private = list(private)
    if allocate is not None:
        made: ndarray | None = allocate(shape, np.dtype(dtype), private, caller())
        if made is not None:
            return made
    array = np.empty(shape, dtype)
    for index in private:
        array[index]  # as it is in a simulation
    return array


def touch(array: Any, write: bool = False) -> None:
    """Declare that the computation has read or written `array` since the last MPI call.

    Inside described nodes, a message costs less if its buffer has just been used, and more if other
    data has filled the caches since. pysmpi follows the buffers of messages. Use this function for
    other memory, or for a send buffer that was written again. It takes no simulated time.

    `array` is an array or any other object with a buffer, or a part of one. In a run with described
    nodes, raises TypeError for other objects.
    """
    if touched is not None:
        touched(array, write)
