"""A manager asks workers for the minimum of a function, and ends them with a message."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
TASK, RESULT, END = 1, 2, 3


def local_minimum(start, scale):
    points = start + scale * np.random.default_rng(int(1e6 * abs(start))).normal(size=20_000)
    values = points * points + 10.0 * np.cos(3.0 * points)
    return float(points[values.argmin()]), float(values.min())


if comm.rank == 0:
    best, scale, rounds = 1e9, 4.0, 0
    place = 9.0
    while True:
        for worker in range(1, comm.size):
            comm.send((place + 0.1 * worker, scale), worker, TASK)
        better = False
        for _ in range(1, comm.size):
            where, value = comm.recv(tag=RESULT)
            if value < best - 1e-9:
                best, place, better = value, where, True
        scale = scale if better else scale / 2.0
        rounds += 1
        if scale < 1e-3:
            break
    for worker in range(1, comm.size):
        comm.send(None, worker, END)
    print("rounds", rounds, round(best, 3))
else:
    status = MPI.Status()
    while True:
        task = comm.recv(source=0, status=status)
        if status.Get_tag() == END:
            break
        comm.send(local_minimum(*task), 0, RESULT)
