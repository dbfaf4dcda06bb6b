"""Figure 12: barriers."""

from __future__ import annotations

from pysmpi.memory.lines import barrier as model
from pysmpi.studies.framework import FITTED, FigureRow, StudyResult, study
from pysmpi.studies.lines.min_max import beside_the_model
from pysmpi.studies.lines.model import costs

PRINTED = {30: (6, 2), 60: (4, 3)}


@study(
    "Figure 12, barriers, their min-max model and an MPI library",
    "m = 6 for 30 threads and 4 for 60; the dissemination barrier is faster than MPI's",
)
def run(quick: bool) -> StudyResult:
    """Parameters, and simulated barriers beside the model."""
    line_costs, rows = costs(), []
    for count, (m, r) in PRINTED.items():
        found = model.best_partners(line_costs, count, printed=True)
        rows.append(
            FigureRow(
                f"{count} threads",
                f"m = {m}, r = {r}",
                f"m = {found[0]}, r = {found[1]}",
                FITTED,
                found == (m, r),
            )
        )

    def seconds(count: int, worst: bool = False) -> float:
        m, _ = model.best_partners(line_costs, count)
        return model.barrier(line_costs, count, m, worst)

    simulated, panel = beside_the_model(
        "barrier", 1, "Barrier", (seconds, lambda count: seconds(count, True)), quick
    )
    return StudyResult(
        [*rows, *simulated],
        [panel],
        "The printed parameters follow from rounds of ceil(log_m n); the simulated barrier has the "
        "ceil(log_(m+1) n) rounds that reach all threads, and their best parameters. With 45 "
        "threads a partner of the last round would be farther than there are threads: it is left "
        "out, unlike in the model.",
    )
