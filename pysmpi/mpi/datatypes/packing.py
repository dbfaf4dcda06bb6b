"""Pack and unpack, in the machine's own representation and in external32 (MPI 4.1, 5.2, 5.3)."""

from __future__ import annotations

from typing import Any

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.exporting import acquire
from pysmpi.mpi.datatypes import external32
from pysmpi.mpi.datatypes.records import Type


def check_representation(datarep: str) -> None:
    """Only external32 can be packed by name."""
    if datarep != "external32":
        fail(c.ERR_UNSUPPORTED_DATAREP, f"datarep is {datarep!r}, expecting 'external32'")


def size(record: Type, count: int) -> int:
    """Bytes that `count` elements take when packed."""
    return _counted(count) * record.layout.size


def external_size(record: Type, count: int) -> int:
    """Bytes that `count` elements take in external32."""
    return _counted(count) * external32.size(record.layout.signature)


def pack(record: Type, inbuf: object, outbuf: object, position: int) -> int:
    """Pack all of `inbuf` into `outbuf` from byte `position` on; return the position after."""
    memory, count = _elements(record, inbuf, False)
    target = acquire(outbuf, True).memory
    stop = _room(position, size(record, count), target.nbytes, "pack")
    if stop > position:
        _read(record, count, memory, target[position:stop])
    return stop


def unpack(record: Type, inbuf: object, position: int, outbuf: object) -> int:
    """Unpack from byte `position` of `inbuf` until `outbuf` is full; return the position after."""
    memory, count = _elements(record, outbuf, True)
    source = acquire(inbuf).memory
    stop = _room(position, size(record, count), source.nbytes, "unpack")
    if stop > position:
        _write(record, count, memory, source[position:stop])
    return stop


def pack_external(record: Type, inbuf: object, outbuf: object, position: int) -> int:
    """As `pack`, in external32."""
    memory, count = _elements(record, inbuf, False)
    target = acquire(outbuf, True).memory
    stop = _room(position, external_size(record, count), target.nbytes, "pack")
    if stop > position:
        native = bytearray(size(record, count))
        _read(record, count, memory, native)
        external32.encode(record.layout.signature, count, native, target[position:stop])
    return stop


def unpack_external(record: Type, inbuf: object, position: int, outbuf: object) -> int:
    """As `unpack`, from external32."""
    memory, count = _elements(record, outbuf, True)
    source = acquire(inbuf).memory
    stop = _room(position, external_size(record, count), source.nbytes, "unpack")
    if stop > position:
        native = bytearray(size(record, count))
        external32.decode(record.layout.signature, count, source[position:stop], native)
        _write(record, count, memory, native)
    return stop


def _counted(count: int) -> int:
    if count < 0:
        fail(c.ERR_COUNT, f"count is {count}")
    return count


def _elements(record: Type, buf: object, writable: bool) -> tuple[memoryview, int]:
    """A buffer and its number of elements: the number of whole extents."""
    memory = acquire(buf, writable).memory
    layout = record.layout
    count = memory.nbytes // layout.extent
    if count < 0:
        fail(c.ERR_TYPE, f"a datatype of extent {layout.extent} does not fill a buffer")
    if count and layout.size:
        plan = layout.plan(count)
        if plan.low < 0 or plan.high > memory.nbytes:
            fail(
                c.ERR_BUFFER,
                f"{count} elements take bytes {plan.low} to {plan.high} of a "
                f"buffer of {memory.nbytes} bytes",
            )
    return memory, count


def _room(position: int, nbytes: int, available: int, verb: str) -> int:
    if position < 0:
        fail(c.ERR_ARG, f"position is {position}")
    if nbytes and position + nbytes > available:
        fail(
            c.ERR_TRUNCATE,
            f"{nbytes} bytes to {verb} at position {position} of a buffer of {available} bytes",
        )
    return position + nbytes


def _read(record: Type, count: int, memory: memoryview, stream: Any) -> None:
    if record.layout.dense:
        memoryview(stream)[:] = memory[: len(stream)]
    else:
        record.layout.plan(count).pack(memory, 0, stream)


def _write(record: Type, count: int, memory: memoryview, stream: Any) -> None:
    if record.layout.dense:
        memory[: len(stream)] = stream
    else:
        record.layout.plan(count).unpack(memory, 0, stream)
