"""Figure 10: the speed-up of a density-functional application on tibidabo."""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.runs import MODELS, Times, grid

RANKS = (1, 2, 4, 8, 16, 32, 64, 128)
GRID, ORBITALS = 48, 128
COMMUNICATION = 0.2  # of the time on 128 ranks, as the paper says


def iteration(grid: int, orbitals: int, serial: float) -> float:
    """Seconds of an iteration with the collectives of apps/dft.py; `serial` seconds of one rank."""
    from time import sleep

    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    size, points = comm.size, grid**3

    def shares(items: int) -> np.ndarray:
        sizes = np.full(size, items // size)
        sizes[: items % size] += 1
        return sizes

    mine, parts, planes = shares(orbitals), shares(points), shares(grid)
    here = comm.rank
    density, slab = np.empty(points), np.empty(planes[here] * grid**2)
    slabs = planes * grid**2
    lines = planes * planes[here] * grid * 2
    move = np.empty(2 * planes[here] * grid**2)
    packed, shared = np.empty(mine[here] * points), np.empty(orbitals * parts[here])
    overlap, few = np.empty((orbitals, orbitals)), np.empty(2)
    comm.Barrier()
    begin = MPI.Wtime()
    comm.Reduce_scatter(density, slab, slabs.tolist())
    for _ in range(2):  # the transposes of the Poisson solver
        comm.Alltoallv([move, lines, MPI.DOUBLE], [np.empty_like(move), lines, MPI.DOUBLE])
    comm.Allreduce(MPI.IN_PLACE, few)
    comm.Allgatherv(slab, [density, slabs, MPI.DOUBLE])
    sleep(serial * mine[here] / orbitals)
    comm.Allreduce(MPI.IN_PLACE, few[:1])
    there, back = mine[here] * parts, mine * parts[here]
    comm.Alltoallv([packed, there, MPI.DOUBLE], [shared, back, MPI.DOUBLE])
    comm.Allreduce(MPI.IN_PLACE, overlap)
    comm.Alltoallv([shared, back, MPI.DOUBLE], [packed, there, MPI.DOUBLE])
    slowest: float = comm.allreduce(MPI.Wtime() - begin, op=MPI.MAX)
    return slowest


def seconds(ranks: Sequence[int], models: Sequence[str], serial: float) -> Times:
    """Seconds of an iteration on tibidabo, by model and number of ranks."""
    return grid(
        iteration, ranks, GRID, ORBITALS, serial, platform="tibidabo", map_by="node",
        models=models, selector="mpich", data="none", fold="64KiB",
    )  # fmt: skip


@study(
    "Figure 10, scalability of BigDFT on tibidabo",
    "LogGPS predicts a nearly perfect speed-up; hybrid and fluid predict the slowdown by the tree "
    "of switches",
)
def run(quick: bool) -> StudyResult:
    """Speed-ups by the models."""
    ranks = RANKS[:5] if quick else RANKS
    most = ranks[-1]
    messages = seconds([most], ["hybrid"], 0.0)["hybrid"][most]
    serial = messages * most * (1 - COMMUNICATION) / COMMUNICATION
    found = {
        model: [serial / time for time in times.values()]
        for model, times in seconds(ranks, MODELS, serial).items()
    }
    rows = [
        FigureRow(f"time of messages on {most} ranks, hybrid", "around 20 % (on 128)",
            f"{100 * (1 - found['hybrid'][-1] / most):.0f} %", FITTED),
    ]  # fmt: skip
    for model in MODELS:
        efficiency = found[model][-1] / most
        printed = "nearly perfect" if model == "loggps" else "below LogGPS"
        above = efficiency - found["hybrid"][-1] / most
        rows.append(
            FigureRow(f"speed-up on {most} ranks, {model}", printed, f"{found[model][-1]:.1f}",
                holds=efficiency > 0.9 if model == "loggps" else above < 0.1)
        )  # fmt: skip
    curves = [PictureCurve("perfect", ranks, ranks, "k--")]
    curves += [PictureCurve(model, ranks, found[model]) for model in MODELS]
    return StudyResult(
        rows,
        [
            Panel(
                f"apps/dft.py, {ORBITALS} orbitals on {GRID}^3 points",
                "ranks",
                "speed-up",
                curves,
                "xy",
            )
        ],
        "The collectives and sizes are those of apps/dft.py; its computation is chosen so that "
        "messages take the printed part of the time.",
    )
