"""Second-order Green's functions of water: each rank builds a part of the self-energy."""

from __future__ import annotations

from pyscf import agf2, gto, scf
from pyscf.agf2 import mpi_helper

molecule = gto.M(atom="O 0 0 0; H 0 0 1; H 0 1 0", basis="6-31g", verbose=0)
field = scf.RHF(molecule).density_fit()
field.conv_tol = 1e-11
field.run()
green = agf2.AGF2(field, nmom=(None, 0))
green.conv_tol = 1e-7
green.run()
print(mpi_helper.rank, mpi_helper.size, round(field.e_tot, 8), round(green.e_corr, 7),
      green.converged, [round(one, 5) for one in green.ipagf2(nroots=2)[0]])  # fmt: skip
