"""Tasks of an executor whose workers are the other ranks."""

from __future__ import annotations

from mpi4py import MPI
from mpipool import MPIExecutor, MPIPool


def power(base: int, exponent: int = 2) -> int:
    return base**exponent


def fails(value: int) -> int:
    raise ValueError(f"no {value}")


with MPIExecutor() as executor:
    executor.workers_exit()
    futures = [executor.submit(power, k) for k in range(40)]
    print([future.result() for future in futures])
    print(list(executor.map(power, range(20), [3] * 20)))
    print(repr(executor.submit(fails, 7).exception()))
with MPIPool() as pool:
    pool.workers_exit()
    print(pool.map(power, range(30)))
MPI.COMM_WORLD.Barrier()
print("rank", MPI.COMM_WORLD.rank, "goes on")
