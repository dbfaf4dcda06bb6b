"""The program c/collective.c in mpi4py: collective.py COLLECTIVE REPEATS BYTES."""

import sys

import folded
import numpy as np
from mpi4py import MPI


def main():
    """One collective operation, again and again; rank 0 prints the time of the slowest rank."""
    op, repeats, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    world = MPI.COMM_WORLD
    size = world.Get_size()
    vector = op in ("bcast", "reduce", "allreduce")
    if vector or op in ("gather", "scatter"):
        mine = n if vector or world.Get_rank() else size * n
        a, b = np.zeros(mine, np.int8), np.zeros(mine, np.int8)
    else:
        # That would not fit: one piece of memory stands for the buffers of all ranks.
        a, b = folded.buffer("a", size * n), folded.buffer("b", size * n)
    kind = MPI.SIGNED_CHAR
    one, into = [a[:n], kind], [b[:n], kind]
    counts, starts = [n] * size, [i * n for i in range(size)]
    spread, gathered = [a, n, kind], [b, n, kind]
    parts, places = [a, counts, starts, kind], [b, counts, starts, kind]
    call = {
        "barrier": lambda: world.Barrier(),
        "bcast": lambda: world.Bcast(one),
        "reduce": lambda: world.Reduce(one, into),
        "allreduce": lambda: world.Allreduce(one, into),
        "gather": lambda: world.Gather(one, gathered),
        "scatter": lambda: world.Scatter(spread, into),
        "allgather": lambda: world.Allgather(one, gathered),
        "allgatherv": lambda: world.Allgatherv(one, places),
        "alltoall": lambda: world.Alltoall(spread, gathered),
        "alltoallv": lambda: world.Alltoallv(parts, places),
        "reduce_scatter": lambda: world.Reduce_scatter([a, kind], into, counts),
    }[op]
    start = MPI.Wtime()
    for _ in range(repeats):
        call()
    taken, slowest = np.array([MPI.Wtime() - start]), np.zeros(1)
    world.Reduce(taken, slowest, op=MPI.MAX, root=0)
    if world.Get_rank() == 0:
        print(f"simulated {slowest[0]:.9g}")


main()
