"""Simulated annealing on each rank; replicas are exchanged where the energies accept it."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
rng = np.random.default_rng(rank)
state = rng.normal(0.0, 3.0, 2_000)
temperature = 0.5 * 2.0**rank
shared = np.random.default_rng(5)


def energy(x):
    return float((x * x - np.cos(3.0 * x)).sum())


now = energy(state)
rejected, swaps, step = 0, 0, 0
while rejected < 30 and step < 500:
    trial = state + rng.normal(0.0, 0.02, state.size)
    cost = energy(trial)
    accepted = cost < now or rng.random() < np.exp((now - cost) / temperature)
    if accepted:
        state, now = trial, cost
    partner = rank ^ 1
    if step % 5 == 0 and partner < size:
        theirs = comm.sendrecv((now, temperature), partner, source=partner)
        chance = np.exp(min(0.0, (now - theirs[0]) * (1.0 / temperature - 1.0 / theirs[1])))
        if shared.random() < chance:
            other = np.empty_like(state)
            comm.Sendrecv(state, partner, 1, other, partner, 1)
            state, now = other, theirs[0]
            swaps += 1
    moved = comm.allreduce(int(accepted))
    rejected = rejected + 1 if moved <= size // 2 else 0
    step += 1
if rank == 0:
    print("steps", step, swaps)
