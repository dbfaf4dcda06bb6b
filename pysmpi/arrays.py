"""What programs may say about their arrays: `pysmpi.shared_empty`.

Under a real MPI library, and wherever no simulation runs, it is `numpy.empty`; importing it
imports nothing else of pysmpi.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

# Makes the array in a simulation: `allocate(array, private, frame)`; None where nothing runs.
allocate: Any = None


def shared_empty(
    shape: int | tuple[int, ...], dtype: Any = float, private: Iterable[Any] = ()
) -> np.ndarray:
    """An array that in a simulation shares its memory with those of the other ranks.

    All ranks that allocate an array of about this size at this line get the same memory, so it
    holds whatever any of them wrote last; arrays that one rank holds at the same time are always
    different memory. `private` lists what each rank keeps for itself, as indices of the array:
    `[0, -1]` are its first and last row, `[np.s_[:, :4]]` its first four columns. Whole pages
    (4 KiB) around these are private too.

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
