"""Figure 4: the time of MPI_Send and MPI_Recv by the size of a message."""

from __future__ import annotations

from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.runs import simulate

SIZES = (1, 64, 512, 1420, 1421, 4096, 16384, 32768, 32769, 50000, 65535, 65536, 131072,
         327679, 327680, 1 << 20, 1 << 23)  # fmt: skip
QUICK = (64, 65535, 65536, 327679, 327680)
PAUSE = 0.5  # seconds that one side is earlier than the other


def ping(sizes: tuple[int, ...]) -> list[tuple[float, float, float, float]]:
    """For each size, seconds: of a send and of a receive whose peer is ready, of a send whose
    receiver comes `PAUSE` later, and of half a ping-pong.
    """
    from time import sleep

    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = []
    for size in sizes:
        data = np.zeros(size, "b")
        times = []
        for early in ("receiver", "sender"):
            comm.Barrier()
            begin = MPI.Wtime()
            if comm.rank == 0:
                if early == "receiver":
                    sleep(PAUSE)
                    begin = MPI.Wtime()
                comm.Send(data, 1)
                times.append(MPI.Wtime() - begin)
            else:
                if early == "sender":
                    sleep(PAUSE)
                    begin = MPI.Wtime()
                comm.Recv(data, 0)
                times.append(MPI.Wtime() - begin)
        comm.Barrier()
        begin = MPI.Wtime()
        if comm.rank == 0:
            comm.Send(data, 1)
            comm.Recv(data, 1)
        else:
            comm.Recv(data, 0)
            comm.Send(data, 0)
        half = (MPI.Wtime() - begin) / 2
        receive = comm.bcast(times[1], 1)
        found.append((times[0], receive, times[1], half))
    return found


@study(
    "Figure 4, duration of MPI_Send and MPI_Recv, and the modes of section IV-A",
    "Four modes: a send returns at once below 327,680 bytes and waits for its receiver above; a "
    "transfer begins without the receiver below 65,536 bytes; costs jump after 1,420 and 32,768",
)
def run(quick: bool) -> StudyResult:
    """All sizes, and the limits that the runs show."""
    sizes = QUICK if quick else SIZES
    found = dict(zip(sizes, simulate(ping, 2, sizes)))
    rows = []

    def limit(what: str, printed: int, passed: bool) -> None:
        rows.append(
            FigureRow(what, f"{printed:,}", "as printed" if passed else "elsewhere", FITTED, passed)
        )

    limit("bytes from which a send waits for its receiver", 327680,
          found[327679][2] < PAUSE / 2 < found[327680][2])  # fmt: skip
    # A message that came before its receive takes no more than the overhead; later ones transfer.
    transfer = 65536 / 125e6
    limit("bytes from which a transfer waits for its receive", 65536,
          found[65535][1] < transfer / 2 < found[65536][1])  # fmt: skip
    if not quick:
        for size in (1420, 32768):
            jump = found[size + 1][1] / found[size][1]
            what = f"bytes up to which a receive is cheaper (then {100 * (jump - 1):+.0f} %)"
            limit(what, size, abs(jump - 1) > 0.01)
        ratio = found[1 << 23][1] / found[1 << 23][0]
        rows.append(
            FigureRow("8 MiB: time of a receive / time of a send", "very close", f"{ratio:.3f}",
                holds=abs(ratio - 1) < 0.05)
        )  # fmt: skip
    names = ("MPI_Send, receiver ready", "MPI_Recv, sender ready")
    curves = [
        PictureCurve(name, sizes, [found[size][index] for size in sizes])
        for index, name in enumerate(names)
    ]
    halves = [PictureCurve("half a ping-pong", sizes, [found[size][3] for size in sizes])]
    return StudyResult(
        rows,
        [Panel("Duration of a call", "bytes", "seconds", curves, "xy"),
         Panel("Ping-pong", "bytes", "seconds", halves, "xy")],
        "The limits are parameters of the calibrated machine; the study shows that runs have them.",
    )  # fmt: skip
