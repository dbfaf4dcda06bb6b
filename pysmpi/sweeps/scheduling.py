"""Executing the cases of a sweep on Dask distributed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.sweeps.journal import Journal
from pysmpi.sweeps.study import SweepCase
from pysmpi.sweeps.workers import end_servers, run_remotely, version
from pysmpi.version import __version__

PATIENCE = 30.0  # seconds for a scheduler to answer, and to get its first worker

# Called with the number of cases that have ended, of all cases, and of those that failed.
Report = Callable[[int, int, int], None]


def execute(
    cases: Sequence[SweepCase],
    journal: Journal,
    scheduler: str | None,
    workers: int | None,
    report: Report,
) -> None:
    """Run the cases that the journal does not have, and add their rows.

    `scheduler` is the address of Dask's scheduler; None starts one here, with `workers` cases at a
    time (default: the number of cores). Raises UsageError if Dask is not installed, or has no
    workers.
    """
    left = {case.key: case for case in cases if case.key not in journal.rows}
    done = len(cases) - len(left)
    failed = sum(journal.rows[one.key]["exit_status"] != 0 for one in cases if one.key not in left)
    report(done, len(cases), failed)
    if not left:
        return
    try:
        import distributed
    except ImportError:
        raise UsageError(
            "sweep: found no Dask distributed, expected it to be installed: "
            "pip install 'pysmpi[sweep]'"
        ) from None
    with ExitStack() as stack:
        client = stack.enter_context(_client(distributed, scheduler, workers, len(left)))
        by_future = {
            client.submit(run_remotely, case.request, key=f"pysmpi-{key}", pure=False): case
            for key, case in left.items()
        }
        arriving: Any = distributed.as_completed
        for future in arriving(list(by_future)):
            case = by_future.pop(future)
            row = _row(future)
            if row is None:
                raise UsageError(
                    f"sweep: scheduler {scheduler}: lost after {done} of {len(cases)} cases; the "
                    "same command goes on from there"
                )
            journal.add(case.key, case.columns, row)
            future.release()
            done += 1
            failed += row["exit_status"] != 0
            report(done, len(cases), failed)


def _row(future: Any) -> dict[str, Any] | None:
    """The row of a future that has ended; None if it was lost with its scheduler."""
    if future.status in ("cancelled", "lost"):
        return None
    try:
        row: dict[str, Any] = future.result()
    except Exception as error:  # Dask's, of any kind: its worker died, say
        return {"exit_status": 70, "error": f"{type(error).__name__}: {error}".splitlines()[0]}
    return row


def _cores() -> int:
    return len(os.sched_getaffinity(0))


@contextmanager
def _client(distributed: Any, scheduler: str | None, workers: int | None, cases: int) -> Any:
    """A client of the scheduler, or of one in this process."""
    with ExitStack() as stack:
        if scheduler is None:
            # Its workers are threads that wait for the processes of their cases.
            logging.getLogger("distributed").setLevel(logging.ERROR)
            cluster = distributed.LocalCluster(
                n_workers=1, threads_per_worker=min(workers or _cores(), cases), processes=False,
                dashboard_address=None, memory_limit=0, protocol="inproc://",
            )  # fmt: skip
            stack.enter_context(cluster)
            client = stack.enter_context(distributed.Client(cluster))
            # First of all: threads that wait for a case would keep the cluster from closing.
            stack.callback(end_servers)
            yield client
            return
        try:
            client = distributed.Client(scheduler, timeout=PATIENCE)
        except (OSError, ValueError, ImportError) as error:
            raise UsageError(
                f"--scheduler {scheduler}: expected the address of a scheduler of Dask, such as "
                f"tcp://node1:8786; found none that answers: {error}"
            ) from None
        stack.enter_context(client)
        _check_workers(client, scheduler)
        yield client


def _check_workers(client: Any, scheduler: str) -> None:
    """Refuse a scheduler without workers, and workers with another pysmpi."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise UsageError(f"--scheduler {scheduler}: found no workers") from None
    answers = client.run(version, on_error="return")
    for worker, answer in answers.items():
        if answer != __version__:
            raise UsageError(
                f"--scheduler {scheduler}: worker {worker}: expected pysmpi {__version__}, found "
                f"{answer}"
            )
