"""Differential evolution of mystic in each rank; the ranks exchange their best."""

from mpi4py import MPI
from mystic.models import rosen
from mystic.monitors import Monitor
from mystic.solvers import DifferentialEvolutionSolver2
from mystic.strategy import Best1Exp
from mystic.termination import VTR
from mystic.tools import random_seed

comm = MPI.COMM_WORLD
random_seed(40 + comm.rank)
solver = DifferentialEvolutionSolver2(3, 30)
solver.SetRandomInitialPoints([-4.0] * 3, [4.0] * 3)
monitor = Monitor()
solver.SetGenerationMonitor(monitor)
solver.SetEvaluationLimits(generations=120)
solver.Solve(rosen, termination=VTR(1e-6), strategy=Best1Exp, CrossProbability=0.8,
             ScalingFactor=0.9, disp=False)  # fmt: skip
print("rank", comm.rank, "best", solver.bestEnergy, "steps", len(monitor.y))
found = comm.allgather((float(solver.bestEnergy), comm.rank, list(map(float, solver.bestSolution))))
print("winner", min(found))
