"""A heat equation on a ring of strips. Each rank sends its edges to its two neighbours."""

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
rows, columns, steps = 64, 1024, 20
up, down = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size

heat = numpy.zeros((rows + 2, columns))
if comm.rank == 0:
    heat[rows // 2] = 100.0

for step in range(steps):
    comm.Sendrecv(heat[1], up, recvbuf=heat[-1], source=down)
    comm.Sendrecv(heat[-2], down, recvbuf=heat[0], source=up)
    heat[1:-1] += 0.2 * (heat[:-2] + heat[2:] - 2 * heat[1:-1])
    if step % 10 == 9:
        total = comm.reduce(heat[1:-1].sum())
        if comm.rank == 0:
            print(f"step {step + 1}: heat {total:.1f}")
