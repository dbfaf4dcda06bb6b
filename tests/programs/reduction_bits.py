"""Floating-point reductions of all kinds on 2, 3, 4... ranks: the results of every rank, as bytes.

    reduction_bits.py RESULTS.pickle

runs under any MPI; rank 0 writes the results of all ranks. `work` is also called by a test.
"""

import pickle
import sys

import numpy as np
from mpi4py import MPI


def reductions(comm, count):
    """The results of one rank, by operation."""
    rank, size = comm.rank, comm.size
    rng = np.random.default_rng(rank)
    mine = rng.standard_normal(count) * 10.0 ** rng.integers(-8, 8, count)
    found = {}
    for name in ("Allreduce", "Scan", "Exscan"):
        found[name] = np.zeros(count)
        getattr(comm, name)(mine, found[name])
    found["Reduce"] = np.zeros(count)
    comm.Reduce(mine, found["Reduce"], root=size // 2)
    found["Reduce_scatter_block"] = np.zeros(count // size)
    comm.Reduce_scatter_block(mine[: count // size * size], found["Reduce_scatter_block"])
    counts = [count // size + i % 2 for i in range(size)]
    found["Reduce_scatter"] = np.zeros(counts[rank])
    comm.Reduce_scatter(np.resize(mine, sum(counts)), found["Reduce_scatter"], counts)
    return {name: array.tobytes() for name, array in found.items()}


def work():
    """The results of one rank, by number of ranks, of elements and operation."""
    world = MPI.COMM_WORLD
    found = {}
    for size in range(2, world.size + 1):
        comm = world.Split(0 if world.rank < size else MPI.UNDEFINED)
        if comm != MPI.COMM_NULL:
            for count in (16, 1000):
                found[size, count] = reductions(comm, count)
            comm.Free()
    return found


if __name__ == "__main__":
    results = MPI.COMM_WORLD.gather(work())
    if MPI.COMM_WORLD.rank == 0:
        with open(sys.argv[1], "wb") as stream:
            pickle.dump(results, stream)
