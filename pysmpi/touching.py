"""Annotations of memory accesses in programs: `pysmpi.touch`.

Under a real MPI library, and outside of simulations, it does nothing. Importing it imports no other
module of pysmpi.
"""

from __future__ import annotations

from typing import Any

# The run's handler: called with the array and whether it is written; None: no handler.
touched: Any = None


def touch(array: Any, write: bool = False) -> None:
    """Declare that the computation has read or written `array` since the last MPI call.

    Inside described nodes, a message costs less if its buffer has just been used, and more if other
    data has filled the caches since. pysmpi follows the buffers of messages. Use this function for
    other memory, or for a send buffer that was written again. It takes no simulated time.

    `array` is an array or any other object with a buffer, or a part of one. In a run with described
    nodes, raises TypeError for other objects.
    """
    if touched is not None:
        touched(array, write)
