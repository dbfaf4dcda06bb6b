"""Quantum states in parallel: a pool of `mpi4py.futures` evolves many of them."""

from __future__ import annotations

import quimb as qu
from mpi4py.futures import MPICommExecutor


def gap(size: int) -> tuple[int, float]:
    energies = qu.eigvalsh(qu.ham_heis(size), k=2)
    return size, round(float(energies[1] - energies[0]), 9)


if __name__ == "__main__":
    with MPICommExecutor(root=0) as executor:
        if executor is not None:
            for size, found in executor.map(gap, range(2, 8)):
                print("gap", size, found)
