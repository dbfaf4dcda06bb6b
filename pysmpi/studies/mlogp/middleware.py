"""Figure 2: costs of the middleware inside a node and between nodes."""

from __future__ import annotations

from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.mlogp.costs import label, rows, summary
from pysmpi.studies.mlogp.costs import table as machine_costs


@study(
    "Figure 2, middleware costs of messages inside a node and between nodes",
    "Overhead inside a node is 49.2 % less on average, latency up to 87.9 % less, both together "
    "41 % less on average",
)
def run(quick: bool) -> StudyResult:
    """Costs by size and stride, and the stated averages."""
    found, totals = rows(quick), summary(quick)
    machine = machine_costs(quick)
    table = [
        FigureRow("overhead inside less, mean", "49.2 %", f"{machine['overhead']:.1f} %", FITTED,
            None if quick else abs(machine["overhead"] - 49.2) < 1,
            f"{totals['overhead inside less, mean']:.1f} %"),
        FigureRow("latency inside less, largest", "87.9 %", f"{machine['latency']:.1f} %", FITTED,
            None if quick else abs(machine["latency"] - 87.9) < 1,
            f"{totals['latency inside less, largest']:.1f} %"),
        FigureRow("latency inside less, smallest", "small",
            f"{totals['latency inside less, smallest']:.1f} %"),
        FigureRow("middleware inside less, mean", "41 %", f"{machine['middleware']:.1f} %", FITTED,
            None if quick else abs(machine["middleware"] - 41) < 2,
            f"{totals['middleware inside less, mean']:.1f} %"),
    ]  # fmt: skip
    for row in found:
        table.append(
            FigureRow(f"{label(row)}: o, l; o', l' in us", "",
                ", ".join(f"{row[key] * 1e6:.1f}" for key in ("o", "l", "o'", "l'")))
        )  # fmt: skip
    places = range(len(found))
    curves = [
        PictureCurve(name, places, [row[key] * 1e6 for row in found])
        for key, name in (("o", "o inside"), ("l", "l inside"), ("o'", "o' between"),
                          ("l'", "l' between"))
    ]  # fmt: skip
    names = [label(row) for row in found]
    return StudyResult(
        table,
        [Panel("Middleware costs", "size and stride", "us", curves, "y", names)],
        "Fitted: under 2log_{2,3}P, with the latencies f(s, d) of the machine's file, which are "
        "chosen so that the three averages go together. Predicted: under the machine's own model, "
        "which has one cost for each packed piece, so latencies inside a node are less at every "
        "point.",
    )
