"""Buffers that a program touches while a pending operation owns them."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Iterable
from typing import Any

from pysmpi.checkers.describing import call_text, place, places
from pysmpi.checkers.memory import WatchedRegion, overlap, region_of, regions_of
from pysmpi.checkers.memory_of_calls import memory_of_arguments, memory_of_operation, receives
from pysmpi.checkers.registry import Checker, checker
from pysmpi.diagnostics import Diagnostic, register
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Receive, Send
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.buffers.spellings import MessageRegion
from pysmpi.mpi.calls import CallKind, MpiCall, Role
from pysmpi.mpi.collective.background import CollectiveOperation
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.collective.data import Broadcast, Scatter
from pysmpi.mpi.collective.reductions import Prefix, Reduction
from pysmpi.mpi.files.pointers import FileSide
from pysmpi.mpi.point_to_point.operations import (
    PairOperation,
    RequestOperation,
)
from pysmpi.mpi.point_to_point.partitioned import (
    Partitioned,
    PartitionedReceive,
    PartitionedSend,
)
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.python.frames import CallSite
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, Place


@register
class BufferTouched(Diagnostic):
    """The program used a buffer while a non-blocking operation owned it.

    From the call that starts an operation to the `Wait` or successful `Test` that completes it, the
    program must not write to a send buffer, and must neither read nor write a receive buffer. The
    report names the line that started the operation and the line that touched the buffer. If only
    the checksum of a send buffer shows the change, it names the call that completed the operation.

    ## Why it is bad

    The library may read or write the buffer at any moment in between. The receiver gets old, new or
    mixed data, depending on the size of the message and on the network.

    ## Example

    ```python
    request = comm.Isend(data, dest=1)
    data[0] = 7
    request.Wait()
    ```

    ## What to do

    Move the use behind the `Wait`, or send a copy. The object of a lower-case `isend` may be
    changed at once, because mpi4py has pickled it.

    ## References

    MPI 4.1, sections 3.7.2 (communication initiation) and 6.12 (non-blocking collectives).
    """

    code = "PSM115"
    title = "buffer touched while in use"


@register
class BuffersOverlap(Diagnostic):
    """Two buffers of pending operations overlap, and one of them receives.

    Also the buffers of one call, such as the same array as send and receive buffer of `Allreduce`,
    and a receive buffer whose datatype names some bytes more than once.

    ## Why it is bad

    The result depends on the order in which the library moves the bytes.

    ## Example

    ```python
    comm.Allreduce(data, data)
    ```

    ## What to do

    Use different buffers. For a collective call on one buffer pass `MPI.IN_PLACE` as the send
    buffer; for `Sendrecv` use `Sendrecv_replace`.

    ## References

    MPI 4.1, sections 3.2.7 (send-receive), 3.7.2 and 2.3 (aliasing of buffers).
    """

    code = "PSM116"
    title = "buffers overlap"


class Owned:
    """The memory that a pending operation owns."""

    __slots__ = (
        "call", "prepared", "handle", "reads", "writes", "sent", "summed", "sum", "reported",
    )  # fmt: skip

    def __init__(
        self,
        call: MpiCall,
        prepared: MpiCall,
        handle: Any,
        reads: list[WatchedRegion],
        writes: list[WatchedRegion],
        sent: list[object],
        collective: bool = False,
    ) -> None:
        self.call = call
        self.prepared = prepared  # the call that prepared it, if it is persistent
        self.handle = handle
        self.reads = reads  # MPI reads these: the program must not write
        self.writes = writes  # MPI writes these: the program must not use them
        self.sent = sent
        # A collective operation reads the buffer where it is.
        self.summed = reads if collective and not sent else []
        self.sum = self.checksum()
        self.reported = False

    def checksum(self) -> int:
        """A checksum of what the program must not change; 0 if nothing is compared."""
        total = _checksum(self.sent)
        for region in self.summed:
            for start, stop in zip(region.starts.tolist(), region.stops.tolist(), strict=True):
                total = zlib.crc32((ctypes.c_char * (stop - start)).from_address(start), total)
        return total


@checker("buffers", "buffers that the program touches while an operation owns them; overlaps")
class BufferChecks(Checker):
    """Watches the buffers of pending operations, and compares checksums of those that are sent."""

    def __init__(self) -> None:
        # By pid, by id of the operation or of the file side, and number of the partition or -1.
        self.owned: dict[int, dict[tuple[int, int], Owned]] = {}
        self.operations: dict[int, list[RequestOperation]] = {}
        # By id of a datatype and number of elements (1, or 2 for more): the datatype, and whether
        # its entries overlap.
        self.twice: dict[tuple[int, int], tuple[object, bool]] = {}
        self.persistent: dict[int, tuple[object, object]] = {}  # handle, by id of the operation

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """A receive begins: no byte of its buffer is written twice."""
        message = request.payload if isinstance(request, Receive) else None
        if isinstance(message, MessageRegion) and message.data is None:
            call = self.session.call_on(process)
            if call is not None:
                self._written_twice(call, message)

    def collective_entered(self, contribution: Contribution, rank: Rank) -> None:
        """A collective call begins: no byte of its receive buffer is written twice."""
        call = self.session.call_on(rank.process)
        message: object = None
        if isinstance(contribution, Reduction | Prefix):
            message = contribution.target
        elif isinstance(contribution, Scatter):
            message = contribution.message
        elif isinstance(contribution, Broadcast) and not contribution.sends:
            message = contribution.message
        if call is not None and isinstance(message, MessageRegion) and message.data is None:
            self._written_twice(call, message)

    def _written_twice(self, call: MpiCall, message: MessageRegion) -> None:
        record = message.datatype._impl
        key = id(record), min(message.count, 2)
        entry = self.twice.get(key)
        if entry is None or entry[0] is not record:
            region = region_of(message)
            nbytes = 0 if region is None else int((region.stops - region.starts).sum())
            entry = self.twice[key] = record, region is not None and nbytes < message.nbytes
        if entry[1]:
            prepared = self.session.prepared_by(call, None)
            self.session.report(
                Finding(
                    BuffersOverlap,
                    f"the receive buffer of {prepared.name} overlaps with itself: its datatype "
                    "names some bytes more than once",
                    [place(prepared)],
                    "MPI 4.1, section 5.1.11: a datatype of a receive has no overlapping entries",
                    "use a datatype with a larger stride or extent, or a smaller count",
                )
            )

    def call_made(self, call: MpiCall) -> None:
        """Compare the buffers of a call with each other, and with those that are owned."""
        if call.kind is CallKind.LOCAL:
            return
        operations = call.operations
        if operations:
            self.operations[id(call)] = operations
        roles = call.procedure.roles
        ends = call.kind is CallKind.FILE and call.name.endswith("_end")  # names the same buffer
        if call.name[0].isupper() and call.kind is not CallKind.ONE_SIDED and not ends:
            if Role.BUFFER in roles.values():
                self._buffers(call)

    def _buffers(self, call: MpiCall) -> None:
        mine = self.owned.get(call.rank.pid)
        buffers = call.having(Role.BUFFER)
        pair = "sendbuf" in buffers and "recvbuf" in buffers and not call.name.endswith("_init")
        if not mine and not pair:
            return
        regions = memory_of_arguments(call)
        if pair and overlap(regions.get("sendbuf", []), regions.get("recvbuf", [])):
            self.session.report(
                Finding(
                    BuffersOverlap,
                    f"the send and the receive buffer of {call.name} overlap",
                    [place(call)],
                    f"MPI 4.1, sections {call.procedure.section} and 2.3: the buffers of one "
                    "call are disjoint",
                    "use two buffers, or Sendrecv_replace"
                    if call.name == "Sendrecv"
                    else "use two buffers, or MPI.IN_PLACE as the send buffer",
                )
            )
        for name, pieces in regions.items():
            writes = receives(call, name)
            for owned in list(mine.values()) if mine else ():
                if overlap(pieces, owned.writes) or (writes and overlap(pieces, owned.reads)):
                    self._reportmeet(call, owned)

    def _reportmeet(self, call: MpiCall, owned: Owned) -> None:
        if owned.call is call:
            return
        self.session.report(
            Finding(
                BuffersOverlap,
                f"the buffer of {call.name} overlaps with that of {owned.prepared.name}, which is "
                "not complete",
                [
                    place(call, "uses it, too"),
                    *places(owned.call, owned.prepared, "owns the buffer"),
                ],
                "MPI 4.1, section 3.7.2: until an operation is complete, no other operation "
                "accesses its receive buffer, and none writes to its send buffer",
                "complete the first operation before, or use another buffer",
            )
        )

    def call_returned(self, call: MpiCall, result: object) -> None:
        """Watch the buffers of new operations; release those of complete ones."""
        rank = call.rank
        operations = self.operations.pop(id(call), None)
        mine = self.owned.get(rank.pid)
        if mine:
            self._release(rank, call, mine)
        if call.name in ("Start", "Startall"):
            for operation in operations or ():
                handle = self.persistent.get(id(operation), (None, None))[0]
                if isinstance(operation, PartitionedReceive):
                    self._own_partitions(rank, call, handle, operation, range(operation.partitions))
                else:
                    self._own(rank, call, handle, operation)
            return
        if call.name.startswith(("Pready", "Parrived")):
            self._partition(rank, call, result)
            return
        if call.kind is CallKind.FILE and call.name.endswith(("_begin", "_end")):
            self._split(rank, call)
            return
        for handle in result if isinstance(result, tuple) else (result,):
            started = handle._impl if isinstance(handle, Request) else None
            if isinstance(started, RequestOperation):
                if started.persistent:
                    self.persistent[id(started)] = handle, started
                elif not any(handle is value for value in call.values[:1]):
                    self._own(rank, call, handle, started)

    def _partition(self, rank: Rank, call: MpiCall, result: object) -> None:
        """A partition is ready: MPI owns it until the operation is complete. Or it has arrived."""
        handle = call.values[0]
        operation = getattr(handle, "_impl", None)
        if isinstance(operation, PartitionedSend):
            mine = self.owned.get(rank.pid, {})
            ready = [i for i in sorted(operation.marked) if (id(operation), i) not in mine]
            self._own_partitions(rank, call, handle, operation, ready)
        elif isinstance(operation, PartitionedReceive) and result:
            self._forget(rank, (id(operation), int(call.arguments["partition"])))

    def _own_partitions(
        self,
        rank: Rank,
        call: MpiCall,
        handle: object,
        operation: Partitioned,
        numbers: Iterable[int],
    ) -> None:
        blocks = operation.blocks
        if blocks is None or operation.request is None:
            return
        for i in numbers:
            memory = regions_of(blocks.block(i))
            if memory:
                sends = isinstance(operation, PartitionedSend)
                reads, writes = (memory, []) if sends else ([], memory)
                self._watch(rank, (id(operation), i), Owned(call, call, handle, reads, writes, []))

    def _split(self, rank: Rank, call: MpiCall) -> None:
        """A split collective access has begun or ended."""
        side = getattr(call.values[0], "_impl", None)
        if not isinstance(side, FileSide):
            return
        self._forget(rank, (id(side), -1))
        if call.name.endswith("_begin") and side.split is not None:
            reads, writes = memory_of_operation(side.split[1], None)
            if reads or writes:
                self._watch(rank, (id(side), -1), Owned(call, call, side, reads, writes, []))

    def _own(self, rank: Rank, call: MpiCall, handle: Any, operation: RequestOperation) -> None:
        reads, writes = memory_of_operation(operation, handle)
        if not reads and not writes:
            return
        prepared = self.session.prepared_by(call, operation.request)
        owned = Owned(
            call, prepared, handle, reads, writes, _sent(operation, handle),
            isinstance(operation, CollectiveOperation),
        )  # fmt: skip
        self._watch(rank, (id(operation), -1), owned)

    def _forget(self, rank: Rank, key: tuple[int, int]) -> None:
        if self.owned.get(rank.pid, {}).pop(key, None) is not None:
            self.session.memory.forget(rank, (self, key))

    def _watch(self, rank: Rank, key: tuple[int, int], owned: Owned) -> None:
        self.owned.setdefault(rank.pid, {})[key] = owned

        def touched(
            rank: Rank, writing: bool, memory: WatchedRegion, site: CallSite, owned: Owned = owned
        ) -> None:
            if writing or overlap([memory], owned.writes):
                self._touched(rank, owned, site, writing)

        self.session.memory.watch(rank, (self, key), [*owned.reads, *owned.writes], touched)

    def _touched(self, rank: Rank, owned: Owned, site: CallSite, writing: bool) -> None:
        if owned.reported:
            return
        owned.reported = True
        verb = "written" if writing else "read"
        receives = bool(owned.writes)
        self.session.report(
            Finding(
                BufferTouched,
                f"the buffer of {owned.prepared.name} is {verb} before the operation is complete",
                [
                    Place(
                        [rank.pid],
                        f"the program {'writes' if writing else 'reads'}",
                        site,
                        "touches the buffer",
                    ),
                    *places(owned.call, owned.prepared, "owns the buffer"),
                ],
                "MPI 4.1, section 3.7.2: until an operation is complete, the program does not "
                + ("use its receive buffer" if receives else "write to its send buffer"),
                "move the use behind the Wait, or use another buffer",
            )  # fmt: skip
        )

    def _release(self, rank: Rank, call: MpiCall, mine: dict[tuple[int, int], Owned]) -> None:
        for key, owned in list(mine.items()):
            handle = owned.handle
            if isinstance(handle, FileSide):
                continue  # the second half of the call ends it
            operation: Any = handle._impl if handle is not None else None
            persistent = operation is not None and operation.persistent
            if operation is None or (persistent and operation.request is None):
                del mine[key]
                self.session.memory.forget(rank, (self, key))
                if not owned.reported and owned.checksum() != owned.sum:
                    self.session.report(
                        Finding(
                            BufferTouched,
                            f"the buffer of {owned.prepared.name} has changed before the operation "
                            "was complete",
                            [
                                *places(owned.call, owned.prepared, "owns the buffer"),
                                Place(
                                    [rank.pid], call_text(call), call.site, "changed before this"
                                ),
                            ],
                            "MPI 4.1, section 3.7.2: until an operation is complete, the program "
                            "does not write to its send buffer",
                            "write to the buffer after the Wait, or send a copy",
                        )  # fmt: skip
                    )

    def finish(self, simulation: Simulation) -> None:
        """Nothing is left to compare."""
        self.owned.clear()


def _checksum(messages: list[Any]) -> int:
    total = 0
    for message in messages:
        total = zlib.crc32(message.pack(), total)
    return total


def _sent(operation: RequestOperation, handle: Any) -> list[object]:
    """The messages whose checksum must not change until the operation is complete."""
    message = getattr(handle, "ob_buf", None)
    if isinstance(message, tuple) and isinstance(operation, PairOperation):
        message = message[0]
    sends = isinstance(operation.request, Send) or isinstance(operation, PairOperation)
    return [message] if sends and isinstance(message, MessageRegion) else []
