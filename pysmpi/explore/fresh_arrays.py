"""New arrays of numpy begin with zeros where an order is chosen.

`numpy.empty` and its like leave what the memory held before, which differs from one execution to
the next: the same decisions would lead to other states and other results. The handler of
allocations (NEP 49) that ranks have here takes cleared memory, and leaves the rest to numpy.
"""

from __future__ import annotations

import ctypes
from functools import cache

from pysmpi.folding.handler import Numpy
from pysmpi.python import facts


@cache
def _handler() -> tuple[Numpy, object] | None:
    """numpy, and the handler that clears; None if numpy has other handlers than expected."""
    if not facts.holds("numpy-memory"):
        return None
    numpy = Numpy()
    if numpy.context:
        return None
    # numpy's own functions ignore their first argument. For calloc it is the number of parts: 1.
    clear = ctypes.cast(ctypes.CDLL(None).calloc, ctypes.c_void_p).value
    return numpy, numpy.handler(b"pysmpi cleared", 1, (clear, *numpy.addresses[1:]))


def clear() -> None:
    """Let the arrays of the running rank begin with zeros, if no other handler serves it."""
    found = _handler()
    if found is None:
        return
    numpy, capsule = found
    before = numpy.set(capsule)
    if before is not numpy.usual:
        numpy.set(before)
