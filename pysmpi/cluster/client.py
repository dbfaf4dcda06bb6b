"""Clients of Dask distributed, for a scheduler with an address."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pysmpi.cluster.workers import version
from pysmpi.errors import UsageError
from pysmpi.own_process import interruption
from pysmpi.python.extras import lacking
from pysmpi.version import __version__

_PAUSE = 0.01  # seconds between two looks for arrivals
PATIENCE = 30.0  # seconds for a scheduler to answer, and to get its first worker


def distributed(command: str) -> Any:
    """The module of Dask distributed; UsageError if it is not installed."""
    try:
        import distributed as module
    except ImportError:
        raise lacking(command, "sweep") from None
    return module


@contextmanager
def connected(command: str, scheduler: str) -> Iterator[Any]:
    """A client of the scheduler at an address; UsageError if it cannot be used."""
    module = distributed(command)
    try:
        client = module.Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError, ImportError) as error:
        raise UsageError(
            f"--scheduler {scheduler}: expected the address of a scheduler of Dask, such as "
            f"tcp://node1:8786, got none that answers: {error}"
        ) from None
    with client:
        _check_workers(client, scheduler)
        yield client


def next_of(arriving: Any) -> Any:
    """The next future of `distributed.as_completed`, awaited without waits in Dask's code.

    KeyboardInterrupt if a signal has arrived.
    """
    while not arriving.has_ready():
        interruption.check()
        time.sleep(_PAUSE)
    return next(arriving)


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_workers(client: Any, scheduler: str) -> None:
    """Refuse a scheduler without workers, and workers with another pysmpi."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise UsageError(f"--scheduler {scheduler}: it has no workers") from None
    answers = client.run(version, on_error="return")
    for worker, answer in answers.items():
        if answer != __version__:
            raise UsageError(
                f"--scheduler {scheduler}: worker {worker}: expected pysmpi {__version__}, got "
                f"{answer}"
            )
