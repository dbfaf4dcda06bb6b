"""Data in the memory of a program: messages after parsing.

A contiguous message is a view of the program's own memory: moving it is one copy. Others are copied
through the plan of their layout.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.exported import at_address
from pysmpi.mpi.base.exporting import acquire, address_of
from pysmpi.mpi.buffers.contiguous import NOTHING, MessageRegion, copy_message
from pysmpi.mpi.buffers.memory import buffer
from pysmpi.mpi.datatypes.datatypes import BYTE, Datatype

__all__ = ["EMPTY", "NOTHING", "Blocks", "MessageRegion", "copy_message", "in_one_piece", "place"]


class Blocks:
    """The buffer of a collective operation: one block for each process.

    Block i is `counts[i]` elements of `types[i]`, `offsets[i]` bytes into the buffer.
    `datatype` and `count` are those of every block if the operation has equal blocks; `nbytes` is
    then the size of one block.
    """

    __slots__ = (
        "_count",
        "counts",
        "datatype",
        "_element",
        "_items",
        "obj",
        "offsets",
        "types",
        "writable",
        "_memory",
    )

    def __init__(
        self,
        obj: object,
        memory: memoryview | None,
        writable: bool,
        datatype: Datatype,
        counts: Sequence[int],
        offsets: Sequence[int],
        types: Sequence[Datatype] | None = None,
    ) -> None:
        self.obj = obj
        self._memory = memory
        self.writable = writable
        self.datatype = datatype
        self.counts = counts
        self.offsets = offsets
        self.types = types
        self._items: dict[int, MessageRegion] = {}
        self._element = -1  # bytes of an element, 0 if elements are not contiguous

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def count(self) -> int:
        """Elements of a block, where blocks are equal."""
        return self.counts[0] if self.counts else 0

    @property
    def nbytes(self) -> int:
        """Bytes of a block, where blocks are equal."""
        return self.sizes(1)[0] if self.counts else 0

    def sizes(self, stop: int | None = None) -> list[int]:
        """Bytes of each block."""
        if self.types is None:
            size = self.datatype._live().layout.size
            return [n * size for n in self.counts[:stop]]
        return [n * t._live().layout.size for n, t in zip(self.counts[:stop], self.types)]

    def check(self) -> None:
        """Refuse, with ERR_BUFFER, blocks that reach out of the buffer."""
        memory = self._memory
        if memory is None:
            return
        if self.types is None and isinstance(self.offsets, range):
            # Equal blocks in a row: if the first and the last are inside, all are.
            for i in {0, len(self.counts) - 1}:
                self.block(i)
            return
        layout = None if self.types is not None else self.datatype._live().layout
        room = memory.nbytes
        for i, (count, offset) in enumerate(zip(self.counts, self.offsets)):
            if layout is None or not layout.dense or not 0 <= offset <= room - count * layout.size:
                self.block(i)

    def block(self, i: int) -> MessageRegion:
        """The block of process `i`, as a message."""
        item = self._items.get(i)
        if item is None:
            datatype = self.datatype if self.types is None else self.types[i]
            item = self._items[i] = place(
                self.obj, self._memory, self.offsets[i], self.counts[i], datatype, self.writable
            )
        return item

    def view(self, i: int) -> memoryview | None:
        """The memory of block `i` if it is contiguous inside the buffer, else None."""
        element, memory = self._element, self._memory
        if element < 0:
            element = 0
            if memory is not None and self.types is None:
                record = self.datatype._live()
                element = record.layout.size if record.committed and record.layout.dense else 0
            self._element = element
        if element == 0 or memory is None:
            return None
        start = self.offsets[i]
        stop = start + self.counts[i] * element
        return memory[start:stop] if 0 <= start and stop <= memory.nbytes else None

    def joined(self, number: int) -> Blocks:
        """The same memory in blocks of `number` of these, where blocks are equal and in a row."""
        starts = range(0, len(self.counts), number)
        return Blocks(
            self.obj,
            self._memory,
            self.writable,
            self.datatype,
            [self.counts[i] * number for i in starts],
            [self.offsets[i] for i in starts],
        )


def in_one_piece(datatype: Datatype, count: int, data: memoryview) -> MessageRegion:
    """The message with the bytes `data`."""
    return MessageRegion(datatype, count, data.nbytes, data)


def place(
    obj: object,
    memory: memoryview | None,
    origin: int,
    count: int,
    datatype: Datatype,
    writable: bool,
    partly: bool = False,
) -> MessageRegion:
    """The message of `count` elements, `origin` bytes into a buffer.

    `memory` is the buffer that `obj` exposes, None for absolute addresses. A receive may be posted
    `partly`: with a larger count than the buffer has room for, as long as no such message arrives.
    """
    record = datatype._live()
    if not record.committed:
        fail(c.ERR_TYPE, "datatype is not committed")
    layout = record.layout
    nbytes = layout.size * count
    if nbytes == 0:
        return in_one_piece(datatype, count, NOTHING)
    if layout.dense:
        if memory is None:
            return in_one_piece(datatype, count, at_address(origin, nbytes))
        end = origin + nbytes
        if origin < 0 or end > memory.nbytes:
            if partly and 0 <= origin <= memory.nbytes:
                return in_one_piece(datatype, count, memory[origin:])
            memory, origin = _widen(obj, memory, origin, 0, nbytes, writable)
            end = origin + nbytes
        return in_one_piece(
            datatype, count, memory if end - origin == memory.nbytes else memory[origin:end]
        )
    plan = layout.plan(count)
    if memory is None:
        memory = at_address(origin + plan.low, plan.high - plan.low)
        origin = -plan.low
    elif origin + plan.low < 0 or origin + plan.high > memory.nbytes:
        memory, origin = _widen(obj, memory, origin, plan.low, plan.high, writable)
    result = MessageRegion(datatype, count, nbytes, None)
    result.memory, result.origin, result.plan = memory, origin, plan
    return result


def _widen(
    obj: object, memory: memoryview, origin: int, low: int, high: int, writable: bool
) -> tuple[memoryview, int]:
    """The memory of a message outside its buffer argument.

    In C a message may begin inside an array and extend beyond the slice that Python was given. This
    is allowed inside the object that owns the memory; beyond it a real program would access
    arbitrary memory.
    """
    owner = obj
    while True:
        if isinstance(owner, np.ndarray) and owner.base is not None:
            owner = owner.base
        elif isinstance(owner, memoryview):
            owner = owner.obj
        elif isinstance(owner, buffer) and owner.obj is not None:
            owner = owner.obj
        else:
            break
    if owner is not obj and owner is not None:
        whole = acquire(owner, writable).memory
        start = origin + address_of(memory) - address_of(whole)
        if start + low >= 0 and start + high <= whole.nbytes:
            return whole, start
    fail(
        c.ERR_BUFFER,
        f"the message takes bytes {origin + low} to {origin + high} of a buffer "
        f"of {memory.nbytes} bytes",
    )


#: The message to and from PROC_NULL.
EMPTY = in_one_piece(BYTE, 0, NOTHING)
