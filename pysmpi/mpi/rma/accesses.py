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

from collections import deque
from typing import Any

from pysmpi.kernel.requests import Request as KernelRequest
from pysmpi.kernel.requests import Transfer
from pysmpi.mpi.base.ranks import Rank, Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.spellings import MessageRegion, copy_message
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.operators.arithmetic import NO_OP, REPLACE, Operator, combine
from pysmpi.mpi.rma.window import WindowSide

# The pids of the ranks that `_late` notes.
LATE: StateSlot[Universe, set[int]] = StateSlot(Universe, set)
_COMPARED = 4096  # bytes: longer data counts as changed


def _late(access: RemoteAccess, result: MessageRegion, data: MessageRegion | Any) -> None:
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


class RemoteAccess:
    """An operation of `origin` on `memory` of `target`.

    `exposed` is true if the target takes part in the epoch: then it waits for the access, otherwise
    the origin does. `cost` is the time (s) of the arrival for the process that waits for it.
    """

    __slots__ = (
        "origin", "target", "memory", "exposed", "effective", "done", "arrived", "cost", "watchers",
    )  # fmt: skip

    returns = False  # whether data returns to the origin
    ordered = False  # whether it takes effect in the order of calls

    def __init__(
        self, origin: WindowSide, target: WindowSide, memory: MessageRegion, exposed: bool
    ) -> None:
        self.origin = origin
        self.target = target
        self.memory = memory
        self.exposed = exposed
        self.effective = False  # whether the data have moved
        self.done = False
        self.arrived = False
        self.cost = 0.0
        self.watchers: list[KernelRequest] = []

    def begin(self, rank: Rank) -> None:
        """Let it travel; the process has entered its call."""
        origin, target = self.origin, self.target
        process = rank.process
        control = rank.engine.control
        if control is not None and (self.ordered or not self.exposed):
            place = f"{control.label(origin.window.core.p2p)}/{target.me}"
            control.turn(process, place, type(self).__name__, self.effect())
        if target is origin:
            process.settle()
            self.take_effect()
            self.done = True
            return
        if self.returns and not self.exposed and origin.rank.host is target.rank.host:
            process.settle()
            for access in origin.outgoing.get(target.me, ()):
                access.take_effect()
            self.take_effect()
        origin.outgoing.setdefault(target.me, {})[self] = None
        target.incoming[self] = None
        if self.ordered and origin.ordered:
            origin.chains.setdefault(target.me, deque()).append(self)
        process.start(self.flow())

    def effect(self) -> str:
        """Accesses with the same effect may be exchanged; empty if the order matters."""
        return ""

    def flow(self) -> Transfer:
        """Its first flow."""
        raise AssertionError("an access travels")

    def transfer(self, back: bool, nbytes: int, landed: Any) -> Transfer:
        """A flow to the target, or back to the origin."""
        ends = (self.origin.me, self.target.me)
        source, destination = ends[::-1] if back else ends
        return Transfer(self.origin.window.core.p2p, source, destination, nbytes, landed)

    def land(self, transfer: Transfer) -> None:
        """The first flow has arrived: take effect, after preceding accesses."""
        assert transfer.plan is not None
        self.cost = transfer.plan.recv_cost
        chain = self.origin.chains.get(self.target.me) if self.ordered else None
        if chain is None:
            self.act()
            return
        self.arrived = True
        while chain and chain[0].arrived:
            chain.popleft().act()
        if not chain:
            self.origin.chains.pop(self.target.me, None)

    def act(self) -> None:
        """Take effect at the target."""
        self.take_effect()
        self.finish()

    def take_effect(self) -> None:
        """Move the data, unless they have moved already."""
        if not self.effective:
            self.effective = True
            self.apply()

    def apply(self) -> None:
        """Move the data."""
        raise AssertionError("an access moves data")

    def keep(self) -> None:
        """Save the origin's data: the program may change its buffer from now on."""

    def finish(self) -> None:
        """It has taken effect: waiting processes may continue."""
        self.done = True
        origin, target = self.origin, self.target
        mine = origin.outgoing[target.me]
        del mine[self]
        if not mine:
            del origin.outgoing[target.me]
        del target.incoming[self]
        watchers, self.watchers = self.watchers, []
        if not watchers:
            payer = target if self.exposed and not self.returns else origin
            payer.owed += self.cost
            return
        # Once is enough to pay for the arrival.
        watchers[0].finish_cost = self.cost
        now = origin.rank.engine.now
        for watcher in watchers:
            watcher.complete(now)

    def watch(self) -> KernelRequest:
        """A request that completes once it has taken effect."""
        request = KernelRequest()
        request.payload = self
        if self.done:
            request.done = True
        else:
            self.watchers.append(request)
        return request


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
        """The data are there."""
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
        """The result is there."""
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
