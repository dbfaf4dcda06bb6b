"""Vector arrays that all ranks hold a part of, driven by rank 0: python -m pymor.tools.mpi."""

from __future__ import annotations

import numpy as np
from pymor.algorithms.gram_schmidt import gram_schmidt
from pymor.algorithms.pod import pod
from pymor.tools import mpi
from pymor.vectorarrays.mpi import MPIVectorSpaceNoComm
from pymor.vectorarrays.numpy import NumpyVectorSpace


def local_array(size: int, count: int) -> object:
    generator = np.random.default_rng(mpi.rank)
    array = NumpyVectorSpace(size + mpi.rank).from_numpy(
        generator.normal(size=(size + mpi.rank, count)))  # fmt: skip
    return mpi.manage_object(array)


identifier = mpi.call(mpi.function_call, local_array, 20, 6)
spaces = tuple(NumpyVectorSpace(20 + rank) for rank in range(mpi.size))
print(mpi.size, identifier, len(spaces))
ranks = mpi.call(mpi.function_call, lambda: mpi.comm.allgather(mpi.rank))
print(ranks)
print(mpi.call(mpi.method_call, identifier, "norm"))
print(MPIVectorSpaceNoComm.__name__, gram_schmidt.__name__, pod.__name__)
