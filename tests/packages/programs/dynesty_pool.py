"""Nested sampling; the likelihoods are computed by a pool of the other ranks."""

from __future__ import annotations

import sys

import numpy as np
from dynesty import NestedSampler
from schwimmbad import MPIPool

DIMENSIONS = 2


def log_likelihood(x: np.ndarray) -> float:
    return float(-0.5 * np.sum(((x - 0.3) / 0.4) ** 2))


def transform(u: np.ndarray) -> np.ndarray:
    return 10.0 * u - 5.0


with MPIPool() as pool:
    if not pool.is_master():
        pool.wait()
        sys.exit(0)
    pool.size = 3
    sampler = NestedSampler(log_likelihood, transform, DIMENSIONS, nlive=60, pool=pool,
                            queue_size=3, rstate=np.random.default_rng(5))  # fmt: skip
    sampler.run_nested(dlogz=0.5, print_progress=False)
    found = sampler.results
    print("evidence", found.logz[-1], found.niter, int(np.sum(found.ncall)))
