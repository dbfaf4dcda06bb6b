"""The forms of message arguments: buffer, counts, displacements and datatypes.

mpi4py accepts many forms: a plain buffer, `[buf, type]`, `[buf, count]`, `[buf, count, type]`,
`[buf, (count, displ), type]`, `[buf, counts, displs, type]`, with type strings for datatypes and
None for values that can be inferred. All of them become a `MessageRegion` (or `Blocks`, for the
collectives with one block for each process), which holds the places of its bytes.

The most common forms, a contiguous array with or without a predefined datatype, take a short path;
all others go through `_simple`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from operator import index
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import cint, fail, integer, named, sequence
from pysmpi.mpi.base.exporting import acquire
from pysmpi.mpi.base.integers import plain_integers
from pysmpi.mpi.buffers.contiguous import FORMATS, contiguous
from pysmpi.mpi.buffers.memory import is_bottom, origin_of
from pysmpi.mpi.buffers.regions import EMPTY, Blocks, MessageRegion, copy_message, place
from pysmpi.mpi.datatypes.datatypes import (
    BYTE,
    DATATYPE_NULL,
    Datatype,
    _typedict,
    handles,
    integers,
)

__all__ = [
    "EMPTY",
    "Blocks",
    "MessageRegion",
    "check_same",
    "copy_message",
    "datatype_argument",
    "equal_blocks",
    "is_integral",
    "matching",
    "partitioned",
    "place",
    "receive",
    "reduce_scatter_counts",
    "reduction",
    "send",
    "unread",
    "vector",
    "vector_w",
]

F = TypeVar("F", bound=Callable[..., object])


_reading: list[object] = []  # the specifications that are being read, the innermost last


def _reads(function: F) -> F:
    """Remember the first argument for error messages while a function reads it."""

    @wraps(function)
    def reading(spec: object, *args: object, **kwargs: object) -> object:
        _reading.append(spec)
        try:
            return function(spec, *args, **kwargs)
        finally:
            _reading.pop()

    return reading  # type: ignore[return-value]


def send(spec: object, rank: int = 0) -> MessageRegion:
    """The message of a send to `rank`."""
    if rank == c.PROC_NULL:
        return EMPTY
    return contiguous(spec, False) or _parse(spec, False)


def receive(spec: object, rank: int = 0) -> MessageRegion:
    """The message of a receive from `rank`."""
    if rank == c.PROC_NULL:
        return EMPTY
    return contiguous(spec, True) or _parse(spec, True, partly=True)


def partitioned(spec: object, writable: bool, rank: int, partitions: int) -> Blocks:
    """The message of a partitioned send or receive: a block for each partition."""
    return equal_blocks(spec, writable, partitions, rank)


def reduction(spec: object, writable: bool, rank: int = 0) -> MessageRegion:
    """The buffer of a broadcast or a reduction, or of input and output."""
    if rank == c.PROC_NULL:
        return EMPTY
    return contiguous(spec, writable) or _parse(spec, writable)


def unread(spec: object, writable: bool, rank: int = 0) -> MessageRegion:
    """The count and datatype of a buffer that MPI does not access; the datatype may be null."""
    if rank == c.PROC_NULL:
        return EMPTY
    parsed = _simple(spec, writable, 1)
    return MessageRegion(parsed.datatype, parsed.count, 0, EMPTY.data)


def matching(send: object, receive: object) -> tuple[MessageRegion, MessageRegion]:
    """The two buffers of a reduction, which have to be equal in datatype and count.

    These are checked before the memory: a wrong datatype may make a buffer look too small.
    """
    target = contiguous(receive, True) or _simple(receive, True, 1)
    source = contiguous(send, False) or _simple(send, False, 1)
    check_same(source, target)
    return (
        source if isinstance(source, MessageRegion) else place(*source, writable=False),
        target if isinstance(target, MessageRegion) else place(*target, writable=True),
    )


def check_same(send: Any, receive: Any) -> None:
    """Refuse the buffers of a reduction that differ in datatype or count."""
    if send.datatype is not receive.datatype and send.datatype != receive.datatype:
        raise ValueError("mismatch in send and receive MPI datatypes")
    if send.count != receive.count:
        raise ValueError(f"mismatch in send count {send.count} and receive count {receive.count}")


def reduce_scatter_counts(
    counts: object,
    send: MessageRegion,
    receive: MessageRegion,
    in_place: bool,
    size: int,
    rank: int,
) -> list[int]:
    """The counts of all `size` processes in a Reduce_scatter, checked against the buffers."""
    numbers = plain_integers(counts)
    items = sequence(counts) if numbers is None else numbers
    if len(items) != size:
        raise ValueError(f"expecting {size} items, got {len(items)}")
    if numbers is None:
        numbers = [integer(item) for item in items]
    total = sum(numbers)
    if in_place:
        if receive.count != total:
            raise ValueError(f"mismatch in receive count {receive.count} and sum(counts) {total}")
        return numbers
    if send.datatype is not receive.datatype and send.datatype != receive.datatype:
        raise ValueError("mismatch in send and receive MPI datatypes")
    if send.count != total:
        raise ValueError(f"mismatch in send count {send.count} and sum(counts) {total}")
    if receive.count != numbers[rank]:
        raise ValueError(
            f"mismatch in receive count {receive.count} and counts[{rank}] {numbers[rank]}"
        )
    return numbers


def datatype_argument(spec: Any) -> Datatype:
    """A datatype argument: a handle, or a type string."""
    if isinstance(spec, Datatype):
        return spec
    try:
        return _typedict[spec]
    except KeyError:
        where = named(spec) or _where()
        raise KeyError(f"{where}cannot map {spec!r} to MPI datatype") from None


def datatype_of(format: str) -> Datatype:
    """The datatype of a format of the buffer protocol."""
    result = _FORMATS.get(format)
    if result is not None:
        return result
    if format[0] == _FOREIGN_ORDER:
        raise BufferError(f"format string {format!r} with non-native byte order")
    return datatype_argument(format[1:] if format[0] in "@<>" else format)


def _split(spec: object, nested: tuple[type, ...]) -> tuple[Any, Any, Any, Any]:
    """(buffer, counts, displacements, datatype) of an argument; None for omitted ones.

    `nested` are the types that can hold counts and displacements together.
    """
    if not isinstance(spec, (list, tuple)):
        return spec, None, None, None
    match len(spec):
        case 2:
            obj, counts = spec
            if isinstance(counts, (Datatype, str)):
                return obj, None, None, counts
            datatype = None
        case 3:
            obj, counts, datatype = spec
        case 4:
            return tuple(spec)
        case n:
            raise ValueError(f"{_where()}expecting 2 to 4 items, got {n}")
    displacements: Any = None
    if isinstance(counts, nested):
        pair: Any = counts
        if len(pair) != 2:
            raise ValueError(
                f"{_where()}expecting (counts, displacements), got {len(pair)} values in {pair!r}"
            )
        counts, displacements = pair
    return obj, counts, displacements, datatype


def _memory(
    spec: object, obj: object, typespec: object, writable: bool
) -> tuple[memoryview | None, Datatype]:
    """The memory and the datatype of a message; no memory for BOTTOM and None."""
    if isinstance(spec, (list, tuple)) and is_bottom(obj):
        return None, datatype_argument(typespec)
    try:
        exported = acquire(obj, writable, typespec is None)
    except TypeError as error:
        if spec is obj and not (
            hasattr(obj, "__dlpack__") or hasattr(obj, "__cuda_array_interface__")
        ):
            raise TypeError(
                f"{_where()}expecting buffer or list/tuple, got '{type(spec).__name__}'"
            ) from error
        raise
    datatype = datatype_of(exported.format) if typespec is None else datatype_argument(typespec)
    return exported.memory, datatype


def _where() -> str:
    """The argument of a program's call that is being read, for an error message."""
    return named(_reading[-1], "message") if _reading else "message: "


