"""NLTK's own doctests, a few of them in each rank."""

from __future__ import annotations

import doctest
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
attempted = 0
for name in sys.argv[1 + comm.rank :: comm.size] + sys.argv[1:2]:
    result = doctest.testfile(name, package="nltk.test", optionflags=doctest.ELLIPSIS)
    print(comm.rank, name, result.failed, result.attempted)
    attempted += result.attempted
print(comm.rank, "all ranks:", comm.allreduce(attempted))
