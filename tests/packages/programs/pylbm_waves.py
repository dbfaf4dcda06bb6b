"""A shock wave with pylbm, the domain divided among the ranks."""

import numpy as np
import pylbm
import sympy as sp
from mpi4py import MPI

comm = MPI.COMM_WORLD
u, X, LA = sp.symbols("u, X, LA")


def bell(x):
    return np.exp(-100 * (x - 0.5) ** 2)


settings = {
    "box": {"x": [0.0, 1.0], "label": -1},
    "space_step": 1.0 / 128,
    "scheme_velocity": LA,
    "schemes": [
        {
            "velocities": [1, 2],
            "conserved_moments": u,
            "polynomials": [1, LA * X],
            "relaxation_parameters": [0.0, 1.9],
            "equilibrium": [u, 0.5 * u],
        }
    ],
    "init": {u: bell},
    "generator": "numpy",
    "parameters": {LA: 1.0},
}
simulation = pylbm.Simulation(settings)
while simulation.t < 0.4:
    simulation.one_time_step()
values = simulation.m[u]
print("rank", comm.rank, values.shape, float(values.sum()), float(values.max()))
print("total", comm.allreduce(float(values.sum())), "time", simulation.t)