def _extent(datatype: Datatype, purpose: str) -> int:
    """The extent of a datatype, which has to be positive for `purpose`."""
    record = datatype._sync()
    if record is None:
        raise ValueError(f"{_where()}cannot {purpose}, datatype is null")
    layout = record.layout
    extent: int = layout.extent
    if extent <= 0:
        raise ValueError(
            f"{_where()}cannot {purpose}, datatype extent {extent} (lb:{layout.lb}, ub:{layout.ub})"
        )
    return extent


def _infer(nbytes: int, datatype: Datatype) -> int:
    """The number of elements in a buffer of this number of bytes."""
    extent = _extent(datatype, "infer count")
    if nbytes % extent:
        raise ValueError(
            f"{_where()}cannot infer count, buffer length {nbytes} is not a multiple "
            f"of datatype extent {extent} (lb:{datatype.lb}, ub:{datatype.ub})"
        )
    return nbytes // extent


class _Read(NamedTuple):
    """A parsed message without its place in memory: the arguments of `place`."""

    obj: object
    memory: memoryview | None
    origin: int
    count: int  # type: ignore[assignment]  # shadows tuple.count, which nobody wants here
    datatype: Datatype


@_reads
def _simple(spec: object, writable: bool, blocks: int) -> _Read:
    """A message of one block, or of equal blocks."""
    obj, count_spec, displ_spec, typespec = _split(spec, (list, tuple))
    memory, datatype = _memory(spec, obj, typespec, writable)
    nbytes = 0 if memory is None else memory.nbytes
    offset = origin_of(obj)
    if displ_spec is not None:
        displacement = integer(displ_spec)
        if displacement < 0:
            raise ValueError(f"{_where()}negative displacement {displacement}")
        if displacement > 0:
            extent = _extent(datatype, "handle displacement")
            offset = displacement * extent
            if offset > nbytes:
                raise ValueError(
                    f"{_where()}displacement {displacement} out of bounds, "
                    f"number of datatype entries {nbytes // extent}"
                )
            nbytes -= offset
    count = 0
    if count_spec is not None:
        count = integer(count_spec)
        if count < 0:
            raise ValueError(f"{_where()}negative count {count}")
        if count > 0 and obj is None:
            raise ValueError(f"{_where()}buffer is None but count is {count}")
    elif nbytes > 0:
        count = _infer(nbytes, datatype)
        if blocks > 1:
            count, rest = divmod(count, blocks)
            if rest:
                raise ValueError(
                    f"{_where()}cannot infer count, number of entries "
                    f"{count * blocks + rest} is not a multiple of required number "
                    f"of blocks {blocks}"
                )
    return _Read(obj, memory, offset, count, datatype)


