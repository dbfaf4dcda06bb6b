"""Executions on the workers of Dask distributed, which find the program under the same path."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pysmpi.cluster.client import distributed, next_of
from pysmpi.cluster.workers import ServerEnded, ask
from pysmpi.errors import PysmpiError, UsageError
from pysmpi.explore.executions import (
    Decider,
    Executions,
    ExecutionsLost,
    JobFactory,
    LimitedExecutions,
    Trial,
)
from pysmpi.explore.exploration import ExecutorFactory
from pysmpi.isolation.loading.set_order import SEEDED

AHEAD = 2  # executions for each thread of the workers, so that none waits for the next one
SERVER = "pysmpi.explore.server"

T = TypeVar("T")


def execute_remotely(request: tuple[bytes, bytes, float], variables: dict[str, str]) -> object:
    """Execute a job under a decider in the server of this thread.

    Return the `Trial`, or the text of an error of the job and its exit status.
    """
    try:
        return ask(SERVER, request, variables)
    except ServerEnded as error:
        return f"the process of the executions ended: {error}", 70


def on_workers(client: object, make: JobFactory, jobs: int | None) -> ExecutorFactory:
    """Execute on the workers of a client the jobs that `make(ranks, arguments)` makes."""
    return lambda ranks, arguments, settings: RemoteExecutor(
        client, make, ranks, arguments, jobs, settings.timeout
    )


class RemoteExecutor(LimitedExecutions):
    """Executes a job on the workers of a client of Dask.

    `make(ranks, arguments)` makes the job on the workers, so it can be pickled. `jobs` executions
    are under way at a time (default: twice the threads of the workers). One that takes longer than
    `timeout` seconds is killed.
    """

    def __init__(
        self, client: Any, make: JobFactory, ranks: int, arguments: Sequence[str],
        jobs: int | None, timeout: float,
    ) -> None:  # fmt: skip
        self._client = client
        self._job = pickle.dumps((os.getcwd(), make, ranks, list(arguments)))
        self._timeout = timeout
        # Children of one process have one order of sets, and servers do.
        seed = os.environ.get("PYTHONHASHSEED", "")
        self._variables = {"PYTHONHASHSEED": seed if seed.isdigit() else "0"}
        if not seed.isdigit() or SEEDED in os.environ:
            self._variables[SEEDED] = "1"  # ranks have orders of their own
        self.jobs = jobs or AHEAD * max(1, sum(client.nthreads().values()))
        self._running: dict[Any, Any] = {}
        self._arriving: Any = distributed("explore").as_completed()

    def serve(self, work: Callable[[Executions], T]) -> T:
        """Return `work(self)`, which calls `submit` and `next`."""
        try:
            return work(self)
        finally:
            self.stop()

    def submit(self, decider: Decider, tag: Any) -> None:
        """Begin an execution."""
        try:
            data = pickle.dumps(decider)
        except Exception as error:  # of a strategy of any kind
            raise UsageError(
                f"--scheduler: expected a strategy that can be pickled for the workers: {error}"
            ) from None
        future = self._client.submit(
            execute_remotely, (self._job, data, self._timeout), self._variables, pure=False
        )
        self._running[future] = tag
        self._arriving.add(future)

    def next(self) -> tuple[Any, Trial]:
        """Wait for the end of an execution; return its tag and its outcome.

        ExecutionsLost if it has none: its worker died again and again, or the scheduler.
        """
        future = next_of(self._arriving)
        while future not in self._running:  # given up before
            future = next_of(self._arriving)
        if future.status in ("cancelled", "lost"):
            raise ExecutionsLost("the scheduler was lost")
        try:
            answer = future.result()
        except Exception as error:  # Dask's, of any kind: its worker died, say
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ExecutionsLost(text) from None
        if not isinstance(answer, Trial):
            text, status = answer
            if status == UsageError.exit_status:
                raise UsageError(f"on a worker: {text}")
            raise PysmpiError(f"on a worker: {text}")
        future.release()
        return self._running.pop(future), answer

    def stop(self) -> list[object]:
        """Give up all executions; return their tags."""
        tags = list(self._running.values())
        if self._running and not sys.is_finalizing():
            self._client.cancel(list(self._running))
        self._running.clear()
        return tags
