"""Windows, shared by all their processes.

A `Window` is made once for all; each process has a `WindowSide` of it, to which its handles point:
its memory, its epochs, and its active accesses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from pysmpi.kernel.choices import Control, Gate
from pysmpi.kernel.requests import KernelRequest, Transfer
from pysmpi.mpi.base.constants import (
    ERR_COUNT,
    ERR_DISP,
    ERR_RANK,
    ERR_RMA_RANGE,
    ERR_RMA_SYNC,
    WIN_FLAVOR_DYNAMIC,
)
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.buffers.spellings import MessageRegion, place
from pysmpi.mpi.collective.contribution import WithoutData
from pysmpi.mpi.collective.schedules import schedule_of, scheduled_call
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.mpi.groups.agreement import tag_of
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.rma.locks import LockClaim, Locks

# The time (s) of a synchronisation call without a wait: polling loops must progress.
GLANCE = 1e-7
NOTHING = memoryview(bytearray())


class AttachedMemory:
    """Memory that a process has attached to a dynamic window."""

    __slots__ = ("address", "memory", "owner")

    def __init__(self, address: int, memory: memoryview, owner: object) -> None:
        self.address = address
        self.memory = memory
        self.owner = owner


class Exposure:
    """An exposure epoch: the origins that may access, and the messages with which they end."""

    __slots__ = ("origins", "receives")

    def __init__(self, origins: frozenset[int], receives: list[KernelRequest]) -> None:
        self.origins = origins
        self.receives = receives


class Window:
    """The shared state of the processes of a window: their communicator, their sides, the locks."""

    __slots__ = ("communicator", "flavor", "sides", "locks")

    def __init__(self, communicator: Communicator, flavor: int, sides: list[WindowSide]) -> None:
        self.communicator = communicator
        self.flavor = flavor
        self.sides = sides
        self.locks = Locks(communicator.group)
        communicator.kind = "window"


class WindowSide:
    """One process of a window.

    `memory` begins at `address` and has units of `unit` bytes; a dynamic window has `regions`
    instead. `outgoing` are the accesses of this process that have not taken effect yet, by target,
    `incoming` those to its memory; `chains` orders its accumulate operations to each target. `owed`
    is the time (s) of finished accesses that the next wait must pay.
    """

    __slots__ = (
        "rank", "me", "memory", "owner", "address", "unit", "regions", "window", "info", "name",
        "ordered", "outgoing", "incoming", "chains", "owed", "fenced", "used", "started",
        "exposure", "locks", "lock_all", "glance", "looked", "__weakref__",
    )  # fmt: skip

    window: Window

    def __init__(
        self, rank: Rank, memory: memoryview, owner: object, address: int, unit: int
    ) -> None:
        self.rank = rank
        self.me = 0
        self.memory = memory
        self.owner = owner  # keeps the memory alive
        self.address = address
        self.unit = unit
        self.regions: dict[int, AttachedMemory] = {}
        self.info: dict[str, str] = {}
        self.name = ""
        self.ordered = True
        self.outgoing: dict[int, dict[RemoteAccess, None]] = {}
        self.incoming: dict[RemoteAccess, None] = {}
        self.chains: dict[int, deque[RemoteAccess]] = {}
        self.owed = 0.0
        # Epochs. A fence opens one that counts only once it is `used`.
        self.fenced = False
        self.used = False
        self.started: frozenset[int] | None = None
        self.exposure: Exposure | None = None
        self.locks: dict[int, LockClaim | None] = {}
        self.lock_all: tuple[LockClaim | None] | None = None
        self.glance = 0.0
        self.looked = 0.0

    def release(self) -> None:
        """Let go of the memory; what the program still sees of it lives on.

        The sides of a window refer to each other, so they are freed much later.
        """
        self.memory = NOTHING
        self.owner = None
        self.regions = {}

    # Targets of accesses, and checks.

    def target(self, win: object, rank: int) -> WindowSide:
        """The side of a process, by its rank in the window."""
        sides = self.window.sides
        if not 0 <= rank < len(sides):
            last = len(sides) - 1
            fail(ERR_RANK, f"target_rank is {rank}, expected 0 to {last} or PROC_NULL", win)
        return sides[rank]

    def passive(self, rank: int) -> bool:
        """Whether the process holds a lock that lets it access the memory of another."""
        return self.lock_all is not None or rank in self.locks

    def admit(self, win: object, rank: int) -> bool:
        """Refuse an access outside of an epoch; return whether the target takes part in it."""
        self.glance = 0.0
        if self.passive(rank):
            return False
        if self.started is not None:
            if rank not in self.started:
                fail(ERR_RMA_SYNC, f"rank {rank} is not in the group given to Start", win)
        elif self.fenced:
            self.used = True
        else:
            fail(ERR_RMA_SYNC, "there is no epoch: call Fence, Start, Lock or Lock_all first", win)
        return True

    def idle(self, win: object, call: str) -> None:
        """Raise an error if an access epoch is already open."""
        if self.lock_all is not None or self.locks:
            fail(ERR_RMA_SYNC, f"{call} while the process holds a lock of the window", win)
        if self.started is not None:
            fail(ERR_RMA_SYNC, f"{call} between Start and Complete", win)
        if self.fenced and self.used:
            fail(ERR_RMA_SYNC, f"{call} after accesses that no Fence has ended yet", win)

    def locate(
        self, win: object, displacement: int, count: int, datatype: Datatype
    ) -> MessageRegion:
        """The part of this side's memory that an access reaches."""
        if count < 0:
            fail(ERR_COUNT, f"the target count is {count}", win)
        if displacement < 0:
            fail(ERR_DISP, f"target_disp is {displacement}", win)
        layout = datatype._live().layout
        low, high = 0, layout.size * count
        if high and not layout.dense:
            plan = layout.plan(count)
            low, high = plan.low, plan.high
        start = displacement * self.unit
        memory, owner = self.memory, self.owner
        if high == low:
            return place(owner, memory, 0, count, datatype, True)
        if self.window.flavor == WIN_FLAVOR_DYNAMIC:
            for region in self.regions.values():
                offset = start - region.address
                if offset + low >= 0 and offset + high <= region.memory.nbytes:
                    return place(region.owner, region.memory, offset, count, datatype, True)
            fail(
                ERR_RMA_RANGE,
                f"rank {self.me} has attached no memory that holds addresses {start + low:#x} "
                f"to {start + high:#x}",
                win,
            )
        if start + low < 0 or start + high > memory.nbytes:
            fail(
                ERR_RMA_RANGE,
                f"the access takes bytes {start + low} to {start + high} of a window of "
                f"{memory.nbytes} bytes at rank {self.me}",
                win,
            )
        return place(owner, memory, start, count, datatype, True)

    def place_of(self, control: Control, target: int) -> str:
        """The name of the memory of a target among the places of decisions."""
        return f"{control.label(self.window.communicator.p2p)}/{target}"

    def settled(self, rank: Rank, targets: Iterable[int], reached: bool = False) -> None:
        """The process knows that its accesses to targets, or those that `reached` it, are over."""
        control = rank.engine.control
        if control is not None:
            for target in targets:
                control.settled(rank.process, self.place_of(control, target), reached)

    # Waiting, for a process that has entered its call.

    def complete_accesses(self, rank: Rank, accesses: Iterable[RemoteAccess]) -> bool:
        """Wait until accesses have taken effect; return whether a wait was necessary."""
        requests = [access.watch() for access in accesses]
        if self.owed > 0.0:
            debt = KernelRequest()
            debt.done = True
            debt.finish_cost = self.owed
            self.owed = 0.0
            requests.append(debt)
        if not requests:
            return False
        rank.process.wait(requests)
        return True

    def pass_time(self, rank: Rank) -> None:
        """Let a little time pass in a call without a wait.

        The time increases if a program makes only such calls.
        """
        now = rank.engine.now + rank.process.debt
        if now - self.looked > self.glance:
            self.glance = 0.0
        self.glance += GLANCE
        rank.process.sleep(self.glance)
        self.looked = rank.engine.now

    def barrier(self, rank: Rank) -> None:
        """Wait in a barrier of all processes of the window."""
        communicator = self.window.communicator
        call = scheduled_call(communicator, self.me, "barrier")
        part = WithoutData(rank, communicator, self.me, call)
        part.begin()
        if not part.alone():
            schedule, context, me = schedule_of(communicator, self.me, call, part.number)
            rank.process.execute(schedule, context, me, tag_of(part.number, "barrier"))
        part.finish()


