"""Figure 13: small reductions."""

from __future__ import annotations

from pysmpi.memory.lines import reduction as model
from studies.framework import FITTED, Curve, Panel, Result, Row, study
from studies.lines.collectives import THREADS, times
from studies.lines.model import costs, ns

PRINTED = {30: (3, 3, 2), 60: (4, 4, 3)}


@study(
    "Figure 13, small reduction, its min-max model and an MPI library",
    "k = 3, 3, 2 for 30 threads and 4, 4, 3 for 60; the tuned reduction is faster than MPI's",
)
def run(quick: bool) -> Result:
    """Trees, and simulated reductions of 8 bytes beside the model."""
    threads = THREADS[1:3] if quick else THREADS
    line_costs, rows = costs(), []
    for count, tree in PRINTED.items():
        found = model.best_reduction(line_costs, count)
        rows.append(
            Row(f"tree of {count} threads", f"k = {', '.join(map(str, tree))}",
                f"k = {', '.join(map(str, found))}", FITTED, found == tree)
        )  # fmt: skip
    trees = {count: model.best_reduction(line_costs, count) for count in threads}
    best = [ns(model.reduction(line_costs, trees[count])) for count in threads]
    worst = [ns(model.reduction(line_costs, trees[count], True)) for count in threads]
    found = times("reduce", 8, threads)
    for index, count in enumerate(threads):
        ours = found["tuned"][index]
        depth = len(trees[count])
        # Parents set their flags while others are busy: (d - 1) R_I less than equation 17.
        least = best[index] - (depth - 1) * ns(line_costs.R_I)
        rows.append(
            Row(f"{count} threads: tuned, ns", f"within {best[index]:.0f} to {worst[index]:.0f}",
                f"{ours:.0f}", holds=least * 0.999 <= ours <= worst[index])
        )  # fmt: skip
        faster = found["MPI"][index] / ours
        rows.append(
            Row(f"{count} threads: MPI / tuned", "above 1", f"{faster:.2f}", holds=faster > 1)
        )
    curves = [
        Curve("best case", threads, best, "k--"),
        Curve("worst case", threads, worst, "k:"),
        *(Curve(name, threads, values) for name, values in found.items()),
    ]
    return Result(
        rows,
        [Panel("Reduction of 8 bytes", "threads", "ns", curves)],
        "In a simulation parents set their flags while others are busy, so it may take (d - 1) R_I "
        "less than equation 17.",
    )
