"""Figure 1: the latency of a message by distance, primitive and protocol."""

from __future__ import annotations

from pysmpi.studies.fame.chains import CURVES, DISTANCES, PLACES, PRIMITIVES, PROTOCOLS, solved
from pysmpi.studies.framework import FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.runs import one_way

PARTNERS = (1, 4, 8)  # cores of novascale at the three distances from core 0


def settings(curve: str) -> dict[str, str]:
    """The settings of a run for protocol and primitive, such as "A1"."""
    return {"protocol": PROTOCOLS[curve[0]], "primitive": PRIMITIVES[curve[1]]}


@study(
    "Figure 1, latency of a message",
    "Latency rises with distance, protocol A is faster than B, SR2 is faster than SR1",
)
def run(quick: bool) -> StudyResult:
    """All four curves."""
    times = {c: [solved(c, distance)[0].latency * 1e6 for distance in DISTANCES] for c in CURVES}
    rows = [
        FigureRow(f"{curve}, {place}: us", "", f"{value:.2f}")
        for curve in CURVES
        for place, value in zip(PLACES, times[curve])
    ]
    rising = all(list(values) == sorted(values) for values in times.values())
    rows.append(FigureRow("latency rises with distance", "yes", str(rising), holds=rising))
    for primitive in "12":
        better = [a < b for a, b in zip(times[f"A{primitive}"], times[f"B{primitive}"])]
        text = f"at {sum(better)} of 3 distances"
        rows.append(FigureRow(f"A faster than B, SR{primitive}", "yes", text, holds=all(better)))
    for name in "AB":
        better = [two < one for one, two in zip(times[f"{name}1"], times[f"{name}2"])]
        text = f"at {sum(better)} of 3 distances"
        rows.append(FigureRow(f"SR2 faster than SR1, {name}", "yes", text, holds=all(better)))
    runs = {
        curve: [
            1e6 * one_way("novascale", "fame", (8,), partner, **settings(curve))[0]
            for partner in PARTNERS
        ]
        for curve in CURVES
    }
    for curve, values in runs.items():
        text = ", ".join(f"{value:.2f}" for value in values)
        near = max(abs(run / chain - 1) for run, chain in zip(values, times[curve]))
        rows.append(
            FigureRow(f"{curve}, a run on novascale: us", "as the chain", text, holds=near < 0.05)
        )
    curves = [PictureCurve(curve, DISTANCES, times[curve]) for curve in CURVES]
    return StudyResult(
        rows,
        [Panel("Latency of a message", "distance", "us", curves, ticks=PLACES)],
        "The paper prints neither its latencies of transfers nor the values of its figure.",
    )
