"""Figure 11: broadcasts of 8 KiB."""

from __future__ import annotations

from pysmpi.memory.lines import broadcast
from pysmpi.studies.framework import FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.lines.collectives import THREADS, times
from pysmpi.studies.lines.model import costs, ns

LINES = 128


@study(
    "Figure 11, broadcast of 8 KiB: flat tree, pipeline and MPI",
    "The flat tree is faster than MPI; the pipeline is slower than MPI from 32 threads on",
)
def run(quick: bool) -> StudyResult:
    """The models' times beside a simulated library."""
    threads = THREADS[1:3] if quick else THREADS
    model = costs()
    flat = [ns(broadcast.flat(model, count, LINES)) for count in threads]
    flat_worst = [ns(broadcast.flat(model, count, LINES, True)) for count in threads]
    pipeline = [ns(broadcast.pipelined(model, count, LINES)) for count in threads]
    found = times("bcast", 64 * LINES, threads)
    rows = []
    for index, count in enumerate(threads):
        mpi = found["MPI"][index]
        faster = mpi / flat[index]
        rows.append(
            FigureRow(
                f"{count} threads: MPI / flat tree", "above 1", f"{faster:.2f}", holds=faster > 1
            )
        )
        ratio = pipeline[index] / mpi
        wanted = "above 1" if count > 32 else "below 1"
        rows.append(
            FigureRow(f"{count} threads: pipeline / MPI", wanted, f"{ratio:.2f}",
                holds=(ratio > 1) == (count > 32))
        )  # fmt: skip
    curves = [
        PictureCurve("flat tree, best case", threads, flat),
        PictureCurve("flat tree, worst case", threads, flat_worst, "k:"),
        PictureCurve("pipeline, best case", threads, pipeline),
        PictureCurve("MPI, simulated", threads, found["MPI"]),
        PictureCurve("tuned, simulated", threads, found["tuned"]),
    ]
    return StudyResult(rows, [Panel("Broadcast of 8 KiB", "threads", "ns", curves)])
