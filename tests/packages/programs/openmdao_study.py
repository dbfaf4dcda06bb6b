"""A design of experiments whose cases are run by all ranks."""

from __future__ import annotations

import openmdao.api as om
from mpi4py import MPI
from openmdao.test_suite.components.paraboloid import Paraboloid

problem = om.Problem()
problem.model.add_subsystem("comp", Paraboloid(), promotes=["*"])
problem.model.add_design_var("x", lower=-10, upper=10)
problem.model.add_design_var("y", lower=-10, upper=10)
problem.model.add_objective("f_xy")
problem.driver = om.DOEDriver(om.FullFactorialGenerator(levels=4))
problem.driver.options["run_parallel"] = True
problem.driver.options["procs_per_model"] = 1
problem.setup()
problem.run_driver()
rank = MPI.COMM_WORLD.rank
print(rank, problem.get_val("x"), problem.get_val("y"), problem.get_val("f_xy"))
problem.cleanup()
