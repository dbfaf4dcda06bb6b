"""Figure 4: the prediction of a transfer between its sequential and its parallel limit."""

from __future__ import annotations

from pysmpi.memory.transfer.pipeline import parallel, sequential
from pysmpi.studies.framework import FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.shared_memory.transfers import BARE, KIB, MIB, XEON, rate, speed

SIZES = (8 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 512 * KIB, 2 * MIB, 4 * MIB)


@study(
    "Figure 4, the model between the sequential and the parallel prediction",
    "Sequential up to a chunk of 32 KiB, parallel from 4 MiB on, a transition between",
)
def run(quick: bool) -> StudyResult:
    """Runs of transfers without overheads of the library, beside both limits."""
    sizes = (32 * KIB, 128 * KIB, 4 * MIB) if quick else SIZES
    low, high, found, library = [], [], [], []
    for size in sizes:
        send = 1e-9 / min(rate(XEON, "LHM", -1, size), rate(XEON, "SHS", 0, size))
        receive = 1e-9 / min(rate(XEON, "LMM", 0, size), rate(XEON, "SHM", -1, size))
        low.append(size / sequential(size, send, receive) / 1e9)
        high.append(size / parallel(size, send, receive) / 1e9)
        found.append(speed(XEON, 1, size, **BARE))
        library.append(speed(XEON, 1, size))
    rows = []
    for size, ours, slow, fast in zip(sizes, found, low, high):
        printed, holds = "between", slow * 0.98 < ours < fast * 1.02
        if size <= 32 * KIB:
            printed, holds = "sequential", abs(ours / slow - 1) < 0.03
        elif size >= 4 * MIB:
            printed, holds = "parallel", abs(ours / fast - 1) < 0.02
        text = f"{ours:.2f} GB/s ({slow:.2f} to {fast:.2f})"
        rows.append(FigureRow(f"{size // KIB} KiB", printed, text, holds=holds))
    curves = [
        PictureCurve("sequential", sizes, low, "k:"),
        PictureCurve("parallel", sizes, high, "k--"),
        PictureCurve("simulated transfer", sizes, found),
        PictureCurve("with the library's overheads", sizes, library),
    ]
    return StudyResult(rows, [Panel("Xeon E5-2650, one socket", "bytes", "GB/s", curves, "x")])
