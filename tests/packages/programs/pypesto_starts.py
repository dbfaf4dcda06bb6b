"""Multi-start optimization with pypesto's MPIPoolEngine."""

from __future__ import annotations

import numpy as np
import pypesto
import scipy.optimize as so
from pypesto.engine.mpi_pool import MPIPoolEngine
from pypesto.optimize import ScipyOptimizer, minimize


def main() -> None:
    np.random.seed(3)
    objective = pypesto.Objective(fun=so.rosen, grad=so.rosen_der)
    problem = pypesto.Problem(objective=objective, lb=-3 * np.ones((1, 4)), ub=3 * np.ones((1, 4)))
    result = minimize(problem=problem, optimizer=ScipyOptimizer(method="L-BFGS-B"), n_starts=6,
                      engine=MPIPoolEngine(), filename=None, progress_bar=False)  # fmt: skip
    print("minima", np.sort(np.round(result.optimize_result.fval, 6)))


if __name__ == "__main__":
    main()
