"""Multigrid reduction in time: each rank has a part of the time interval."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

np.in1d = np.isin  # type: ignore[attr-defined]  # a name of old numpy that pymgrit uses
from pymgrit.core.mgrit import Mgrit  # noqa: E402
from pymgrit.core.simple_setup_problem import simple_setup_problem  # noqa: E402
from pymgrit.dahlquist.dahlquist import Dahlquist  # noqa: E402
from pymgrit.heat.heat_1d import Heat1D  # noqa: E402

problem = Dahlquist(t_start=0, t_stop=5, nt=101)
solver = Mgrit(problem=simple_setup_problem(problem=problem, level=2, coarsening=2), tol=1e-10,
               logging_lvl=30)  # fmt: skip
info = solver.solve()
print(MPI.COMM_WORLD.rank, info["conv"], [float(one.get_values()) for one in solver.u[0]][:4])

heat = Heat1D(x_start=0, x_end=2, nx=65, a=1, init_cond=lambda x: np.sin(np.pi * x),
              rhs=lambda x, t: 0 * x, t_start=0, t_stop=2, nt=65)  # fmt: skip
solver = Mgrit(problem=simple_setup_problem(problem=heat, level=3, coarsening=2), cf_iter=1,
               cycle_type="F", nested_iteration=True, max_iter=6, logging_lvl=30)  # fmt: skip
print(MPI.COMM_WORLD.rank, solver.solve()["conv"])
