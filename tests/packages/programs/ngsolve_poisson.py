"""Poisson's equation on a mesh that the ranks share."""

import netgen.meshing
from mpi4py import MPI
from netgen.geom2d import unit_square
from ngsolve import (
    H1,
    BilinearForm,
    CGSolver,
    GridFunction,
    Integrate,
    LinearForm,
    Mesh,
    Preconditioner,
    dx,
    grad,
)

comm = MPI.COMM_WORLD
if comm.rank == 0:
    mesh = Mesh(unit_square.GenerateMesh(maxh=0.1).Distribute(comm))
else:
    mesh = Mesh(netgen.meshing.Mesh.Receive(comm))
space = H1(mesh, order=2, dirichlet=".*")
u, v = space.TnT()
form, load = BilinearForm(grad(u) * grad(v) * dx), LinearForm(v * dx)
conditioner = Preconditioner(form, "local")
form.Assemble()
load.Assemble()
solution = GridFunction(space)
solver = CGSolver(form.mat, conditioner.mat, printrates=False, maxiter=400, tol=1e-10)
solution.vec.data = solver * load.vec
print(comm.rank, comm.size, space.ndofglobal, f"{Integrate(solution, mesh):.10f}", flush=True)
