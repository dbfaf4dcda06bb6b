"""Crystals and molecules of ASE: relaxed, moved and measured; energies reduced over ranks."""

from __future__ import annotations

import numpy as np
from ase import units
from ase.build import bulk, fcc111, molecule
from ase.calculators.emt import EMT
from ase.calculators.lj import LennardJones
from ase.eos import EquationOfState
from ase.io import read, write
from ase.md.velocitydistribution import MaxwellBoltzmannDistribution
from ase.md.verlet import VelocityVerlet
from ase.optimize import BFGS
from ase.parallel import DummyMPI, world
from mpi4py import MPI

comm = MPI.COMM_WORLD
alone = DummyMPI()
print(comm.rank, world.rank, world.size, world.sum(comm.rank + 0.5))
metal = ["Cu", "Ag", "Au", "Ni"][comm.rank % 4]
volumes, energies = [], []
for scale in np.linspace(0.97, 1.03, 5):
    crystal = bulk(metal)
    crystal.set_cell(crystal.cell * scale, scale_atoms=True)
    crystal.calc = EMT()
    volumes.append(crystal.get_volume())
    energies.append(crystal.get_potential_energy())
v0, e0, modulus = EquationOfState(volumes, energies).fit()
print(comm.rank, metal, v0, e0, modulus / units.kJ * 1e24)
cluster = molecule("H2O")
cluster.rotate(10 * comm.rank, "z")
cluster.calc = EMT()
print(
    comm.rank,
    BFGS(cluster, logfile=None, comm=alone).run(fmax=0.05, steps=40),
    cluster.get_distance(0, 1),
)
slab = fcc111("Al", (2, 2, 2), vacuum=5.0)
slab.calc = EMT()
MaxwellBoltzmannDistribution(slab, temperature_K=300, rng=np.random.RandomState(comm.rank))
motion = VelocityVerlet(slab, 2 * units.fs, comm=alone)
before = slab.get_total_energy()
motion.run(8)
print(comm.rank, slab.get_temperature(), abs(slab.get_total_energy() - before) < 0.05)
write(f"slab{comm.rank}.xyz", slab, parallel=False)
comm.barrier()
other = read(f"slab{(comm.rank + 1) % comm.size}.xyz", parallel=False)
print(comm.rank, len(other), other.get_positions().sum(), other.get_chemical_formula())
slab.calc = None
atoms = comm.bcast(slab if comm.rank == 0 else None)
atoms.calc = LennardJones(sigma=2.5)
print(comm.rank, atoms.get_potential_energy(), comm.allreduce(e0, MPI.MIN))
