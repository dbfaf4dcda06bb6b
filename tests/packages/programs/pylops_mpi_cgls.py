"""A block of a matrix for each rank, solved by conjugate gradients over all of them."""

from __future__ import annotations

import numpy as np
import pylops
import pylops_mpi
from mpi4py import MPI

comm = MPI.COMM_WORLD
generator = np.random.RandomState(42 + comm.rank)
matrix = generator.normal(0, 10, (20, 15))
operator = pylops_mpi.MPIBlockDiag(ops=[pylops.MatrixMult(matrix, dtype=np.float64)])
x = pylops_mpi.DistributedArray(global_shape=comm.size * 15, dtype=np.float64)
x[:] = np.arange(15) + comm.rank
data = operator @ x
start = pylops_mpi.DistributedArray(global_shape=comm.size * 15, dtype=np.float64)
start[:] = 0
found = pylops_mpi.cgls(operator, data, x0=start, niter=60, tol=1e-12)[0]
print(comm.rank, round(float(data.norm()), 6), np.allclose(found.local_array, x.local_array))
print(comm.rank, np.round(found.asarray(), 4)[::7], found.local_shapes)
