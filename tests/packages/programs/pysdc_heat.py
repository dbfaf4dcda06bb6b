"""Spectral deferred corrections: the time steps are divided among the ranks."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from pySDC.implementations.controller_classes.controller_MPI import controller_MPI
from pySDC.implementations.problem_classes.HeatEquation_ND_FD import heatNd_unforced
from pySDC.implementations.sweeper_classes.generic_implicit import generic_implicit

description = {
    "problem_class": heatNd_unforced,
    "problem_params": {"nu": 0.1, "freq": 2, "nvars": 63, "bc": "dirichlet-zero"},
    "sweeper_class": generic_implicit,
    "sweeper_params": {"quad_type": "RADAU-RIGHT", "num_nodes": 3, "QI": "LU"},
    "level_params": {"restol": 1e-10, "dt": 0.25},
    "step_params": {"maxiter": 30},
}
comm = MPI.COMM_WORLD
controller = controller_MPI(
    controller_params={"logger_level": 30}, description=description, comm=comm
)  # fmt: skip
problem = controller.S.levels[0].prob
end, stats = controller.run(u0=problem.u_exact(0.0), t0=0.0, Tend=2.0)
error = float(np.max(np.abs(np.asarray(problem.u_exact(2.0)) - np.asarray(end))))
print("heat", comm.rank, controller.S.status.iter, f"{error:.9e}")
