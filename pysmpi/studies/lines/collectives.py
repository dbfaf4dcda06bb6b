"""Simulated collectives on the Xeon Phi: tuned by lines, and by the choice of an MPI library."""

from __future__ import annotations

from pysmpi.studies.lines.model import PHI
from pysmpi.studies.runs import simulate

THREADS = (4, 15, 30, 45, 60)


def collective(operation: str, size: int) -> float:
    """Seconds of the second of two calls, from the common start to the end of the last rank."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data, result = np.zeros(size, "b"), np.zeros(size, "b")
    seconds = 0.0
    for _ in range(2):
        comm.Barrier()
        # A barrier releases ranks at different times: all begin at the time of the last.
        begin = comm.allreduce(MPI.Wtime(), op=MPI.MAX) + 1e-3
        from time import sleep

        sleep(begin - MPI.Wtime())
        if operation == "bcast":
            comm.Bcast(data)
        elif operation == "reduce":
            comm.Reduce(data, result)
        else:
            comm.Barrier()
        seconds = MPI.Wtime() - begin
    # The rest is not part of the collective.
    return float(comm.allreduce(seconds, op=MPI.MAX))


def times(operation: str, size: int, threads: tuple[int, ...]) -> dict[str, list[float]]:
    """Nanoseconds by the number of threads, of both ways.

    The overhead of a message is that of the slow cores of the Xeon Phi, a microsecond on each side.
    """
    found = {}
    for name, selector in (("tuned", "coherence_tuned"), ("MPI", "impi")):
        found[name] = [
            1e9 * simulate(
                collective, count, operation, size, platform=PHI, selector=selector,
                map_by="core", cfg={"memory/overhead": "1us"},
            )
            for count in threads
        ]  # fmt: skip
    return found
