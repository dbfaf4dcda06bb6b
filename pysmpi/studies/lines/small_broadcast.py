"""Figure 10: the small broadcast, its model and other implementations."""

from __future__ import annotations

from pysmpi.memory.lines import broadcast
from pysmpi.studies.framework import StudyResult, study
from pysmpi.studies.lines.min_max import beside_the_model
from pysmpi.studies.lines.model import costs


@study(
    "Figure 10, small broadcast, its min-max model and an MPI library",
    "The tuned broadcast is between the best and the worst case of the model and faster than MPI",
)
def run(quick: bool) -> StudyResult:
    """Simulated broadcasts of 8 bytes beside the model."""
    line_costs = costs()

    def seconds(count: int, worst: bool = False) -> float:
        return broadcast.small(line_costs, broadcast.best_small(line_costs, count), worst)

    rows, panel = beside_the_model(
        "bcast", 8, "Broadcast of 8 bytes", (seconds, lambda count: seconds(count, True)), quick,
        "up to 4.3",
    )  # fmt: skip
    return StudyResult(rows, [panel])
