"""One-to-many and all-to-one transfers of large messages, inside a cabinet and across."""

from __future__ import annotations

from pysmpi.studies.framework import FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.runs import MODELS, grid

SIZE = 4 << 20
PEERS = (1, 2, 4, 8, 16, 32, 64, 128)
LINK = 125e6 * 0.929868  # bytes a second of large messages on a link, by the calibration


def fan(outward: bool) -> float:
    """Seconds until rank 0 has sent a message to each other rank, or received one from each."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = np.zeros(SIZE, "b")
    comm.Barrier()
    begin = MPI.Wtime()
    if comm.rank == 0:
        call = comm.Isend if outward else comm.Irecv
        buffers = [data if outward else np.empty_like(data) for _ in range(comm.size - 1)]
        MPI.Request.Waitall([call(buffer, peer) for peer, buffer in enumerate(buffers, 1)])
    elif outward:
        comm.Recv(data, 0)
    else:
        comm.Send(data, 0)
    slowest: float = comm.allreduce(MPI.Wtime() - begin, op=MPI.MAX)
    return slowest


@study(
    "Section IV-B, one-to-many and all-to-one contention",
    "Concurrent messages of one rank share its link: n of them take n times as long as one",
)
def run(quick: bool) -> StudyResult:
    """Both directions with three models."""
    peers = PEERS[:5] if quick else PEERS
    rows, panels = [], []
    for title, outward in (("one-to-many", True), ("all-to-one", False)):
        times = grid(fan, [n + 1 for n in peers], outward, data="none", fold="64KiB")
        found = {model: list(each.values()) for model, each in times.items()}
        for model in MODELS:
            most = peers[-1]
            ratio = found[model][-1] / found[model][0] / most
            rows.append(
                FigureRow(f"{title}, {model}: time of {most} / (time of 1 times {most})", "",
                    f"{ratio:.3f}", holds=abs(ratio - 1) < 0.1)
            )  # fmt: skip
        bound = [n * SIZE / LINK for n in peers]
        curves = [PictureCurve(model, peers, found[model]) for model in MODELS]
        curves.append(PictureCurve("n S / B", peers, bound, "k--"))
        panels.append(Panel(title, "peers", "seconds", curves, "xy"))
    return StudyResult(
        rows, panels, "The paper prints no figure of these; the bound is the link's."
    )
