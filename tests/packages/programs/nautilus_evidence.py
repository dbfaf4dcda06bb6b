"""The evidence of a Gaussian, its likelihood on mpi4py's executor: python -m mpi4py.futures."""

from __future__ import annotations

import numpy as np
from mpi4py.futures import MPIPoolExecutor
from nautilus import Prior, Sampler
from scipy.stats import norm


def likelihood(parameters: dict[str, float]) -> float:
    return -0.5 * ((parameters["a"] - 0.2) ** 2 + (parameters["b"] + 0.4) ** 2) / 0.01


if __name__ == "__main__":
    prior = Prior()
    prior.add_parameter("a", dist=(-1, 1))
    prior.add_parameter("b", dist=norm(loc=0, scale=1.0))
    with MPIPoolExecutor() as executor:
        sampler = Sampler(prior, likelihood, n_live=200, seed=5, pool=executor, n_networks=0)
        sampler.run(n_eff=500, verbose=False)
    points, weights, _ = sampler.posterior()
    print(sampler.n_like, sampler.log_z, np.average(points, weights=np.exp(weights), axis=0))
