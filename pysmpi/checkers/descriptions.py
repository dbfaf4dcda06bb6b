"""Whether the datatype of a message describes the elements of its array (MPI 4.1, 3.3.1)."""

from __future__ import annotations

import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from pysmpi.checkers.signatures import basic_name
from pysmpi.mpi.base.constants import PROC_NULL
from pysmpi.mpi.buffers.spellings import datatype_argument, is_integral
from pysmpi.mpi.datatypes.layouts import Layout, leaves
from pysmpi.mpi.datatypes.records import Type

_MOST = 1 << 12  # bytes of a datatype whose places are compared with the fields of a record
_judged: dict[tuple[str, int], tuple[object, str | None]] = {}


def misdescribed(spec: object) -> str | None:
    """Return the error in `[array, ..., datatype]` as a text; None if there is none.

    Bytes may be described as anything, and complex numbers as pairs of real ones.
    """
    if not isinstance(spec, list | tuple) or len(spec) < 2:
        return None
    dtype = _dtype(spec[0])
    if dtype is None:
        return None
    kinds = spec[-1] if isinstance(spec[-1], list | tuple) else [spec[-1]]
    for kind in kinds:
        try:
            record = datatype_argument(kind)._impl
        except Exception:  # an integer, or what the call itself will refuse
            return None
        if record is None:
            return None
        key = str(dtype) if dtype.names is None else str(dtype.descr), id(record)
        entry = _judged.get(key)
        if entry is None or entry[0] is not record:
            if len(_judged) > 1000:
                _judged.clear()
            entry = _judged[key] = record, _judge(dtype, record)
        if entry[1] is not None:
            return entry[1]
    return None


def too_small(spec: object, source: object) -> tuple[int, int] | None:
    """The bytes that `[array, count, datatype]` names, and those of its array if it has fewer."""
    if not isinstance(spec, list | tuple) or len(spec) != 3 or source == PROC_NULL:
        return None
    count, first = spec[1], 0
    if isinstance(count, list | tuple) and len(count) == 2:
        count, first = count
    nbytes = getattr(spec[0], "nbytes", None)
    if not is_integral(count) or not is_integral(first) or nbytes is None or int(count) <= 0:
        return None
    try:
        record = datatype_argument(spec[2])._impl
    except Exception:  # the call itself will refuse it
        return None
    if record is None or record.layout.size == 0:
        return None
    needed = int(first) * record.layout.extent + int(record.layout.plan(int(count)).high)
    return (needed, int(nbytes)) if needed > nbytes else None


def _dtype(obj: object) -> np.dtype | None:
    """The type of an array's elements; None if there is none, or if they are plain bytes."""
    dtype: object = getattr(obj, "dtype", None)
    if isinstance(obj, array.array):
        dtype = np.dtype(obj.typecode)
    if not isinstance(dtype, np.dtype) or dtype.hasobject:
        return None
    if dtype.names is None and (dtype.itemsize == 1 or dtype.kind not in "iufc" or dtype == "f2"):
        return None
    return dtype


def _judge(dtype: np.dtype, record: Type) -> str | None:
    if dtype.names is not None:
        return _compare_fields(dtype, record)
    for name in _names(record):
        if not _same(dtype.name, name):
            return f"an array of {dtype.name} is described as {name}"
    return None


def _names(record: Type) -> Iterator[str]:
    """The basic types of a datatype; the parts of a pair as for MAXLOC."""
    for leaf in [record] if record.unit else leaves(record.layout.signature):
        if leaf.dtype is not None and leaf.dtype.names is not None:
            yield from (leaf.dtype[name].name for name in leaf.dtype.names)
        elif leaf.layout.size > 1:
            yield basic_name(leaf)


def _same(one: str, other: str) -> bool:
    """Whether two basic types are the same, or a complex number and its parts."""
    if one == other or "packed" in (one, other):
        return True
    pairs = {("complex64", "float32"), ("complex128", "float64"), ("complex256", "float128")}
    numeric = one.startswith(("int", "uint", "float", "complex")) and other.startswith(
        ("int", "uint", "float", "complex")
    )
    return not numeric or (one, other) in pairs or (other, one) in pairs


def _compare_fields(dtype: np.dtype, record: Type) -> str | None:
    """Compare the place and the type of each member with the fields of a record."""
    layout = record.layout
    if not 1 < layout.size <= _MOST or layout.extent % dtype.itemsize:
        return None
    fields = dict(_fields(dtype, 0))
    position = 0
    places = _places(layout)
    for leaf in _members(layout.signature):
        size = leaf.layout.size
        if size > 1 and (leaf.dtype is None or leaf.dtype.names is None):
            at = int(places[position]) % dtype.itemsize
            field = fields.get(at)
            name = basic_name(leaf)
            if field is None:
                return f"{name} at byte {at} of an element, where no field begins"
            if _raw(field):
                bare = all(i in fields and _raw(fields[i]) for i in range(at, at + size))
            else:
                bare = _same(field.name, name)
            if not bare:
                return f"a field of {field.name} at byte {at} is described as {name}"
        position += size
    return None


def _raw(dtype: np.dtype) -> bool:
    return dtype.itemsize == 1 or dtype.kind not in "iufc"


def _fields(dtype: np.dtype, offset: int) -> Iterator[tuple[int, np.dtype]]:
    """The basic fields of a type, with their offsets (bytes)."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        for i in range(int(np.prod(shape))):
            yield from _fields(base, offset + i * base.itemsize)
    elif dtype.names is not None:
        for inner, at, *_ in (dtype.fields or {}).values():
            yield from _fields(inner, offset + at)
    elif _raw(dtype):
        yield from ((offset + i, dtype) for i in range(dtype.itemsize))
    else:
        yield offset, dtype


def _members(signature: Any) -> Iterator[Type]:
    for count, what in signature:
        for _ in range(count):
            if isinstance(what, tuple):
                yield from _members(what)
            else:
                yield what


def _places(layout: Layout) -> np.ndarray:
    """The offset in memory (bytes) of each byte of one element's packed form."""
    plan = layout.plan(1)
    low, high = int(plan.low), int(plan.high)
    index = np.arange(low, high, dtype=np.int64) - low
    offsets = np.zeros(layout.size, np.int64)
    for byte in range(3):
        part = ((index >> 8 * byte) & 0xFF).astype(np.uint8).data
        stream = bytearray(layout.size)
        plan.pack(part, -low, stream)
        offsets |= np.frombuffer(stream, np.uint8).astype(np.int64) << 8 * byte
    return offsets + low
