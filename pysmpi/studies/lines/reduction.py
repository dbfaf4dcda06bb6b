"""Figure 13: small reductions."""

from __future__ import annotations

from pysmpi.memory.lines import reduction as model
from pysmpi.studies.framework import FITTED, FigureRow, StudyResult, study
from pysmpi.studies.lines.min_max import beside_the_model
from pysmpi.studies.lines.model import costs

PRINTED = {30: (3, 3, 2), 60: (4, 4, 3)}


@study(
    "Figure 13, small reduction, its min-max model and an MPI library",
    "k = 3, 3, 2 for 30 threads and 4, 4, 3 for 60; the tuned reduction is faster than MPI's",
)
def run(quick: bool) -> StudyResult:
    """Trees, and simulated reductions of 8 bytes beside the model."""
    line_costs, rows = costs(), []
    for count, tree in PRINTED.items():
        found = model.best_reduction(line_costs, count)
        rows.append(
            FigureRow(f"tree of {count} threads", f"k = {', '.join(map(str, tree))}",
                f"k = {', '.join(map(str, found))}", FITTED, found == tree)
        )  # fmt: skip

    def seconds(count: int, worst: bool = False) -> float:
        return model.reduction(line_costs, model.best_reduction(line_costs, count), worst)

    def earlier(count: int) -> float:
        """Parents set their flags while others are busy: (d - 1) R_I less than equation 17."""
        return (len(model.best_reduction(line_costs, count)) - 1) * line_costs.R_I

    simulated, panel = beside_the_model(
        "reduce", 8, "Reduction of 8 bytes", (seconds, lambda count: seconds(count, True)), quick,
        earlier=earlier,
    )  # fmt: skip
    return StudyResult(
        [*rows, *simulated],
        [panel],
        variant="in a simulation parents set their flags while others are busy, so the lower limit "
        "is that of equation 17 without (d - 1) R_I, for a tree of d levels.",
    )
