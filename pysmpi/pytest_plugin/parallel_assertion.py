"""`parallel_assert` for suites written for mpi-pytest, where this is not installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module


def parallel_assert(
    assertion: bool | Callable[[], bool], msg: str = "", *, participating: bool = True
) -> None:
    """Fail on all ranks of COMM_WORLD if `assertion` is false on a rank that participates.

    All ranks have to call it. A callable is called on the ranks that participate; this is
    deprecated, as in mpi-pytest. Raises AssertionError.
    """
    __tracebackhide__ = True
    holds = True
    if participating:
        if callable(assertion):
            warnings.warn(
                "parallel_assert: expected a boolean, got a callable", FutureWarning, stacklevel=2
            )
            holds = bool(assertion())
        else:
            holds = bool(assertion)
    found = import_module("mpi4py.MPI").COMM_WORLD.allgather(holds)
    failed = [rank for rank, fine in enumerate(found) if not fine]
    if failed:
        raise AssertionError(f"Parallel assertion failed on ranks: {failed}\n{msg}")
