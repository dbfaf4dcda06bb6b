"""Executing the cases of a sweep on Dask distributed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pysmpi.cluster.client import connected, cores, distributed, local
from pysmpi.errors import UsageError
from pysmpi.sweeps.journal import Journal
from pysmpi.sweeps.study import SweepCase
from pysmpi.sweeps.workers import run_remotely

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
    cluster = (
        local("sweep", min(workers or cores(), len(left)))
        if scheduler is None
        else connected("sweep", scheduler)
    )
    with cluster as client:
        by_future = {
            client.submit(run_remotely, case.request, key=f"pysmpi-{key}", pure=False): case
            for key, case in left.items()
        }
        arriving: Any = distributed("sweep").as_completed(list(by_future))
        for future in arriving:
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
