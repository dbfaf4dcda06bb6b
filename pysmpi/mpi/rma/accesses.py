"""Active one-sided operations: their time, and their effects on arrival.

A `RemoteAccess` is the effect of one call on the memory of another process. Its bytes flow between
the two processes without a receive, and the data is copied when the last byte has arrived. An
access to a process's own memory takes effect at once and costs nothing, as in SMPI.

- Put and Accumulate are one flow to the target; Get is one flow from it.
- An operation that fetches and changes is a flow to the target, where it does both at one instant,
  and a flow back with the fetched data.

Each operation takes the same time as in SMPI. In SMPI, however, the accumulating calls block their
caller until they are done, and a fetching call locks the target until its end; here they do not.

The accumulating operations of one origin take effect at one target in the order of the calls (MPI
4.1, section 12.7.2), also if a short one arrives before a long one.

Under a lock, libraries access memory of the same host at the call, and programs rely on it. A
fetching call then has its data at once, after earlier writes of the process there. Its time passes
as for other accesses. MPI promises the data only when the access is completed.
"""

from __future__ import annotations

from typing import Any

from pysmpi.kernel.requests import Transfer
from pysmpi.mpi.base.ranks import Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.spellings import MessageRegion, copy_message
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.operators.arithmetic import NO_OP, REPLACE, Operator, combine
from pysmpi.mpi.rma.window import RemoteAccess, WindowSide

# The pids of the ranks that `_late` notes.
LATE: StateSlot[Universe, set[int]] = StateSlot(Universe, set)
_COMPARED = 4096  # bytes: longer data counts as changed


def _late(access: RemoteAccess, result: MessageRegion, data: MessageRegion | object) -> None:
    """Record that data of an access under a lock arrives after its call, if that matters.

    A program that reads the data before it completes the access gets the old data.
    """
    rank = access.origin.rank
    pids = LATE.of(rank.universe)
    if access.exposed or rank.pid in pids:
        return
    if result.nbytes <= _COMPARED:
        new: Any = data.pack() if data.__class__ is MessageRegion else data
        if bytes(result.pack()) == bytes(new):
            return
    pids.add(rank.pid)


class Put(RemoteAccess):
    """Writes the origin's data into the target."""

    __slots__ = ("data",)

    def __init__(
        self,
        origin: WindowSide,
        target: WindowSide,
        memory: MessageRegion,
        exposed: bool,
        data: MessageRegion,
    ) -> None:
        super().__init__(origin, target, memory, exposed)
        self.data: Any = data

    def flow(self) -> Transfer:
        """To the target."""
        return self.transfer(False, self.data.nbytes, self.land)

    def keep(self) -> None:
        """Save the origin's data."""
        if not self.effective and self.data.__class__ is MessageRegion:
            self.data = self.data.snapshot()

    def apply(self) -> None:
        """Write."""
        if self.data.__class__ is MessageRegion:
            copy_message(self.data, self.memory)
        else:
            self.memory.unpack(self.data)


class Get(RemoteAccess):
    """Reads from the target into the origin's buffer."""

    __slots__ = ("result",)

    returns = True

    def __init__(
        self,
        origin: WindowSide,
        target: WindowSide,
        memory: MessageRegion,
        exposed: bool,
        result: MessageRegion,
    ) -> None:
        super().__init__(origin, target, memory, exposed)
        self.result = result

    def effect(self) -> str:
        return "read"

    def flow(self) -> Transfer:
        """From the target: the request for the data costs nothing."""
        return self.transfer(True, self.memory.nbytes, self.land)

    def apply(self) -> None:
        """Read."""
        copy_message(self.memory, self.result)

    def act(self) -> None:
        """The data have arrived."""
        if not self.effective:
            _late(self, self.result, self.memory)
        super().act()


class AtomicGet(Get):
    """Reads in the order of the accumulating operations: Get_accumulate with NO_OP."""

    __slots__ = ()

    ordered = True


class Accumulate(Put):
    """Combines the origin's data with those of the target, element by element."""

    __slots__ = ("operator", "element")

    ordered = True

    def __init__(
        self,
        origin: WindowSide,
        target: WindowSide,
        memory: MessageRegion,
        exposed: bool,
        data: MessageRegion,
        operator: Operator,
        element: Type | None,
    ) -> None:
        super().__init__(origin, target, memory, exposed, data)
        self.operator = operator
        self.element = element

    def effect(self) -> str:
        return "" if self.operator is REPLACE else str(self.operator.name)

    def apply(self) -> None:
        """Combine."""
        operator = self.operator
        if operator is REPLACE:
            super().apply()
            return
        data = self.data.pack() if self.data.__class__ is MessageRegion else self.data
        nbytes = len(data)
        if operator is NO_OP or nbytes == 0:
            return
        element = self.element
        assert element is not None
        memory = self.memory
        room = bytearray(memory.pack()) if memory.data is None else memory.data
        combine(
            operator, data, memoryview(room)[:nbytes], nbytes // element.layout.size, element,
            packed=True,
        )  # fmt: skip
        if memory.data is None:
            memory.unpack(room)


class GetAccumulate(Accumulate):
    """Fetches the target's data, then combines; the result returns by a second flow."""

    __slots__ = ("result", "fetched", "early")

    returns = True

    def __init__(
        self,
        origin: WindowSide,
        target: WindowSide,
        memory: MessageRegion,
        exposed: bool,
        data: MessageRegion,
        operator: Operator,
        element: Type | None,
        result: MessageRegion,
    ) -> None:
        super().__init__(origin, target, memory, exposed, data, operator, element)
        self.result = result
        self.fetched: Any = b""
        self.early = False  # whether the program has the result before its reply

    def effect(self) -> str:
        return "read" if self.operator is NO_OP else ""

    def apply(self) -> None:
        """Do both, and give the program the result."""
        self.early = True
        self.change()
        self.result.unpack(self.fetched)

    def change(self) -> None:
        """Fetch and combine, at one instant."""
        self.fetched = self.memory.snapshot()
        super().apply()

    def act(self) -> None:
        """Take effect at the target, and send the old data back."""
        if not self.effective:
            self.effective = True
            self.change()
        process = self.target.rank.process
        reply = self.transfer(True, len(self.fetched), self.returned)
        reply.expect(process)
        reply.post(process)

    def returned(self, transfer: Transfer) -> None:
        """The result has arrived."""
        if not self.early:
            _late(self, self.result, self.fetched)
            self.result.unpack(self.fetched)
        self.finish()


class CompareAndSwap(GetAccumulate):
    """Fetches the target's data, and replaces it if it is equal to the expected value."""

    __slots__ = ("expected",)

    def __init__(
        self,
        origin: WindowSide,
        target: WindowSide,
        memory: MessageRegion,
        exposed: bool,
        data: MessageRegion,
        expected: MessageRegion,
        result: MessageRegion,
    ) -> None:
        super().__init__(origin, target, memory, exposed, data, REPLACE, None, result)
        self.expected = expected

    def flow(self) -> Transfer:
        """To the target, with both values."""
        return self.transfer(False, self.data.nbytes + self.expected.nbytes, self.land)

    def change(self) -> None:
        """Compare and swap, at one instant."""
        self.fetched = self.memory.snapshot()
        if self.fetched == bytes(self.expected.pack()):
            Put.apply(self)
