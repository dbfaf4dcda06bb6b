"""The movement of a block of data in a collective call: from a message or packed data to a message.

This module is compiled: every block passes through it.
"""

from __future__ import annotations

from typing import Any, Final

from pysmpi.mpi.base.constants import ERR_TRUNCATE, SUCCESS
from pysmpi.mpi.buffers.contiguous import MessageRegion
from pysmpi.mpi.buffers.copying import copy
from pysmpi.mpi.buffers.payload import PAYLOAD, move, snapshot

# A constant of the compiled module, which is read without a look into a dictionary.
_PAYLOAD: Final[Any] = PAYLOAD


def transfer(source: Any, target: MessageRegion) -> int:
    """Copy a message, or packed data, to a message; the error class."""
    if isinstance(source, MessageRegion):
        nbytes = source.nbytes
        data = source.data
        if data is not None and target.data is not None and nbytes == target.nbytes:
            if not _PAYLOAD.active:
                copy(target.data, data)
                return SUCCESS
        move(source, target)
    else:
        target.unpack(source)
        nbytes = len(source)
    return ERR_TRUNCATE if nbytes > target.nbytes else SUCCESS


def copied(source: memoryview | None, target: memoryview | None) -> bool:
    """Copy from memory to memory; return False if more is needed."""
    if source is None or target is None or source.nbytes != target.nbytes:
        return False
    if not (_PAYLOAD.active and _PAYLOAD.stays(source, target)):
        copy(target, source)
    return True


def packed(source: object) -> Any:
    """The packed data of a message, or the packed data that it already is."""
    return source.pack() if isinstance(source, MessageRegion) else source


def saved(source: object) -> object:
    """A copy of the packed data of a message, or its packed data itself.

    The message itself if its data is not copied.
    """
    return snapshot(source) if isinstance(source, MessageRegion) else source
