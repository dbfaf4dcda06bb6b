"""A plasma wave in a cylindrical particle-in-cell simulation, divided among the ranks."""

from __future__ import annotations

import numpy as np
from fbpic.main import Simulation
from mpi4py import MPI
from scipy.constants import c, e, epsilon_0, m_e

n_e, epsilon = 2.0e24, 0.001
p_zmax, p_rmax = 40.0e-6, 20.0e-6
Nz, Nr = 512, 24
sim = Simulation(Nz, p_zmax, Nr, p_rmax, 2, p_zmax / Nz / c, n_e=n_e, p_zmin=0.0, p_zmax=p_zmax,
                 p_rmin=0.0, p_rmax=p_rmax, p_nz=2, p_nr=2, p_nt=4, n_order=8,
                 verbose_level=0, boundaries={"z": "periodic", "r": "reflective"})  # fmt: skip
k0 = 2 * np.pi / p_zmax * 3
wp = np.sqrt(n_e * e**2 / (m_e * epsilon_0))
for species in sim.ptcl:
    species.uz += -epsilon * wp / c * np.cos(k0 * species.z) / k0 * k0
sim.step(12, correct_currents=True, show_progress=False)
comm = MPI.COMM_WORLD
energy = sum(float(np.sum(abs(grid.Ez) ** 2)) for grid in sim.fld.interp)
total = comm.allreduce(sum(species.Ntot for species in sim.ptcl))
print("rank", comm.rank, sim.fld.interp[0].Nz, total, f"{energy:.6e}")
