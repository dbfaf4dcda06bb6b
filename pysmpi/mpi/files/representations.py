"""Representation of data in a file (MPI 4.1, section 14.5).

`native` is the memory of this machine, and so is `internal`: all simulated hosts are alike.
`external32` is MPI's portable representation. Programs may register others, which define the size
of a predefined datatype in the file and the conversions.

In the file, a derived datatype has the layout of its constructors over predefined types with the
sizes of the file; it is made again over these types.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.attributes import reported
from pysmpi.mpi.base.exceptions import cstring, fail
from pysmpi.mpi.base.handles import type_name
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.memory import buffer
from pysmpi.mpi.buffers.spellings import MessageRegion
from pysmpi.mpi.calls import computing, mpi
from pysmpi.mpi.datatypes import decoding, external32
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.mpi.datatypes.layouts import Layout, Signature, basic, leaves, members
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.files.storage import FileError
from pysmpi.mpi.internal_errors import touches_program

__all__ = ["Register_datarep"]


class Representation:
    """The representation of this machine, and the base of those that differ from it."""

    __slots__ = ("name",)

    converts = False  # whether data differ from those in memory

    def __init__(self, name: str) -> None:
        self.name = name

    def layout(self, record: Type) -> Layout:
        """The layout of a datatype in the file."""
        return record.layout

    def nbytes(self, message: MessageRegion) -> int:
        """Bytes that the data of a message take in the file."""
        return message.nbytes

    def memory_bytes(self, message: MessageRegion, nbytes: int) -> int:
        """Bytes of a message in memory for this number of its bytes in the file."""
        return nbytes

    def encode(self, message: MessageRegion) -> memoryview:
        """The data of a message as they are in the file."""
        return memoryview(message.pack())

    def decode(self, message: MessageRegion, stream: memoryview) -> None:
        """Store data that was read into the memory of a message."""
        message.unpack(stream)


class Converted(Representation):
    """A representation in which predefined types may have different sizes than in memory."""

    __slots__ = ("kept",)

    converts = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.kept: dict[Type, Type] = {}

    def size(self, record: Type) -> int:
        """Bytes of a predefined datatype in the file."""
        raise AssertionError("a representation knows the sizes of its types")

    def layout(self, record: Type) -> Layout:
        """The layout over types of the file's sizes."""
        return self._outside(record).layout

    def _outside(self, record: Type) -> Type:
        result = self.kept.get(record)
        if result is None:
            result = self._leaf(record) if record.predefined else _rebuilt(record, self._outside)
            if record.predefined:
                self.kept[record] = result
        return result

    def _leaf(self, record: Type) -> Type:
        size = self.size(record)
        return Type(c.COMBINER_NAMED, lambda: basic(size, 1, record))

    def nbytes(self, message: MessageRegion) -> int:
        """Bytes that the data of a message take in the file."""
        return message.count * self._element(message)

    def _element(self, message: MessageRegion) -> int:
        return self.layout(message.datatype._live()).size

    def memory_bytes(self, message: MessageRegion, nbytes: int) -> int:
        """Bytes of a message in memory for this number of its bytes in the file."""
        if nbytes == self.nbytes(message):
            return message.nbytes
        record = message.datatype._live()
        whole, rest = divmod(nbytes, self._element(message))
        size: int = record.layout.size
        return whole * size + self._inside(record.layout.signature, rest)[0]

    def _inside(self, signature: Signature, nbytes: int) -> tuple[int, int]:
        """(bytes in memory, bytes in the file) of the whole members in `nbytes` of the file."""
        inner = outer = 0
        for count, what in signature:
            if isinstance(what, tuple):
                each_inner, each_outer = self._inside(what, 1 << 62)
            else:
                each_inner, each_outer = what.layout.size, self._outside(what).layout.size
            fit = count if each_outer == 0 else min(count, (nbytes - outer) // each_outer)
            inner += fit * each_inner
            outer += fit * each_outer
            if fit < count:
                if isinstance(what, tuple):
                    more = self._inside(what, nbytes - outer)
                    inner, outer = inner + more[0], outer + more[1]
                break
        return inner, outer


class External32(Converted):
    """Big-endian, packed, of fixed sizes (MPI 4.1, section 14.5.2)."""

    __slots__ = ()

    def size(self, record: Type) -> int:
        """Bytes of a predefined datatype in external32."""
        return external32.size(record.layout.signature)

    def encode(self, message: MessageRegion) -> memoryview:
        """Convert to external32."""
        stream = bytearray(self.nbytes(message))
        if stream:
            signature = message.datatype._live().layout.signature
            external32.encode(signature, message.count, message.pack(), stream)
        return memoryview(stream)

    def decode(self, message: MessageRegion, stream: memoryview) -> None:
        """Convert from external32; an incomplete last element is converted as far as possible."""
        if not stream:
            return
        element = self._element(message)
        signature = message.datatype._live().layout.signature
        count = -(-len(stream) // element)
        whole = bytearray(count * element)
        whole[: len(stream)] = stream
        native = bytearray(message.nbytes // message.count * count)
        external32.decode(signature, count, whole, native)
        message.unpack(memoryview(native)[: self.memory_bytes(message, len(stream))])


class UserRepresentation(Converted):
    """A representation that the program has registered.

    A conversion function is called once for each message, with all its data items. It runs in the
    rank of the message, and its exceptions become ERR_CONVERSION.
    """

    __slots__ = ("extent_fn", "read_fn", "write_fn")

    def __init__(self, name: str, read_fn: object, write_fn: object, extent_fn: object) -> None:
        super().__init__(name)
        self.read_fn = read_fn
        self.write_fn = write_fn
        self.extent_fn = extent_fn

    def size(self, record: Type) -> int:
        """The extent that the program gives."""
        return int(self._call(self.extent_fn, Datatype._wrap(record)))

    def encode(self, message: MessageRegion) -> memoryview:
        """Let the program convert; without a function, the data are as in memory."""
        if self.write_fn is None:
            return memoryview(message.pack())
        stream = bytearray(self.nbytes(message))
        self._convert(self.write_fn, message, message.pack(), stream)
        return memoryview(stream)

    def decode(self, message: MessageRegion, stream: memoryview) -> None:
        """Let the program convert; without a function, the data are as in memory."""
        if self.read_fn is None:
            message.unpack(stream)
            return
        native = bytearray(message.nbytes)
        self._convert(self.read_fn, message, native, bytearray(stream))
        message.unpack(memoryview(native)[: self.memory_bytes(message, len(stream))])

    def _convert(
        self, function: object, message: MessageRegion, memory: object, stream: bytearray
    ) -> None:
        """Call a conversion function.

        Both buffers are packed, so the datatype of the program's own buffer is that of the data
        items, or the same number of bytes if they differ.
        """
        record = message.datatype._live()
        items = message.count * members(record.layout.signature)
        self._call(function, buffer(memory), _packed_type(record), items, buffer(stream), 0)

    @touches_program
    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            with computing():
                return function(*arguments)
        except builtins.Exception as error:
            reported(error)
            name = getattr(function, "__name__", "function")
            raise FileError(
                c.ERR_CONVERSION, f"{name} of data representation {self.name!r} has failed"
            ) from None


def _packed_type(record: Type) -> Datatype:
    """A datatype; its consecutive copies are the packed data of `record`."""
    basics = list(leaves(record.layout.signature))
    if len(basics) == 1:
        result: Datatype = Datatype._wrap(basics[0])
        return result
    types: list[Datatype] = []
    lengths: list[int] = []
    _flatten(record.layout.signature, 1, types, lengths)
    displacements, at = [], 0
    for length, datatype in zip(lengths, types):
        displacements.append(at)
        at += length * datatype.size
    packed = Datatype.Create_struct(lengths, displacements, types)
    return packed.Create_resized(0, at).Commit()


def _flatten(signature: Signature, times: int, types: list[Datatype], lengths: list[int]) -> None:
    for _ in range(times):
        for count, what in signature:
            if isinstance(what, tuple):
                _flatten(what, count, types, lengths)
            else:
                types.append(Datatype._wrap(what))
                lengths.append(count)


def _rebuilt(record: Type, outside: Callable[[Type], Type]) -> Type:
    """The datatype made again over other types."""
    types = [Datatype._wrap(outside(part)) for part in record.types]
    arguments = decoding.parameters(record, types)
    name = decoding.COMBINERS[record.combiner].lower()
    result: Type = getattr(types[0] if types else Datatype, f"Create_{name}")(**arguments)._live()
    return result


NATIVE = Representation("native")
_KNOWN: dict[str, Representation] = {
    "native": NATIVE,
    "internal": Representation("internal"),
    "external32": External32("external32"),
}


# The representations that a rank has registered.
REPRESENTATIONS: StateSlot[Rank, dict[str, Representation]] = StateSlot(Rank, dict)


def find(name: str) -> Representation | None:
    """The representation with this name, in the calling rank."""
    own = REPRESENTATIONS.of(current())
    return own.get(name) or _KNOWN.get(name) or _KNOWN.get(name.lower())


@mpi.local("14.5.3")
def Register_datarep(
    datarep: str,
    read_fn: Callable[[Any, Datatype, int, Any, int], None] | None,
    write_fn: Callable[[Any, Datatype, int, Any, int], None] | None,
    extent_fn: Callable[[Datatype], int],
) -> None:
    """Register user-defined data representations."""
    name = cstring(datarep)
    for argument, function in {"read_fn": read_fn, "write_fn": write_fn}.items():
        if function is not None and not callable(function):
            raise TypeError(f"{argument}: expected a function, got {type_name(function)}")
    if not name or len(name) >= c.MAX_DATAREP_STRING:
        fail(
            c.ERR_ARG,
            f"datarep has {len(name)} characters, expected 1 to {c.MAX_DATAREP_STRING - 1}",
        )
    own = REPRESENTATIONS.of(current())
    if name in own or name.lower() in _KNOWN:
        fail(c.ERR_DUP_DATAREP, f"data representation {name!r} is known already")
    own[name] = UserRepresentation(name, read_fn, write_fn, extent_fn)
