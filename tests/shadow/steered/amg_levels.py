"""Arrays shrink from pass to pass, as in an LU factorisation or a multigrid."""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
n = int(sys.argv[1]) if len(sys.argv) > 1 else 600
a = np.random.default_rng(comm.rank).random((n, n))


def update(block, column, row):
    block -= np.outer(column, row)


for k in range(0, n - 8, 8):
    update(a[k + 1 :, k + 1 :], a[k + 1 :, k].copy(), a[k, k + 1 :].copy())
    comm.Allreduce(MPI.IN_PLACE, np.zeros(1))
