"""Figures 10, 12 and 13: a collective beside its min-max model and an MPI library."""

from __future__ import annotations

from collections.abc import Callable

from pysmpi.studies.framework import FigureRow, Panel, PictureCurve
from pysmpi.studies.lines.collectives import THREADS, times
from pysmpi.studies.lines.model import ns

Seconds = Callable[[int], float]  # by the number of threads


def beside_the_model(
    operation: str,
    size: int,
    title: str,
    model: tuple[Seconds, Seconds],
    quick: bool,
    faster: str = "above 1",
    earlier: Seconds = lambda count: 0.0,
) -> tuple[list[FigureRow], Panel]:
    """Rows and picture of simulations of `size` bytes on several numbers of threads.

    `model` has the best and the worst case. A simulation may take `earlier` seconds less than the
    best one. `faster` is the paper's ratio of the time of MPI to the tuned one.
    """
    threads = THREADS[1:3] if quick else THREADS
    best, worst = ([ns(case(count)) for count in threads] for case in model)
    found = times(operation, size, threads)
    rows = []
    for count, ours, mpi, low, high in zip(threads, found["tuned"], found["MPI"], best, worst):
        least = low - ns(earlier(count))
        rows += [
            FigureRow(
                f"{count} threads: tuned, ns",
                f"within {low:.0f} to {high:.0f}"
                + (f", or {least:.0f} without (d - 1) R_I" if least < low else ""),
                f"{ours:.0f}",
                holds=least * 0.999 <= ours <= high,
            ),
            FigureRow(
                f"{count} threads: MPI / tuned", faster, f"{mpi / ours:.2f}", holds=mpi > ours
            ),
        ]
    curves = [
        PictureCurve("best case", threads, best, "k--"),
        PictureCurve("worst case", threads, worst, "k:"),
        *(PictureCurve(name, threads, values) for name, values in found.items()),
    ]
    return rows, Panel(title, "threads", "ns", curves)
