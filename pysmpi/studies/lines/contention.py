"""Figure 6: several threads copy the same line."""

from __future__ import annotations

import numpy as np

from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.lines.model import costs, ns

THREADS = tuple(range(1, 61))


@study(
    "Figure 6, contention in the access to the same line",
    "The time grows linearly with the number of threads, from R_L + R_R for one",
)
def run(quick: bool) -> StudyResult:
    """The line of equation 3, and its fit."""
    model = costs()
    times = [model.contended(count) for count in THREADS]
    slope, base = (float(number) for number in np.polyfit(THREADS, times, 1))
    one = ns(times[0])
    rows = [
        FigureRow(
            "one thread: ns", "R_L + R_R = 244.4", f"{one:.1f}", holds=abs(one - 244.4) < 0.05
        ),
        FigureRow("slope c: ns a thread", "in the figure only", f"{ns(slope):.1f}", FITTED),
        FigureRow(
            "c + b: ns",
            "244.4",
            f"{ns(slope + base):.1f}",
            holds=abs(ns(slope + base) - 244.4) < 0.05,
        ),
    ]
    return StudyResult(
        rows,
        [
            Panel(
                "Copies of one line",
                "threads",
                "ns",
                [PictureCurve("E", THREADS, [ns(t) for t in times], "-")],
            )
        ],
        "The slope is assumed: the printed trees follow from any between 47.6 and 115.1 ns.",
    )
