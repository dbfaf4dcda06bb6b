"""Maps of qutip's on mpi4py's executor: python -m mpi4py.futures."""

from __future__ import annotations

import loky.backend.resource_tracker  # noqa: F401  # mpi_pmap looks for it
from qutip import basis, destroy
from qutip.solver.parallel import mpi_pmap


def photons(k: int, size: int = 12) -> float:
    a = destroy(size)
    return float((a.dag() * a * basis(size, k % size)).norm())


if __name__ == "__main__":
    print(mpi_pmap(photons, list(range(20)), map_kw={"num_cpus": 2}))
