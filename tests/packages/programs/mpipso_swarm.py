"""A swarm of particles whose fitness a pool of ranks computes."""

from __future__ import annotations

import numpy as np

np.Inf = np.inf  # the name that NumPy had before 2.0

from mpipso.pso import ParticleSwarmOptimizer  # noqa: E402
from schwimmbad import MPIPool  # noqa: E402


def fitness(x: np.ndarray) -> tuple[float, list[object]]:
    return -float(np.sum((x - 0.25) ** 2)), []


pool = MPIPool()
np.random.seed(5)
swarm = ParticleSwarmOptimizer(
    fitness, np.array([-1.0, -2.0]), np.array([3.0, 2.0]), particleCount=8, pool=pool
)
_, bests = swarm.optimize(maxIter=6)
for best in bests:
    print("best", best.position.tolist(), float(best.fitness))
