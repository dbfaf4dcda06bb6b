"""LU with pivots: rows are exchanged between ranks only where the pivot is on another rank."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
n = 120
mine = list(range(rank, n, size))
rows = np.random.default_rng(rank).random((len(mine), n))
for local, line in enumerate(mine):
    if line % 3:
        rows[local, line] += n
row, exchanges = np.empty(n), 0
for k in range(n):
    below = [local for local, line in enumerate(mine) if line >= k]
    best = max(below, key=lambda local: abs(rows[local, k]), default=None)
    value = -1.0 if best is None else abs(rows[best, k])
    _, winner = comm.allreduce((value, rank), op=MPI.MAXLOC)
    owner = k % size
    if winner != owner:
        if rank == winner:
            comm.Sendrecv_replace(rows[best], owner, 0, owner, 0)
        elif rank == owner:
            comm.Sendrecv_replace(rows[k // size], winner, 0, winner, 0)
        exchanges += 1
    elif rank == owner and best != k // size:
        rows[[best, k // size]] = rows[[k // size, best]]
    if rank == owner:
        row[:] = rows[k // size]
    comm.Bcast(row, owner)
    for local in below:
        if mine[local] > k:
            rows[local, k:] -= rows[local, k] / row[k] * row[k:]
if rank == 0:
    print("exchanges", exchanges)
