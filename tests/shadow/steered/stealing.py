"""A pool of tasks whose lengths are in the data: a worker that is done gets the next one."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
tasks = 60


def lengths():
    return np.random.default_rng(5).gamma(2.0, 6.0, 10_000)


def work(values, count):
    for _ in range(count):
        values = np.sqrt(values * values + 1.0)
    return values


if comm.rank == 0:
    counts = lengths()[:tasks].astype(int) + 1
    given, ended = 0, 0
    while ended < comm.size - 1:
        status = MPI.Status()
        comm.recv(source=MPI.ANY_SOURCE, status=status)
        if given < tasks:
            comm.send(int(counts[given]), status.source)
            given += 1
        else:
            comm.send(None, status.source)
            ended += 1
else:
    done = 0
    values = np.ones(30_000)
    while True:
        comm.send(done, 0)
        count = comm.recv(source=0)
        if count is None:
            break
        work(values, count)
        done += 1
