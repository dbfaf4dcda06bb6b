"""Type signatures: the basic types of a message, by the rules of type matching (MPI 4.1, 3.3.1)."""

from __future__ import annotations

from pysmpi.mpi.buffers.spellings import Blocks, MessageRegion
from pysmpi.mpi.datatypes.layouts import leaves
from pysmpi.mpi.datatypes.records import PREDEFINED, Type

# Basic types, by a name that equal representations share, with the number of each.
Signature = dict[str, int]

_BYTES = "bytes"  # every type of one byte: programs spell strings and flags in many ways
_PACKED = PREDEFINED["PACKED"]
_names: dict[int, tuple[Type, str]] = {}


def basic_name(record: Type) -> str:
    """The class of a basic datatype: `int64`, `float32`; equal for types of one representation."""
    entry = _names.get(id(record))
    if entry is None:
        if record is _PACKED:
            name = "packed"
        elif record.layout.size == 1:
            name = _BYTES
        elif record.dtype is not None and record.dtype.names is None:
            name = record.dtype.name
        else:
            name = record.name or f"{record.kind}{record.layout.size}"
        entry = _names[id(record)] = record, name
    return entry[1]


def of_type(record: Type, count: int) -> Signature:
    """The signature of `count` elements of a datatype."""
    if count == 0:
        return {}
    if record.unit:
        return {basic_name(record): count}
    signature: Signature = {}
    for leaf, number in leaves(record.layout.signature).items():
        name = basic_name(leaf)
        signature[name] = signature.get(name, 0) + number * count
    return signature


def of_message(message: object) -> Signature | None:
    """The signature of a message; None if it is packed data already."""
    if isinstance(message, MessageRegion):
        record = message.datatype._impl
        return None if record is None else of_type(record, message.count)
    return None


def of_block(blocks: Blocks, i: int) -> Signature | None:
    """The signature of one block of a collective buffer."""
    datatype = blocks.datatype if blocks.types is None else blocks.types[i]
    record = datatype._impl
    return None if record is None else of_type(record, blocks.counts[i])


def fits(sent: Signature, received: Signature) -> bool:
    """Whether a message has the types of its receive, which may have room for more."""
    if "packed" in sent or "packed" in received:
        return True
    return all(name in received for name in sent)


def equal(one: Signature, other: Signature) -> bool:
    """Whether two signatures are the same, as collective calls need it."""
    return "packed" in one or "packed" in other or one == other


def text(signature: Signature) -> str:
    """`8 float64`, or `nothing`."""
    return " + ".join(f"{count:,} {name}" for name, count in signature.items()) or "nothing"
