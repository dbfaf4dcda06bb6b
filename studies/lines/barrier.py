"""Figure 12: barriers."""

from __future__ import annotations

from pysmpi.memory.lines import barrier as model
from studies.framework import FITTED, Curve, Panel, Result, Row, study
from studies.lines.collectives import THREADS, times
from studies.lines.model import costs, ns

PRINTED = {30: (6, 2), 60: (4, 3)}


@study(
    "Figure 12, barriers, their min-max model and an MPI library",
    "m = 6 for 30 threads and 4 for 60; the dissemination barrier is faster than MPI's",
)
def run(quick: bool) -> Result:
    """Parameters, and simulated barriers beside the model."""
    threads = THREADS[1:3] if quick else THREADS
    line_costs, rows = costs(), []
    for count, (m, r) in PRINTED.items():
        found = model.best_partners(line_costs, count, printed=True)
        rows.append(
            Row(f"{count} threads", f"m = {m}, r = {r}", f"m = {found[0]}, r = {found[1]}", FITTED,
                found == (m, r))
        )  # fmt: skip
    best, worst = [], []
    for count in threads:
        m, _ = model.best_partners(line_costs, count)
        best.append(ns(model.barrier(line_costs, count, m)))
        worst.append(ns(model.barrier(line_costs, count, m, True)))
    found = times("barrier", 1, threads)
    for index, count in enumerate(threads):
        ours = found["tuned"][index]
        inside = best[index] * 0.999 <= ours <= worst[index]
        rows.append(
            Row(f"{count} threads: tuned, ns", f"within {best[index]:.0f} to {worst[index]:.0f}",
                f"{ours:.0f}", holds=inside)
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
        [Panel("Barrier", "threads", "ns", curves)],
        "The printed parameters follow from rounds of ceil(log_m n); the simulated barrier has the "
        "ceil(log_(m+1) n) rounds that reach all threads, and their best parameters. With 45 "
        "threads a partner of the last round would be farther than there are threads: it is left "
        "out, which the model does not know.",
    )