def _parse(spec: object, writable: bool, partly: bool = False) -> MessageRegion:
    """The message of any spelling."""
    return place(*_simple(spec, writable, 1), writable=writable, partly=partly)


def equal_blocks(spec: object, writable: bool, blocks: int, rank: int = 0) -> Blocks:
    """The buffer of a collective with as many equal blocks as processes."""
    if rank == c.PROC_NULL:
        return Blocks(None, None, writable, BYTE, (0,) * blocks, (0,) * blocks)
    obj, memory, offset, count, datatype = _simple(spec, writable, blocks)
    step = count * datatype._live().layout.extent
    return Blocks(
        obj,
        memory,
        writable,
        datatype,
        (count,) * blocks,
        range(offset, offset + step * blocks, step) if step else (offset,) * blocks,
    )


@_reads
def vector(spec: object, writable: bool, blocks: int, rank: int = 0) -> Blocks:
    """The buffer of a v-collective: blocks of different counts, displacements in elements."""
    if rank == c.PROC_NULL:
        return Blocks(None, None, writable, BYTE, (0,) * blocks, (0,) * blocks)
    obj, count_spec, displ_spec, typespec = _split(spec, (tuple,))
    memory, datatype = _memory(spec, obj, typespec, writable)
    if count_spec is None:
        total = _infer(memory.nbytes, datatype) if memory is not None and memory.nbytes else 0
        whole, rest = divmod(total, blocks) if blocks else (0, 0)
        counts = [whole + (i < rest) for i in range(blocks)]
    elif is_integral(count_spec):
        counts = [integer(count_spec)] * blocks
    else:
        counts = integers(count_spec, blocks)
    extent = datatype._live().layout.extent
    origin = origin_of(obj)
    offsets: Sequence[int]
    if displ_spec is None:
        offsets, at = [], origin
        for n in counts:
            offsets.append(at)
            at += n * extent
    elif is_integral(displ_spec):
        step = integer(displ_spec) * extent
        offsets = [origin + i * step for i in range(blocks)]
    else:
        offsets = [origin + d * extent for d in integers(displ_spec, blocks)]
    _check_counts(counts)
    return Blocks(obj, memory, writable, datatype, counts, offsets)


