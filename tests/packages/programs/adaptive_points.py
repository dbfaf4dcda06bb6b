"""Adaptive sampling of a function on mpi4py's executor: python -m mpi4py.futures."""

from __future__ import annotations

import adaptive
from mpi4py.futures import MPIPoolExecutor


def peak(x: float, width: float = 0.05) -> float:
    return x + width**2 / (width**2 + (x - 0.3) ** 2)


if __name__ == "__main__":
    learner = adaptive.Learner1D(peak, bounds=(-1, 1))
    with MPIPoolExecutor() as executor:
        executor.bootup()
        runner = adaptive.runner.BlockingRunner(learner, executor=executor, ntasks=1,
                                                npoints_goal=40)  # fmt: skip
    data = sorted(learner.data.items())
    print(len(data), data[:3], data[-1], sum(y for _, y in data))
