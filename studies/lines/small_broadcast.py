"""Figure 10: the small broadcast, its model and other implementations."""

from __future__ import annotations

from pysmpi.memory.lines import broadcast
from studies.framework import Curve, Panel, Result, Row, study
from studies.lines.collectives import THREADS, times
from studies.lines.model import costs, ns


@study(
    "Figure 10, small broadcast, its min-max model and an MPI library",
    "The tuned broadcast is between the best and the worst case of the model and faster than MPI",
)
def run(quick: bool) -> Result:
    """Simulated broadcasts of 8 bytes beside the model."""
    threads = THREADS[1:3] if quick else THREADS
    model, rows = costs(), []
    best, worst = [], []
    for count in threads:
        tree = broadcast.best_small(model, count)
        best.append(ns(broadcast.small(model, tree)))
        worst.append(ns(broadcast.small(model, tree, True)))
    found = times("bcast", 8, threads)
    for index, count in enumerate(threads):
        ours = found["tuned"][index]
        inside = best[index] * 0.999 <= ours <= worst[index]
        rows.append(
            Row(f"{count} threads: tuned, ns", f"within {best[index]:.0f} to {worst[index]:.0f}",
                f"{ours:.0f}", holds=inside)
        )  # fmt: skip
        faster = found["MPI"][index] / ours
        rows.append(
            Row(f"{count} threads: MPI / tuned", "up to 4.3", f"{faster:.2f}", holds=faster > 1)
        )
    curves = [
        Curve("best case", threads, best, "k--"),
        Curve("worst case", threads, worst, "k:"),
        *(Curve(name, threads, values) for name, values in found.items()),
    ]
    return Result(rows, [Panel("Broadcast of 8 bytes", "threads", "ns", curves)])
