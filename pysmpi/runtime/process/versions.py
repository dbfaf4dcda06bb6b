"""A quick test whether a dictionary has changed.

CPython gives every dictionary a number that changes whenever the dictionary does (PEP 509, until
3.12). Reading it costs a twentieth of comparing the values of the names that are exchanged.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping

# The place of the number in an object: after its reference count, its type and its length.
_OFFSET = 2 * ctypes.sizeof(ctypes.c_void_p) + ctypes.sizeof(ctypes.c_ssize_t)


def version_of(space: Mapping[str, object]) -> memoryview | None:
    """A view of the version number of a dictionary, as its only item; None if there is none."""
    return _view(space) if _known else None


def _view(space: Mapping[str, object]) -> memoryview:
    number = (ctypes.c_uint64 * 1).from_address(id(space) + _OFFSET)
    return memoryview(number).cast("B").cast("Q")


def _try() -> bool:
    """Whether dictionaries of this interpreter have such numbers."""
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 13):
        return False
    space: dict[str, object] = {"one": 1}
    view = _view(space)
    seen = [view[0]]
    for value in ("one", "two"):
        space["one"] = value
        seen.append(view[0])
    space["two"] = 2
    seen.append(view[0])
    del space["two"]
    seen.append(view[0])
    return len(set(seen)) == len(seen) and view[0] == seen[-1]


_known = _try()
