"""Figure 2: throughput of accesses that miss, by the state in other caches."""

from __future__ import annotations

from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.shared_memory.transfers import KIB, MIB, XEON, rate

SIZES = tuple(KIB << step for step in range(2, 17))


@study(
    "Figure 2, load and store misses by size and cache state",
    "The state of the buffer changes the throughput of loads by a factor of 2, of stores by 2.5",
)
def run(quick: bool) -> StudyResult:
    """The curves of the machine."""
    rows, panels = [], []
    for title, kinds, factor in (
        ("load", ("LMM", "LMS", "LMI"), 2.0), ("store", ("SMM", "SMI"), 2.5),
    ):  # fmt: skip
        found = {kind: [rate(XEON, kind, 0, size) for size in SIZES] for kind in kinds}
        ratios = [max(values) / min(values) for values in zip(*found.values())]
        rows.append(
            FigureRow(f"{title} misses: largest factor between states", f"{factor}",
                f"{max(ratios):.2f}", FITTED, abs(max(ratios) / factor - 1) < 0.15)
        )  # fmt: skip
        curves = [PictureCurve(kind, SIZES, values) for kind, values in found.items()]
        panels.append(Panel(f"{title} misses, inside a socket", "bytes", "GB/s", curves, "x"))
    assert SIZES[-1] == 64 * MIB
    return StudyResult(
        rows, panels, "The curves of the machine file are assumed between stated figures."
    )