class RemoteAccess:
    """An operation of `origin` on `memory` of `target`.

    `exposed` is true if the target takes part in the epoch: then it waits for the access, otherwise
    the origin does. `cost` is the time (s) of the arrival for the process that waits for it.
    """

    __slots__ = (
        "origin", "target", "memory", "exposed", "effective", "done", "arrived", "cost", "watchers",
        "gate",
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
        self.gate: Gate | None = None  # the decision when it takes effect, if that is not time's

    def begin(self, rank: Rank) -> None:
        """Start its flow; the process has entered its call."""
        origin, target = self.origin, self.target
        process = rank.process
        control = rank.engine.control
        if control is not None and (self.ordered or not self.exposed):
            # It takes effect at any time up to the end of the epoch, or to a flush.
            process.finish_compute()
            name, place = type(self).__name__, origin.place_of(control, target.me)
            self.gate = control.later(process, place, name, self.effect(), self.free, self.act)
            self.arrived = target is origin
        elif target is origin:
            process.finish_compute()
            self.take_effect()
            self.done = True
            return
        elif self.returns and not self.exposed and origin.rank.host is target.rank.host:
            process.finish_compute()
            for access in origin.outgoing.get(target.me, ()):
                access.take_effect()
            self.take_effect()
        origin.outgoing.setdefault(target.me, {})[self] = None
        target.incoming[self] = None
        if self.gate is None and self.ordered and origin.ordered:
            origin.chains.setdefault(target.me, deque()).append(self)
        if target is not origin:
            process.start(self.flow())

    def free(self) -> bool:
        """Whether it could take effect now: accesses of one origin do so in their order."""
        if not self.arrived or (self.ordered and not self.origin.ordered):
            return self.arrived
        for other in self.origin.outgoing[self.target.me]:
            if other.gate is not None:
                return other is self
        return False

    def effect(self) -> str:
        """Accesses with the same effect may be exchanged; empty if the order matters."""
        return ""

    def flow(self) -> Transfer:
        """Its first flow."""
        raise AssertionError("an access travels")

    def transfer(self, back: bool, nbytes: int, landed: object) -> Transfer:
        """A flow of data to the target, or of data of the target's memory back to the origin."""
        context = self.origin.window.communicator.p2p
        origin, target = self.origin.me, self.target.me
        if back:
            return Transfer(context, target, origin, nbytes, landed, self.memory)
        return Transfer(context, origin, target, nbytes, landed)

    def land(self, transfer: Transfer) -> None:
        """The first flow has arrived: take effect, after preceding accesses."""
        assert transfer.plan is not None
        self.cost = transfer.plan.recv_cost
        if self.gate is not None:
            self.arrived = True
            return
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
        """Save the origin's data, because the program may then change its buffer."""

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
