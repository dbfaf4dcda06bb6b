"""Ranks take tasks from a counter in a window until enough solutions are there."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
window = MPI.Win.Allocate(16 if comm.rank == 0 else 0, 8, comm=comm)
if comm.rank == 0:
    np.frombuffer(window.tomemory(), dtype="i8")[:] = 0
comm.Barrier()
one, before = np.ones(1, "i8"), np.zeros(1, "i8")
hits = np.zeros(1, "i8")


def add(value, place):
    window.Lock(0)
    window.Fetch_and_op(value, before, 0, place)
    window.Unlock(0)
    return int(before[0])


def solves(task):
    values = np.random.default_rng(task).random(5_000)
    return np.sort(values)[2_500] > 0.503


tasks = 0
while True:
    task = add(one, 0)
    if task > 2_000:
        break
    tasks += 1
    if solves(task):
        hits[0] += 1
        if add(one, 1) >= 40:
            break
total = comm.reduce(tasks)
if comm.rank == 0:
    print("tasks", total)
window.Free()
