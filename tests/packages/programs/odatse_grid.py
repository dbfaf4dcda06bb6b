"""A search for the best fit of a model's parameters, its points shared among the ranks."""

from __future__ import annotations

import pathlib

import odatse
import odatse.algorithm.mapper_mpi as mapper
import odatse.mpi
from odatse.solver.function import Solver


def himmelblau(x: object) -> float:
    return float((x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2)


odatse.mpi.setup()
settings = odatse.Info({
    "base": {"dimension": 2, "output_dir": "output"},
    "algorithm": {"seed": 1, "param": {"min_list": [-6.0, -6.0], "max_list": [6.0, 6.0],
                                       "num_list": [13, 13]}},
    "solver": {}, "runner": {},
})  # fmt: skip
solver = Solver(settings)
solver.set_function(himmelblau)
algorithm = mapper.Algorithm(settings, odatse.Runner(solver, settings))
algorithm.main()
if odatse.mpi.rank() == 0:
    rows = pathlib.Path("output/ColorMap.txt").read_text().splitlines()
    print("rows", len(rows), "best", min(float(row.split()[-1]) for row in rows[1:]))
print("rank", odatse.mpi.rank(), "of", odatse.mpi.size())
