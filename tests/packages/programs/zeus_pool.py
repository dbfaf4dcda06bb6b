"""Ensemble slice sampling whose walkers are computed by the other ranks."""

from __future__ import annotations

import random

import numpy as np
import zeus
from zeus import ChainManager

DIMENSIONS, WALKERS, STEPS = 3, 12, 40


def log_probability(x: np.ndarray, inverse: np.ndarray) -> float:
    return -0.5 * float(np.sum(inverse * x**2.0))


with ChainManager(2) as manager:
    rank = manager.get_rank
    random.seed(rank)
    generator = np.random.RandomState(rank)
    np.random.seed(7 + rank)
    start = generator.randn(WALKERS, DIMENSIONS)
    sampler = zeus.EnsembleSampler(WALKERS, DIMENSIONS, log_probability,
                                   args=[np.array([1.0, 4.0, 0.25])], pool=manager.get_pool,
                                   verbose=False)  # fmt: skip
    sampler.run_mcmc(start, STEPS, progress=False)
    chain = sampler.get_chain(flat=True)
    print("chain", rank, chain.shape, chain.mean(axis=0), chain.std(axis=0), sampler.ncall)
