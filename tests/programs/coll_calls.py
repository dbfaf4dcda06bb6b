"""The times of collective calls on each rank.

    coll_calls.py COLLECTIVE:BYTES,BYTES,... ...

Rank 0 prints a line for each call, as `aligned.main` says. BYTES is the size of one block: the
whole vector of bcast, reduce, allreduce, scan and exscan, the data of one rank for another in the
rest.
"""

import numpy as np
from aligned import main
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()


def prepared(name, count):
    """The call of collective `name` with blocks of `count` bytes, as a function."""
    one, into = np.zeros(count, np.int8), np.zeros(count, np.int8)
    summed = {"reduce", "allreduce", "scan", "exscan", "bcast", "barrier"}
    many = 0 if name in summed else count * SIZE
    blocks, into_blocks = np.zeros(many, np.int8), np.zeros(many, np.int8)
    counts, starts = [count] * SIZE, [index * count for index in range(SIZE)]
    at_root = RANK == 0
    byte, small = MPI.BYTE, MPI.SIGNED_CHAR
    spread, gathered = [blocks, count, byte], [into_blocks, count, byte]
    calls = {
        "barrier": lambda: WORLD.Barrier(),
        "bcast": lambda: WORLD.Bcast([one, byte], 0),
        "reduce": lambda: WORLD.Reduce([one, small], [into, small], MPI.SUM, 0),
        "allreduce": lambda: WORLD.Allreduce([one, small], [into, small], MPI.SUM),
        "scan": lambda: WORLD.Scan([one, small], [into, small], MPI.SUM),
        "exscan": lambda: WORLD.Exscan([one, small], [into, small], MPI.SUM),
        "gather": lambda: WORLD.Gather([one, byte], gathered if at_root else None, 0),
        "scatter": lambda: WORLD.Scatter(spread if at_root else None, [into, byte], 0),
        "allgather": lambda: WORLD.Allgather([one, byte], gathered),
        "allgatherv": lambda: WORLD.Allgatherv([one, byte], [into_blocks, counts, starts, byte]),
        "alltoall": lambda: WORLD.Alltoall(spread, gathered),
        "alltoallv": lambda: WORLD.Alltoallv(
            [blocks, counts, starts, byte], [into_blocks, counts, starts, byte]
        ),
        "reduce_scatter": lambda: WORLD.Reduce_scatter(
            [blocks, small], [into, small], counts, MPI.SUM
        ),
    }
    return calls[name]


main(prepared)
