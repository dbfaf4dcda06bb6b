"""Cython: rank 0 compiles a module, all import it; its state is the process's."""

from __future__ import annotations

import importlib
import subprocess
import sys
import sysconfig
from pathlib import Path

from Cython.Compiler.Main import compile as cythonize
from mpi4py import MPI

comm = MPI.COMM_WORLD
SOURCE = """
# cython: language_level=3
cimport cython
cdef class Walker:
    cdef public double x
    cdef long steps
    def __init__(self, double x): self.x = x
    cpdef double walk(self, double by):
        self.x += by
        self.steps += 1
        return self.x
    def __reduce__(self): return Walker, (self.x,)
@cython.cdivision(True)
def collatz(long n):
    cdef long k = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return k
def total(double[::1] values):
    cdef double s = 0
    cdef Py_ssize_t i
    for i in range(values.shape[0]): s += values[i] * i
    return s
"""
if comm.rank == 0:
    Path("walkers.pyx").write_text(SOURCE)
    result = cythonize("walkers.pyx")
    print(comm.rank, result.num_errors, Path("walkers.c").exists())
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}", "walkers.c",
         "-o", f"walkers{suffix}"], check=True,
    )  # fmt: skip
comm.barrier()
sys.path.insert(0, ".")
importlib.invalidate_caches()
walkers = importlib.import_module("walkers")
import numpy as np  # noqa: E402

print(comm.rank, [walkers.collatz(n) for n in range(25 + comm.rank, 30 + comm.rank)])
mine = walkers.Walker(comm.rank)
for k in range(5):
    mine.walk(k / 4)
others = comm.allgather(mine)
print(comm.rank, mine.x, [one.walk(0.5) for one in others])
print(comm.rank, comm.allreduce(walkers.total(np.linspace(0, comm.rank, 11))))
try:
    walkers.total(np.zeros((2, 2)))
except ValueError as error:
    print(comm.rank, error)
