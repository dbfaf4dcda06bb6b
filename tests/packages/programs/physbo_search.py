"""Bayesian search of a grid of candidates: simulations and scores shared among the ranks."""

from __future__ import annotations

import numpy as np
import physbo
from mpi4py import MPI

comm = MPI.COMM_WORLD
grid = np.linspace(-2.0, 2.0, 201)
candidates = grid.reshape(-1, 1)


def simulate(action: object) -> float:
    x = grid[np.asarray(action)][0]
    return float(-(3.0 * x**4 + 4.0 * x**3 - 12.0 * x**2))


policy = physbo.search.discrete.Policy(test_X=candidates, comm=comm)
policy.set_seed(5)
policy.random_search(max_num_probes=8, simulator=simulate, is_disp=False)
result = policy.bayes_search(max_num_probes=4, simulator=simulate, score="EI", interval=0,
                             num_rand_basis=0, is_disp=False)  # fmt: skip
print(comm.rank, result.fx[: result.total_num_search].max(), len(result.chosen_actions))
