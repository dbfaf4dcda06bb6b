"""Chains of a Monte Carlo sampler, one a rank, that learn from each other's covariance."""

from __future__ import annotations

import numpy as np
from cobaya.run import run
from mpi4py import MPI

rank = MPI.COMM_WORLD.rank


def likelihood(a: float, b: float) -> float:
    return -0.5 * (((a - 0.5) / 0.2) ** 2 + ((b - 2 * a) / 0.3) ** 2)


info = {
    "likelihood": {"gauss": likelihood},
    "params": {name: {"prior": {"min": -4, "max": 4}, "ref": 0.4, "proposal": 0.3}
               for name in "ab"},
    "sampler": {"mcmc": {"max_samples": 300, "seed": 4, "learn_proposal": False,
                         "Rminus1_stop": 0.0, "burn_in": 20}},
}  # fmt: skip
_, sampler = run(info)
sample = sampler.products()["sample"]
print(rank, len(sample), np.array(sample.mean()), sample[0]["a"] if len(sample) else None)
