"""Figure 2: misses in a message by the kind of variable; section 4.3: the size of the model."""

from __future__ import annotations

from pysmpi.memory.primitives.solution import Figures
from pysmpi.studies.fame.chains import CURVES, DISTANCES, PLACES, solved
from pysmpi.studies.framework import FigureRow, Panel, PictureCurve, StudyResult, study

# Printed for protocol A: the misses of a message, and the share of each kind in percent.
PRINTED = {
    "A1": (20, {"packet": 20, "pointer": 45, "lock": 35}),
    "A2": (12, {"packet": 32, "pointer": 68}),
}


def share(figures: Figures, kind: str) -> float:
    """The part of the misses on packets, on locks, or on the others: pointers and indices."""
    named = {name: figures.by_kind.get(name, 0.0) for name in ("packet", "lock")}
    misses = named[kind] if kind in named else figures.total - sum(named.values())
    return misses / figures.total


@study(
    "Figure 2, misses in a message by kind of variable",
    "About 20 misses with SR1, of them 20 % on packets, 45 % on pointers, 35 % on locks; about 12 "
    "with SR2, of them 32 % on packets and 68 % on pointers",
)
def run(quick: bool) -> StudyResult:
    """Totals and shares at all distances."""
    rows = []
    for curve, (total, shares) in PRINTED.items():
        figures, _ = solved(curve, 0)
        rows.append(
            FigureRow(f"{curve}: misses", f"about {total}", f"{figures.total:.1f}",
                holds=abs(figures.total - total) < 1)
        )  # fmt: skip
        for kind, percent in shares.items():
            found = 100 * share(figures, kind)
            rows.append(
                FigureRow(f"{curve}: of them on {kind}s", f"{percent} %", f"{found:.0f} %",
                    holds=abs(found - percent) <= 2)
            )  # fmt: skip
    sizes = solved("A1", 0)[1]
    rows.append(FigureRow("states of the model", "1,452,856", f"{sizes.chain_states:,} (SR1, A)"))
    panels = [
        Panel(
            f"Misses in a message, {curve}",
            "distance",
            "misses",
            [
                PictureCurve(
                    kind, DISTANCES, [solved(curve, d)[0].by_kind[kind] for d in DISTANCES]
                )
                for kind in solved(curve, 0)[0].by_kind
            ],
            ticks=PLACES,
        )
        for curve in CURVES
    ]
    return StudyResult(
        rows,
        panels,
        "The division of SR1's other misses between pointers and locks depends on details that the "
        "paper does not give, and the size of the model on beginnings and ends that a chain does "
        "not have; the page on the results of this paper has variants.",
    )
