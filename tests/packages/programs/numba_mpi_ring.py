"""Messages and a reduction in functions that Numba compiles."""

import numba
import numba_mpi
import numpy as np


@numba.njit
def exchange() -> tuple[np.ndarray, np.ndarray]:
    rank, size = numba_mpi.rank(), numba_mpi.size()
    own = np.full(3, float(rank))
    received, total = np.zeros(3), np.zeros(3)
    _, requests = numba_mpi.isend(own, (rank + 1) % size, 11)
    numba_mpi.recv(received, (rank + size - 1) % size, 11)
    numba_mpi.wait(requests)
    numba_mpi.allreduce(own, total, numba_mpi.Operator.SUM)
    return received, total


print(numba_mpi.rank(), *exchange(), flush=True)
