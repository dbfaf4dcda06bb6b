"""Odd-even merge of sorted blocks, until no rank has changed its block."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
block = np.sort(np.random.default_rng(rank).random(5_000) + 0.3 * (size - rank))
other = np.empty_like(block)


def merge(mine, theirs, low):
    both = np.sort(np.concatenate([mine, theirs]))
    return both[: len(mine)] if low else both[len(theirs) :]


rounds, quiet = 0, 0
while quiet < 2:
    partner = rank + 1 if (rank + rounds) % 2 == 0 else rank - 1
    changed = False
    if 0 <= partner < size:
        comm.Sendrecv(block, partner, 0, other, partner, 0)
        new = merge(block, other, rank < partner)
        changed = not np.array_equal(new, block)
        block = new
    quiet = 0 if comm.allreduce(changed, op=MPI.LOR) else quiet + 1
    rounds += 1
    if rounds > 100:
        break
if rank == 0:
    print("rounds", rounds)
