"""Variational Monte Carlo of a hydrogen molecule; the walkers are divided among the ranks."""

import numpy
import pyqmc.api as pyq
from mpi4py.futures import MPIPoolExecutor
from pyscf import gto, scf

if __name__ == "__main__":
    molecule = gto.M(atom="H 0 0 0; H 0 0 1.4", basis="sto-3g", unit="bohr", verbose=0)
    field = scf.RHF(molecule).run()
    print(f"energy of the field {field.e_tot:.8f}")
    wave, _ = pyq.generate_slater(molecule, field)
    with MPIPoolExecutor(max_workers=3) as executor:
        numpy.random.seed(1)
        coords = pyq.initial_guess(molecule, 60)
        data, coords = pyq.vmc(
            wave, coords, nblocks=3, nsteps_per_block=4, accumulators={
                "energy": pyq.EnergyAccumulator(molecule)
            }, client=executor, npartitions=3, verbose=False,
        )  # fmt: skip
        energy = data["energytotal"]
        print("blocks", energy.shape, "walkers", coords.configs.shape)
        print("plausible", bool(-1.8 < energy.mean() < -0.6))
