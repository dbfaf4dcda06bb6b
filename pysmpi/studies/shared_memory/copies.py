"""Figure 5: the receiver's copy, and the overlap of its load and store."""

from __future__ import annotations

from pysmpi.memory.transfer.pipeline import copy_seconds
from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.shared_memory.transfers import KIB, MIB, XEON, described, rate

SIZES = tuple(4 * KIB << step for step in range(13))


@study(
    "Figure 5, prediction of the receiver's copy",
    "Up to 128 KiB a copy runs at 80 % of the parallel rate, above at 1.1 times the sequential one",
)
def run(quick: bool) -> StudyResult:
    """The copy with the machine's overlap, beside both predictions."""
    node = described(XEON)
    together, alone, found = [], [], []
    for size in SIZES:
        loads, stores = rate(XEON, "LMM", 0, size), rate(XEON, "SHM", -1, size)
        together.append(min(loads, stores))
        alone.append(1.0 / (1.0 / loads + 1.0 / stores))
        found.append(1.0 / copy_seconds(loads, stores, node.overlap.at(size)))
    rows = []
    for size in (32 * KIB, 128 * KIB, 1 * MIB, 16 * MIB):
        at = SIZES.index(size)
        if size <= 128 * KIB:
            ratio, name, printed = found[at] / together[at], "parallel", 0.8
        else:
            ratio, name, printed = found[at] / alone[at], "sequential", 1.1
        rows.append(
            FigureRow(
                f"{size // KIB} KiB: copy / {name} rate",
                f"{printed}",
                f"{ratio:.2f}",
                FITTED,
                abs(ratio / printed - 1) < 0.03,
            )
        )
    curves = [
        PictureCurve("parallel", SIZES, together, "k--"),
        PictureCurve("sequential", SIZES, alone, "k:"),
        PictureCurve("with overlap", SIZES, found),
    ]
    return StudyResult(
        rows,
        [Panel("Copy of the receiver, Xeon E5-2650", "bytes", "GB/s", curves, "x")],
    )
