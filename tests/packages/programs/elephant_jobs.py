"""Spike trains are analysed by elephant's pool of ranks."""

from __future__ import annotations

import neo
import numpy as np
import quantities as pq
from elephant.parallel import MPIPoolExecutor, ProcessPoolExecutor
from elephant.statistics import mean_firing_rate


def rate(seed: int) -> float:
    times = np.sort(np.random.default_rng(seed).uniform(0, 10, 40 + seed))
    return float(mean_firing_rate(neo.SpikeTrain(times * pq.s, t_stop=10.0 * pq.s)))


if __name__ == "__main__":
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 0:
        print("rates", MPIPoolExecutor(max_workers=2).execute(rate, range(6)))
        print("again", ProcessPoolExecutor(max_workers=2).execute(rate, range(4)))
