"""The places of the payloads of messages, for models of the contents of caches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from pysmpi.mpi.base.exporting import address_of
from pysmpi.mpi.buffers.regions import MessageRegion

# The object that owns the memory, the first and the last + 1 of its bytes, the pieces there.
Place = tuple[object, int, int, int]


def locate(payload: object) -> Place | None:
    """The place of a payload in the program's memory; None if it is a pickled object."""
    if payload.__class__ is not MessageRegion:
        return None
    data = payload.data
    if data is not None:
        owner: object = data.obj
        nbytes = payload.nbytes
        if owner.__class__ is ndarray and owner.nbytes == nbytes:
            whole = owner.base
            if whole is None:
                return owner, 0, nbytes, 1
            if whole.__class__ is ndarray and whole.base is None:
                first = owner.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
                return whole, first, first + nbytes, 1
        return _within(data, owner, 0, nbytes, 1)
    plan, memory = payload.plan, payload.memory
    first = payload.origin + plan.low
    return _within(memory, memory.obj, first, first + plan.high - plan.low, plan.pieces)


def place_of(array: Any) -> tuple[Place, int]:
    """The place of an array, or of another object with a buffer, and its number of bytes.

    A part of an array that is not contiguous counts from its first byte to its last. Raises
    TypeError if there is no buffer.
    """
    if isinstance(array, np.ndarray):
        first = low = _address(array)
        high = first + array.itemsize if array.size else first
        for count, stride in zip(array.shape, array.strides):
            if stride < 0:
                low += (count - 1) * stride
            else:
                high += (count - 1) * stride
        whole = _owner(array)
        start = low - _address(whole)
        return (whole, start, start + max(0, high - low), 1), array.nbytes
    view = memoryview(array)
    return _within(view, view.obj, 0, view.nbytes, 1), view.nbytes


def _owner(obj: object) -> object:
    """The object that owns the memory of another."""
    while isinstance(obj, np.ndarray) and obj.base is not None:
        obj = obj.base
    return obj.obj if isinstance(obj, memoryview) else obj


def _within(memory: memoryview, owner: object, first: int, last: int, pieces: int) -> Place:
    """Bytes `first` to `last` of a view, in the object that owns its memory."""
    whole = _owner(owner)
    offset = 0
    if memory.nbytes:
        offset = address_of(memory) - _address(whole)
    return whole, offset + first, offset + last, pieces


def _address(owner: Any) -> int:
    if isinstance(owner, np.ndarray):
        address: int = owner.__array_interface__["data"][0]
        return address
    return address_of(memoryview(owner))
