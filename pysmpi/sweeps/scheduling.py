"""Executing the cases of a sweep: on this computer, or on Dask distributed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from pysmpi.cluster.client import connected, cores, distributed, next_of
from pysmpi.cluster.pool import ServerPool
from pysmpi.cluster.workers import ServerEnded
from pysmpi.errors import UsageError
from pysmpi.sweeps.journal import Journal
from pysmpi.sweeps.study import SweepCase
from pysmpi.sweeps.workers import SERVER, Row, lost_row, run_remotely

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

    `scheduler` is the address of Dask's scheduler; None means this computer, with `workers` cases
    at a time (default: the number of cores). Raises UsageError if Dask is needed and not installed,
    or has no workers.
    """
    left = {case.key: case for case in cases if case.key not in journal.rows}
    done = len(cases) - len(left)
    failed = sum(journal.rows[one.key]["exit_status"] != 0 for one in cases if one.key not in left)
    report(done, len(cases), failed)
    if not left:
        return
    arrivals = (
        _here(left, min(workers or cores(), len(left)))
        if scheduler is None
        else _on_workers(left, scheduler)
    )
    with closing(arrivals):
        for case, row in arrivals:
            if row is None:
                raise UsageError(
                    f"sweep: scheduler {scheduler}: lost after {done} of {len(cases)} cases; the "
                    "same command goes on from there"
                )
            journal.add(case.key, case.columns, row)
            done += 1
            failed += row["exit_status"] != 0
            report(done, len(cases), failed)


# A case that has ended, and its row; None if it was lost with its scheduler.
Arrivals = Generator[tuple[SweepCase, Row | None], None, None]


def _here(cases: Mapping[str, SweepCase], count: int) -> Arrivals:
    """Run cases on this computer, `count` at a time."""
    with ServerPool(SERVER, count) as pool:
        for case in cases.values():
            pool.submit(case, case.request)
        for _ in cases:
            case, answer = pool.next()
            yield case, lost_row(answer) if isinstance(answer, ServerEnded) else answer


def _on_workers(cases: Mapping[str, SweepCase], scheduler: str) -> Arrivals:
    """Run cases on the workers of a scheduler of Dask."""
    with connected("sweep", scheduler) as client:
        by_future = {
            client.submit(run_remotely, case.request, key=f"pysmpi-{key}", pure=False): case
            for key, case in cases.items()
        }
        arriving: Any = distributed("sweep").as_completed(list(by_future))
        while by_future:
            future = next_of(arriving)
            yield by_future.pop(future), _row(future)
            future.release()


def _row(future: Any) -> Row | None:
    """The row of a future that has ended."""
    if future.status in ("cancelled", "lost"):
        return None
    try:
        row: Row = future.result()
    except Exception as error:  # Dask's, of any kind: its worker died, say
        return {"exit_status": 70, "error": f"{type(error).__name__}: {error}".splitlines()[0]}
    return row
