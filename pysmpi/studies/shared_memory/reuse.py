"""Figure 6: reuse of the sender's and of the receiver's buffer."""

from __future__ import annotations

from pysmpi.studies.framework import FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.shared_memory.transfers import KIB, MIB, XEON, rate, speed

SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB)
CASES = {
    "both": ("reused", "reused"), "the receiver's": ("other", "reused"),
    "the sender's": ("reused", "other"), "none": ("other", "other"),
}  # fmt: skip


@study(
    "Figure 6, impact of buffer reuse on a ping-pong",
    "The state of the receiver's buffer matters much more than that of the sender's",
)
def run(quick: bool) -> StudyResult:
    """Ping-pongs of two cores of a socket."""
    sizes = (MIB,) if quick else SIZES
    found = {name: [speed(XEON, 1, size, *case) for size in sizes] for name, case in CASES.items()}
    rows = []
    for index, size in enumerate(sizes):
        both, receiver, sender, none = (found[name][index] for name in CASES)
        rows.append(
            FigureRow(f"{size // KIB} KiB, reused by both, receiver, sender, none: GB/s", "",
                f"{both:.2f}, {receiver:.2f}, {sender:.2f}, {none:.2f}")
        )  # fmt: skip
        lost_receiver, lost_sender = 1 - sender / both, 1 - receiver / both
        rows.append(
            FigureRow(f"{size // KIB} KiB: lost without the receiver's reuse, without the sender's",
                "much more, less", f"{100 * lost_receiver:.0f} %, {100 * lost_sender:.0f} %",
                holds=lost_receiver > 2 * lost_sender)
        )  # fmt: skip
    large = [KIB << step for step in range(8, 17)]
    sending = max(min(rate(XEON, "LHM", -1, s), rate(XEON, "SHS", 0, s)) for s in large)
    receiving = max(min(rate(XEON, "LMM", 0, s), rate(XEON, "SHM", -1, s)) for s in large)
    rows += [
        FigureRow(
            "receiver's side, at most", "hardly above 15 GB/s", f"{receiving:.1f} GB/s", "fitted"
        ),
        FigureRow("sender's side, at most", "close to 20 GB/s", f"{sending:.1f} GB/s", "fitted"),
    ]
    curves = [PictureCurve(name, sizes, values) for name, values in found.items()]
    return StudyResult(rows, [Panel("Ping-pong, buffers reused by", "bytes", "GB/s", curves, "x")])
