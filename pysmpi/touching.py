"""What programs may say about the memory that they compute with: `pysmpi.touch`.

Under a real MPI library, and wherever no simulation runs, it does nothing; importing it imports
nothing else of pysmpi.
"""

from __future__ import annotations

from typing import Any

# What a run does about it: called with the array and whether it is written; None: nothing.
touched: Any = None


def touch(array: Any, write: bool = False) -> None:
    """Say that the computation has read `array`, or written it, since the last MPI call.

    Inside nodes that the platform describes, a message costs less if its buffer has just been
    used, and more if something else has filled the caches since. pysmpi knows the buffers of
    messages; this tells it of other memory, or of a send buffer that was written again. It takes
    no simulated time.

    `array` is an array or any other object with a buffer, or a part of one. Raises TypeError for
    anything else in a run where it matters.
    """
    if touched is not None:
        touched(array, write)
