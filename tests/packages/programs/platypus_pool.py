"""A multi-objective optimization, evaluated by a pool of ranks."""

from __future__ import annotations

import logging
import random
import sys

from platypus import NSGAII, PoolEvaluator, Problem, Real
from platypus.mpipool import MPIPool


class Schaffer(Problem):
    def __init__(self) -> None:
        super().__init__(1, 2)
        self.types[:] = Real(-10, 10)

    def evaluate(self, solution) -> None:
        x = solution.variables[:]
        solution.objectives[:] = [x[0] ** 2, (x[0] - 2) ** 2]


logging.basicConfig(level=logging.ERROR)
random.seed(12)
pool = MPIPool()
if not pool.is_master():
    pool.wait()
    sys.exit(0)
with PoolEvaluator(pool) as evaluator:
    algorithm = NSGAII(Schaffer(), population_size=20, evaluator=evaluator)
    algorithm.run(200)
    front = sorted(tuple(one.objectives) for one in algorithm.result)
    print("front", len(front), front[0], front[-1])
pool.close()
