"""The portable representation external32 (MPI 4.1, section 14.5.2).

Everything is big-endian and packed; a C long has four bytes, a wide character two, and a long
double is an IEEE binary128. A datatype is converted member by member of its signature, all of
its elements at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pysmpi.mpi.datatypes.layouts import Signature
from pysmpi.mpi.datatypes.records import PREDEFINED, Type

# Types that are narrower outside than in memory: dtype outside.
_NARROW = {
    PREDEFINED["LONG"]: ">i4",
    PREDEFINED["UNSIGNED_LONG"]: ">u4",
    PREDEFINED["WCHAR"]: ">u2",
}
# Whether a long double of this machine is the 80-bit format of the x87.
_EXTENDED = np.finfo(np.longdouble).nmant == 63


def size(signature: Signature) -> int:
    """Bytes of one element."""
    total = 0
    for count, what in signature:
        total += count * (size(what) if isinstance(what, tuple) else _width(what))
    return total


def _width(member: Type) -> int:
    narrow = _NARROW.get(member)
    return member.layout.size if narrow is None else np.dtype(narrow).itemsize


def encode(signature: Signature, count: int, native: Any, stream: Any) -> None:
    """Convert `count` packed elements to external32."""
    _convert(
        signature,
        np.frombuffer(native, np.uint8).reshape(count, -1),
        np.frombuffer(stream, np.uint8).reshape(count, -1),
        _encode_member,
    )


def decode(signature: Signature, count: int, stream: Any, native: Any) -> None:
    """Convert `count` elements of external32 to packed elements of this machine."""
    _convert(
        signature,
        np.frombuffer(native, np.uint8).reshape(count, -1),
        np.frombuffer(stream, np.uint8).reshape(count, -1),
        _decode_member,
    )


def _convert(
    signature: Signature,
    native: np.ndarray,
    stream: np.ndarray,
    member: Callable[[Type, np.ndarray, np.ndarray], None],
) -> None:
    """Walk a signature; each row of the two arrays is an element."""
    inner = outer = 0
    for count, what in signature:
        nested = isinstance(what, tuple)
        wide = count * (sum(n * _native(w) for n, w in what) if nested else what.layout.size)
        narrow = count * (size(what) if nested else _width(what))
        here = native[:, inner : inner + wide]
        there = stream[:, outer : outer + narrow]
        rows = len(native) * count
        # Reshaping a part of the rows copies it: convert the copy and bring it back.
        here_flat, there_flat = here.reshape(rows, -1), there.reshape(rows, -1)
        if nested:
            _convert(what, here_flat, there_flat, member)
        else:
            member(what, here_flat, there_flat)
        target, flat = (there, there_flat) if member is _encode_member else (here, here_flat)
        if not np.shares_memory(target, flat):
            target[...] = flat.reshape(target.shape)
        inner += wide
        outer += narrow


def _native(what: Any) -> int:
    if isinstance(what, tuple):
        return sum(n * _native(w) for n, w in what)
    total: int = what.layout.size
    return total


def _encode_member(member: Type, native: np.ndarray, stream: np.ndarray) -> None:
    narrow = _NARROW.get(member)
    if narrow is not None:
        assert member.dtype is not None
        stream.view(narrow)[...] = native.view(member.dtype).astype(narrow)
    elif _is_extended(member):
        stream.reshape(-1, 16)[...] = _to_quad(native.reshape(-1, 16))
    else:
        word = _word(member)
        stream.reshape(-1, word)[...] = _swapped(native.reshape(-1, word))


def _decode_member(member: Type, native: np.ndarray, stream: np.ndarray) -> None:
    narrow = _NARROW.get(member)
    if narrow is not None:
        assert member.dtype is not None
        native.view(member.dtype)[...] = stream.view(narrow)
    elif _is_extended(member):
        native.reshape(-1, 16)[...] = _from_quad(stream.reshape(-1, 16))
    else:
        word = _word(member)
        native.reshape(-1, word)[...] = _swapped(stream.reshape(-1, word))


def _word(member: Type) -> int:
    """Bytes of one number: a complex member has two."""
    nbytes: int = member.layout.size
    return nbytes // 2 if member.kind == "complex" else nbytes


def _swapped(rows: np.ndarray) -> np.ndarray:
    return rows[:, ::-1] if np.little_endian else rows


def _is_extended(member: Type) -> bool:
    return _EXTENDED and member.dtype is not None and member.dtype.char in "gG"


_LOW63 = np.uint64(2**63 - 1)
_LOW48 = np.uint64(2**48 - 1)


def _to_quad(rows: np.ndarray) -> np.ndarray:
    """x87 numbers (64-bit significand, 16 bits of sign and exponent) as big-endian binary128."""
    words = np.ascontiguousarray(rows).view("<u8")
    fraction = words[:, 0] & _LOW63
    head = words[:, 1] & np.uint64(0xFFFF)
    out = np.empty((len(words), 2), ">u8")
    out[:, 0] = head << np.uint64(48) | fraction >> np.uint64(15)
    out[:, 1] = fraction << np.uint64(49)
    return out.view(np.uint8).reshape(-1, 16)


def _from_quad(rows: np.ndarray) -> np.ndarray:
    """Big-endian binary128 as x87 numbers, the fraction rounded to 63 bits."""
    words = np.ascontiguousarray(rows).view(">u8").astype("<u8")
    head = words[:, 0] >> np.uint64(48)
    fraction = (words[:, 0] & _LOW48) << np.uint64(15) | words[:, 1] >> np.uint64(49)
    exponent = head & np.uint64(0x7FFF)
    special = exponent == np.uint64(0x7FFF)
    fraction = fraction + (words[:, 1] >> np.uint64(48) & np.uint64(1)) * ~special
    head = head + (fraction >> np.uint64(63))
    fraction &= _LOW63
    # This format stores the integer bit of the significand.
    normal = (head & np.uint64(0x7FFF)) != 0
    out = np.zeros((len(words), 2), "<u8")
    out[:, 0] = fraction | normal.astype(np.uint64) << np.uint64(63)
    out[:, 1] = head
    return out.view(np.uint8).reshape(-1, 16)
