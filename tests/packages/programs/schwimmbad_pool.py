"""A pool of the other ranks: map with and without a callback, then the end of the workers."""

from __future__ import annotations

import sys

import numpy as np
from schwimmbad import MPIPool, choose_pool


def area(task: tuple[float, float]) -> float:
    a, b = task
    return float(np.hypot(a, b))


def write(result: float) -> None:
    print("callback", result)


with choose_pool(mpi=True) as pool:
    if isinstance(pool, MPIPool) and not pool.is_master():
        pool.wait()
        sys.exit(0)
    print(pool.size, list(pool.map(area, zip(range(30), range(30, 0, -1)))))
    list(pool.map(area, [(3.0, 4.0), (5.0, 12.0)], callback=write))
print("master ends")
