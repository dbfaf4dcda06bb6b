"""Sample sort: the counts of the Alltoallv depend on the data; checks that the result is sorted."""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
n = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 6
bad = 0


def local_sort(keys):
    return np.sort(keys)


def split(keys, pivots):
    return np.diff(np.concatenate([[0], np.searchsorted(keys, pivots), [len(keys)]])).astype(
        np.int32
    )


t = MPI.Wtime()
moved = 0
for r in range(rounds):
    keys = np.random.default_rng(100 * r + comm.rank).gamma(1.0 + r, size=n)
    keys = local_sort(keys)
    picks = keys[:: max(1, n // 64)]
    pivots = np.sort(np.concatenate(comm.allgather(picks)))
    pivots = pivots[np.arange(1, comm.size) * len(pivots) // comm.size]
    out = split(keys, pivots)
    into = np.empty(comm.size, np.int32)
    comm.Alltoall(out, into)
    got = np.empty(into.sum())
    comm.Alltoallv([keys, out], [got, into])
    moved += int(out.sum() - out[comm.rank])
    got = local_sort(got)
    last = comm.allgather(float(got[-1]) if len(got) else -1.0)
    if comm.rank and len(got) and got[0] < max(last[: comm.rank]):
        bad += 1
    if (np.diff(got) < 0).any():
        bad += 1
t = MPI.Wtime() - t
bad = comm.allreduce(bad)
moved = comm.allreduce(moved)
if comm.rank == 0:
    print(f"wrong {bad} moved {moved} time {t:.6f}")
    if bad:
        raise SystemExit(f"not sorted: {bad}")
