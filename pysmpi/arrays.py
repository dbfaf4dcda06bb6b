"""Annotations of arrays in programs: `pysmpi.shared_empty`.

Under a real MPI library, and outside of simulations, it is `numpy.empty`. Importing it imports no
other module of pysmpi.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

# Makes the array in a simulation: `allocate(array, private, frame)`; None outside of simulations.
allocate: Any = None


def shared_empty(
    shape: int | tuple[int, ...], dtype: Any = float, private: Iterable[Any] = ()
) -> np.ndarray:
    """Return an array that shares its memory with the arrays of other ranks in a simulation.

    All ranks that allocate an array of about this size at this line get the same memory, so it
    holds the last value that any of them wrote. Arrays that one rank holds at the same time always
    have different memory. `private` lists the elements that each rank keeps for itself, as indices
    of the array: `[0, -1]` are the first and last row, `[np.s_[:, :4]]` the first four columns.
    Whole pages (4 KiB) around these elements are private too.

    Returns an array of `shape` (elements), C-contiguous, with undefined values. Raises TypeError
    and IndexError for indices that the array does not have.
    """
    private = list(private)
    if allocate is not None:
        made: np.ndarray | None = allocate(shape, np.dtype(dtype), private, sys._getframe(1))
        if made is not None:
            return made
    array = np.empty(shape, dtype)
    for index in private:
        array[index]  # as it is in a simulation
    return array
