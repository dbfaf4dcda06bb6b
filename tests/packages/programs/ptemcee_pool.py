"""ptemcee's pool: densities of walkers and temperatures computed by the other ranks."""

from __future__ import annotations

import sys

import numpy as np

np.float = float  # type: ignore[attr-defined]  # a name of old numpy that ptemcee uses
import ptemcee  # noqa: E402


class Density:
    def __call__(self, x: np.ndarray) -> float:
        return float(np.logaddexp(-0.5 * np.sum((x - 2) ** 2), -0.5 * np.sum((x + 2) ** 2)))


pool = ptemcee.MPIPool()
if not pool.is_master():
    pool.wait()
    print("worker ends")
    sys.exit(0)
points = np.random.RandomState(3).uniform(-3, 3, (40, 2))
print(pool.map(Density(), points))
pool.close()
print(ptemcee.sampler.default_beta_ladder(2, 5))
