"""Calls of a function that are alike: those with the same key.

By `shape`, the key of an array is its shape, dtype and layout; of integers, strings and other small
constants, the value; of lists and tuples with up to eight elements, the keys of the elements, of
longer ones the length; of all other objects, including floats, the type. By `type`: the same, but
the key of integers and strings is the type, too. By `none`, all calls are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from typing import Any, cast

import numpy as np

_ELEMENTS = 8
_CONSTANTS = (bool, int, str, bytes, type(None), type, slice)


def key_function(by: str) -> Callable[[tuple[object, ...], Mapping[str, object]], Hashable]:
    """The key of a call's arguments."""
    if by == "none":
        return lambda args, kwargs: None
    values = by == "shape"

    def key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
        positional = tuple([_key(arg, values, 0) for arg in args])
        if not kwargs:
            return positional
        return positional, tuple([(name, _key(kwargs[name], values, 0)) for name in sorted(kwargs)])

    return key


def _key(value: Any, values: bool, depth: int) -> Hashable:
    kind = type(value)
    if kind is np.ndarray:
        return kind, value.shape, value.dtype.str, value.flags.forc
    if isinstance(value, _CONSTANTS) or isinstance(value, Enum | np.integer):
        if not values or (isinstance(value, str | bytes) and len(value) > 256):
            return cast(Hashable, kind)
        # Slices cannot be hashed before Python 3.12.
        return kind, repr(value) if kind is slice else value
    if kind in (tuple, list):
        if len(value) > _ELEMENTS or depth > 2:
            return kind, len(value)
        return kind, tuple([_key(element, values, depth + 1) for element in value])
    if kind in (dict, set, frozenset, range, bytearray, memoryview):
        return kind, len(value)
    return kind, *_shape(value)


def _shape(value: Any) -> tuple[Hashable, ...]:
    """The shape of other objects with a shape, such as sparse matrices and tensors."""
    if isinstance(value, float | complex | np.generic):
        return ()
    try:
        return tuple(value.shape), str(value.dtype), int(getattr(value, "nnz", 0))
    except Exception:
        return ()
