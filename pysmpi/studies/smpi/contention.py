"""Section IV-B: concurrent transfers inside a cabinet, in one and in both directions."""

from __future__ import annotations

from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.runs import MODELS, simulate

SIZE = 4 << 20
PAIRS = (1, 2, 4, 8, 12, 16, 19)


def transfers(pairs: int, both: bool) -> float:
    """Bytes a second that a rank sends, and receives if `both`, while `pairs` pairs do so."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    peer = comm.rank + pairs if comm.rank < pairs else comm.rank - pairs
    outgoing, incoming = np.zeros(SIZE, "b"), np.zeros(SIZE, "b")
    comm.Barrier()
    begin = MPI.Wtime()
    if both:
        comm.Sendrecv(outgoing, peer, 0, incoming, peer, 0)
    elif comm.rank < pairs:
        comm.Send(outgoing, peer)
    else:
        comm.Recv(incoming, peer)
    seconds: float = comm.allreduce(MPI.Wtime() - begin, op=MPI.MAX)
    return (2 if both else 1) * SIZE / seconds


@study(
    "Section IV-B, 1 to 19 concurrent transfers of 4 MiB inside a cabinet",
    "Transfers in one direction do not disturb each other; in both directions Bs + Br = 1.5 B",
)
def run(quick: bool) -> StudyResult:
    """Both experiments."""
    pairs = (1, 19) if quick else PAIRS
    rows, one, both = [], {}, {}
    for model in MODELS:
        one[model] = [simulate(transfers, 2 * n, n, False, model=model) for n in pairs]
        both[model] = [simulate(transfers, 2 * n, n, True, model=model) for n in pairs]
    steady = one["hybrid"][-1] / one["hybrid"][0]
    rows.append(
        FigureRow("hybrid, one direction: B of 19 pairs / B of 1", "1.0", f"{steady:.3f}",
            holds=abs(steady - 1) < 0.02)
    )  # fmt: skip
    printed = {"hybrid": "about 1.5", "loggps": "", "fluid": "2 for a multi-port model"}
    for model in MODELS:
        for index, count in ((0, 1), (-1, 19)):
            ratio = both[model][index] / one[model][index]
            rows.append(
                FigureRow(f"{model}, both directions, {count} pairs: (Bs + Br) / B", printed[model],
                    f"{ratio:.2f}", FITTED if model == "hybrid" else "predicted",
                    abs(ratio - 1.5) < 0.08 if model == "hybrid" else None)
            )  # fmt: skip
    panels = [
        Panel(title, "pairs", "MB/s", [
            PictureCurve(model, pairs, [value / 1e6 for value in found[model]]) for model in MODELS
        ])
        for title, found in (("One direction, B", one), ("Both directions, Bs + Br", both))
    ]  # fmt: skip
    return StudyResult(
        rows,
        panels,
        "The limiter of 1.5 B is a parameter of the machine, and holds with fluid as well. The "
        "paper calls LogP's models single-port; LogGPS here has a gap for each direction.",
    )
