"""Particles move between ranks: the counts of an Alltoallv are those of the data."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rng = np.random.default_rng(comm.rank)
place = comm.rank + rng.random(20_000)
speed = rng.normal(0.0, 0.05, place.size)
for _ in range(40):
    place = (place + speed) % comm.size
    speed += 0.02 * np.sin(2.0 * np.pi * place / comm.size)
    owner = np.minimum(place.astype(int), comm.size - 1)
    order = np.argsort(owner, kind="stable")
    sent = np.bincount(owner, minlength=comm.size)
    received = np.empty_like(sent)
    comm.Alltoall(sent, received)
    both = np.column_stack([place, speed])[order]
    new = np.empty((received.sum(), 2))
    comm.Alltoallv(
        [both, 2 * sent, MPI.DOUBLE],
        [new, 2 * received, MPI.DOUBLE],
    )
    place, speed = new[:, 0].copy(), new[:, 1].copy()
most = comm.reduce(len(place), op=MPI.MAX)
if comm.rank == 0:
    print("most", most)
