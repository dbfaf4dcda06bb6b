"""Figure 13: stores to shared, owned and modified lines on the Opteron."""

from __future__ import annotations

from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.shared_memory.transfers import KIB, OPTERON, rate

SIZES = tuple(16 * KIB << step for step in range(9))


@study(
    "Figure 13, store hits by state on the Opteron",
    "A store to the Shared copy is 3 times as fast as to the Owned one inside a socket, 4 times "
    "between sockets",
)
def run(quick: bool) -> StudyResult:
    """The curves of the machine."""
    rows, panels = [], []
    for title, distance, printed in (("inside a shared L3", 1, 3.0), ("between sockets", 3, 4.0)):
        shared = [rate(OPTERON, "SHS", distance, size) for size in SIZES]
        owned = [rate(OPTERON, "SHO", distance, size) for size in SIZES]
        modified = [rate(OPTERON, "SHM", -1, size) for size in SIZES]
        ratio = max(a / b for a, b in zip(shared, owned))
        rows.append(
            FigureRow(f"{title}: shared / owned, largest", f"{printed:.0f}", f"{ratio:.2f}", FITTED,
                abs(ratio / printed - 1) < 0.2)
        )  # fmt: skip
        curves = [
            PictureCurve("shared", SIZES, shared), PictureCurve("owned", SIZES, owned),
            PictureCurve("modified", SIZES, modified),
        ]  # fmt: skip
        panels.append(Panel(title, "bytes", "GB/s", curves, "x"))
    return StudyResult(rows, panels)