@_reads
def vector_w(spec: Any, writable: bool, blocks: int) -> Blocks:
    """The buffer of a w-collective: blocks of different datatypes, displacements in bytes."""
    match len(sequence(spec)):
        case 2:
            obj, types = spec
            counts = offsets = None
        case 3:
            obj, pair, types = spec
            try:
                counts, offsets = pair
            except (TypeError, ValueError) as error:
                expected = f"{_where()}expecting (counts, displacements), got {pair!r}"
                raise type(error)(expected) from None
        case 4:
            obj, counts, offsets, types = spec
        case n:
            raise ValueError(f"{_where()}expecting 2 to 4 items, got {n}")
    memory = None
    if is_bottom(obj):
        if counts is None:
            raise ValueError(f"{_where()}BOTTOM requires counts")
        if offsets is None:
            raise ValueError(f"{_where()}BOTTOM requires displs")
    else:
        memory = acquire(obj, writable).memory
    if counts is None and offsets is None:
        counts, offsets = [1] * blocks, [0] * blocks
    else:
        counts, offsets = integers(counts, blocks), integers(offsets, blocks)  # type: ignore[arg-type]
    origin = origin_of(obj)
    if origin:
        offsets = [origin + offset for offset in offsets]
    _check_counts(counts)
    return Blocks(obj, memory, writable, DATATYPE_NULL, counts, offsets, handles(types, blocks))


def _check_counts(counts: Sequence[int]) -> None:
    for i, n in enumerate(counts):
        if n < 0:
            fail(c.ERR_COUNT, f"counts[{i}] is {n}")


def object_size(size: object) -> int:
    """The size (bytes) that a lower-case receive names in place of memory."""
    nbytes = cint(size)
    if nbytes < 0:
        raise SystemError(f"{named(size)}negative size {nbytes}")
    return nbytes


def is_integral(obj: Any) -> bool:
    """Whether an argument is one integer rather than a sequence of them."""
    if not hasattr(type(obj), "__index__"):
        return False
    try:
        len(obj)
    except Exception:
        pass
    else:
        return False
    try:
        index(obj)
    except Exception:
        return False
    return True


_FOREIGN_ORDER = ">" if np.little_endian else "<"
_NATIVE_ORDER = "<" if np.little_endian else ">"
# Formats of the buffer protocol -> datatype, with and without the marks of native byte order.
_FORMATS: dict[str, Datatype] = {
    prefix + code: datatype
    for code, datatype in _typedict.items()
    for prefix in ("", "@", _NATIVE_ORDER)
}
# An element without a format is a number of bytes.
_FORMATS[""] = BYTE
for _format, _datatype in _FORMATS.items():
    _record = _datatype._live()
    if _record.unit:
        FORMATS[_format] = _datatype, _record.unit, _format == "B"


def held(blocks: Blocks) -> Blocks:
    """Blocks with datatypes that stay valid if the program frees its handles during the call."""
    if blocks.types is not None:
        blocks.types = [lasting(datatype) for datatype in blocks.types]
    else:
        blocks.datatype = lasting(blocks.datatype)
    return blocks


def lasting(datatype: Datatype) -> Datatype:
    """A handle that the program cannot free: a constant, or another handle of the datatype.

    The datatype itself lives as long as a handle has it (MPI 4.1, section 5.1.9).
    """
    return datatype if id(datatype) in Datatype._constants else Datatype(datatype)
