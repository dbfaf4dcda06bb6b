"""Figure 9: the time of MPI_Alltoall by the number of ranks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pysmpi.platform.loader import find
from pysmpi.studies.framework import FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.runs import MODELS, Times, grid

KIB, MIB = 1 << 10, 1 << 20
RANKS = (4, 8, 16, 32, 64, 128)


def alltoall(size: int) -> float:
    """Seconds of the second of two Alltoalls of `size` bytes for each rank."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    # The contents do not matter: one block that all ranks get, and one that all come into.
    outgoing, incoming = np.empty((comm.size, size), "b"), np.empty((comm.size, size), "b")
    seconds = 0.0
    for _ in range(2):
        comm.Barrier()
        begin = MPI.Wtime()
        comm.Alltoall(outgoing, incoming)
        seconds = comm.allreduce(MPI.Wtime() - begin, op=MPI.MAX)
    return seconds


# Open MPI, with which the paper measured, sends to rank + i and receives from rank - i in step i.
RING = "ring"
# MPICH exchanges with rank XOR i if the number of ranks is a power of two.
XOR = "pair"
# Bytes a second of both directions of the links between cabinets: in SMPI's file, and as printed.
IN_THE_FILE, PRINTED = "1511.4MBps", "1625MBps"


def times(size: int, ranks: tuple[int, ...], algorithm: str = RING, **options: Any) -> Times:
    """Seconds by model and number of ranks, with a pairwise algorithm."""
    chosen = {"alltoall": algorithm}
    return grid(alltoall, ranks, size, coll=chosen, data="none", fold="64KiB", **options)


def explain(ranks: int, loggps: float) -> list[FigureRow]:
    """Rows of the causes of the factor of LogGPS for 4 MiB; it predicts `loggps` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder) / "graphene.yaml"
        text = find("graphene").read_text(encoding="utf-8")
        assert IN_THE_FILE in text
        printed.write_text(text.replace(IN_THE_FILE, PRINTED), encoding="utf-8")
        wider = times(4 * MIB, (ranks,), platform=str(printed), models=("hybrid",))
    other = times(4 * MIB, (ranks,), XOR, models=("hybrid",))
    return [
        FigureRow(f"... with 13 Gbit/s between cabinets, as printed (file: {IN_THE_FILE})", "",
            f"{wider['hybrid'][ranks] / loggps:.2f}"),
        FigureRow("... with the exchange of MPICH, rank XOR i", "",
            f"{other['hybrid'][ranks] / loggps:.2f}"),
    ]  # fmt: skip


@study(
    "Figure 9, MPI_Alltoall of 100 KiB and 4 MiB on graphene",
    "For 4 MiB hybrid and fluid agree within 10 %, while LogGPS is too fast by up to a factor of "
    "4; for 100 KiB fluid and LogGPS are too fast",
)
def run(quick: bool) -> StudyResult:
    """Both sizes with three models."""
    ranks = RANKS[:3] if quick else RANKS
    large = times(4 * MIB, ranks)
    medium = times(100 * KIB, ranks)
    rows = []
    apart = {count: large["fluid"][count] / large["hybrid"][count] - 1 for count in ranks}
    worst = max(apart, key=lambda count: abs(apart[count]))
    rows.append(
        FigureRow(
            "4 MiB: fluid against hybrid, largest difference",
            "both within 10 % of the cluster",
            f"{100 * apart[worst]:+.1f} % ({worst} ranks)",
            holds=abs(apart[worst]) <= 0.1,
        )
    )
    factors = {count: large["hybrid"][count] / large["loggps"][count] for count in ranks}
    for count in ranks:
        paper = "up to 4" if count == RANKS[-1] else ""
        holds = 3.0 <= factors[count] <= 5.0 if paper else None
        rows.append(
            FigureRow(
                f"4 MiB, {count} ranks: hybrid / LogGPS",
                paper,
                f"{factors[count]:.2f}",
                holds=holds,
            )
        )
    most = ranks[-1]
    if not quick:
        rows += explain(most, large["loggps"][most])
    for model in ("fluid", "loggps"):
        ratio = medium[model][most] / medium["hybrid"][most]
        rows.append(
            FigureRow(
                f"100 KiB, {most} ranks: {model} / hybrid",
                "below 1",
                f"{ratio:.2f}",
                holds=ratio < 1,
            )
        )
    panels = [
        Panel(
            f"Alltoall, {title}", "ranks", "seconds",
            [PictureCurve(model, ranks, list(found[model].values())) for model in MODELS], "xy",
        )
        for title, found in (("100 KiB", medium), ("4 MiB", large))
    ]  # fmt: skip
    return StudyResult(
        rows,
        panels,
        "Up to 32 ranks LogGPS differs by the limiter of a node, which it does not model; beyond "
        "them by the links between the cabinets. The factor on 128 ranks depends on the order of "
        "the exchanges, since each step takes as long as its slowest pair, and on the load of "
        "these links. Fluid has the bandwidth of large messages, and lacks the traffic of "
        "acknowledgements.",
    )
