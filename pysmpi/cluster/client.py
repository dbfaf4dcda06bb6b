"""Clients of Dask distributed, for a scheduler with an address or one in this process."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from pysmpi.cluster.workers import end_servers, version
from pysmpi.errors import UsageError
from pysmpi.version import __version__

PATIENCE = 30.0  # seconds for a scheduler to answer, and to get its first worker


def distributed(command: str) -> Any:
    """The module of Dask distributed; UsageError if it is not installed."""
    try:
        import distributed as module
    except ImportError:
        raise UsageError(
            f"{command}: Dask distributed is not installed: "
            "pip install 'pysmpi[sweep]'"
        ) from None
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


@contextmanager
def local(command: str, threads: int) -> Iterator[Any]:
    """A client of a scheduler in this process; its workers are threads that wait for processes."""
    module = distributed(command)
    with ExitStack() as stack:
        logging.getLogger("distributed").setLevel(logging.ERROR)
        cluster = module.LocalCluster(
            n_workers=1, threads_per_worker=threads, processes=False,
            dashboard_address=None, memory_limit=0, protocol="inproc://",
        )  # fmt: skip
        stack.enter_context(cluster)
        client = stack.enter_context(module.Client(cluster))
        # First of all: threads that wait for a process would keep the cluster from closing.
        stack.callback(end_servers)
        yield client


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


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
