"""CMA-ES whose population is evaluated by all ranks."""

from __future__ import annotations

import numpy as np
from esmpi import CMAES_MPI


def distance(x: np.ndarray) -> float:
    return float((x[0] - 3) ** 2 + (2 * (x[1] + 2)) ** 2)


optimizer = CMAES_MPI(n_params=2, population_size=12, sigma=0.5, seed=5,
                      initial_parameters=np.zeros(2))  # fmt: skip
for _ in range(40):
    fitness = optimizer.step(distance)
print(optimizer.is_master, np.shape(fitness), optimizer.get_parameters() if optimizer.is_master
      else "")  # fmt: skip
