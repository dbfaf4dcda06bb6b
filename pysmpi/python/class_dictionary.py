"""Writing to the dictionary of a class in C, which CPython has no documented way for."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Mapping
from typing import Any


def writable(kind: type) -> dict[str, Any] | None:
    """The dictionary of a class, None if it cannot be had. Call `update` to change it.

    In a run, the fact "class-dictionaries" has to hold, too.
    """
    spaces = gc.get_referents(kind.__dict__)
    if len(spaces) != 1 or type(spaces[0]) is not dict or spaces[0].keys() != kind.__dict__.keys():
        return None
    space: dict[str, Any] = spaces[0]
    return space


def update(kind: type, space: dict[str, Any], new: Mapping[str, object]) -> None:
    """Put entries into the dictionary `space` of a class; code that has cached others sees them."""
    space.update(new)
    modified = ctypes.pythonapi.PyType_Modified
    modified.argtypes, modified.restype = [ctypes.py_object], None
    modified(kind)
