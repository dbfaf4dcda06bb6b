"""Annotations of programs: `pysmpi.sample`, `pysmpi.shared_empty` and `pysmpi.touch`.

Under a real MPI library, and outside of simulations, `sample` and `touch` do nothing and
`shared_empty` is `numpy.empty`. Importing them does not import the simulator.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

from pysmpi.python.frames import caller, skip_body

if TYPE_CHECKING:
    from types import CodeType, TracebackType

    from numpy import dtype as Dtype
    from numpy.typing import DTypeLike, NDArray

    Allocate = Callable[
        [int | tuple[int, ...], Dtype[Any], list[Any], tuple[CodeType, int]], NDArray[Any] | None
    ]

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class SampleHandler(Protocol):
    """The sampling of a run, as `sample` uses it."""

    def loop(self, sample: sample[T]) -> Iterator[T]:
        """The elements of a loop whose passes are executed."""

    def enter_block(self, sample: sample[Any]) -> bool:
        """Begin a block; return whether it is skipped."""

    def leave_block(self, sample: sample[Any], error: BaseException | None) -> bool:
        """End a block; return whether its exception is handled."""

    def call(
        self,
        sample: sample[Any],
        function: Callable[..., object],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The result of a call that is executed or skipped."""


# The handlers of the run; None outside of runs.
sampling: SampleHandler | None = None  # of `sample`
allocate: Allocate | None = None  # of `shared_empty`: shape, type, private elements, line
touched: Callable[[object, bool], None] | None = None  # of `touch`: the array; if it is written
executed: Callable[[float], None] | None = None  # of `execute`: the operations


class sample(Generic[T]):
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
        what: Iterable[T] | Callable[..., object] | None = None,
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

    def __iter__(self) -> Iterator[T]:
        if sampling is not None:
            return sampling.loop(self)
        if not isinstance(self.what, Iterable):
            raise TypeError(f"pysmpi.sample: expected an iterable in a loop, got {self.what!r}")
        return iter(self.what)

    # A block

    def __enter__(self) -> sample[T]:
        if sampling is not None and sampling.enter_block(self):
            skip_body()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        return False if sampling is None else bool(sampling.leave_block(self, error))

    # A function

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._function
        if function is None:
            if len(args) != 1 or kwargs or not callable(args[0]):
                raise TypeError("pysmpi.sample: expected a function to decorate")
            return self._decorated(args[0])
        if sampling is None:
            return function(*args, **kwargs)
        return sampling.call(self, function, args, kwargs)

    def _decorated(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def sampled(*args: P.args, **kwargs: P.kwargs) -> R:
            if sampling is None:
                return function(*args, **kwargs)
            result: R = sampling.call(self, function, args, kwargs)
            return result

        return sampled

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]:
        """Bind the method that `@pysmpi.sample` decorates."""
        return self if instance is None else functools.partial(self, instance)


def shared_empty(
    shape: int | tuple[int, ...], dtype: DTypeLike = float, private: Iterable[Any] = ()
) -> NDArray[Any]:
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
        made = allocate(shape, np.dtype(dtype), private, caller())
        if made is not None:
            return made
    array = np.empty(shape, dtype)
    for index in private:
        array[index]  # as it is in a simulation
    return array


def touch(array: object, write: bool = False) -> None:
    """Declare that the computation has read or written `array` since the last MPI call.

    Inside described nodes, a message costs less if its buffer has just been used, and more if other
    data has filled the caches since. pysmpi follows the buffers of messages. Use this function for
    other memory, or for a send buffer that was written again. It takes no simulated time.

    `array` is an array or any other object with a buffer, or a part of one. In a run with described
    nodes, raises TypeError for other objects.
    """
    if touched is not None:
        touched(array, write)


def execute(flops: float) -> None:
    """Compute for `flops` operations on the rank's core, without computing anything.

    The next MPI call first takes `flops` divided by the speed of the core (flop/s), whatever
    `--compute` says; on a core without a speed, by that of this computer. As `smpi_execute_flops`
    of SMPI. Without a simulation it does nothing. Raises ValueError for a negative number.
    """
    if not 0.0 <= flops < math.inf:
        raise ValueError(f"execute: expected a number of operations from 0 on, got {flops!r}")
    if executed is not None:
        executed(float(flops))
