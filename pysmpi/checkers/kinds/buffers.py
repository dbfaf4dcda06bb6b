"""Buffers that a program touches while a pending operation owns them."""

from __future__ import annotations

import ctypes
import zlib
from typing import Any, ClassVar

from pysmpi.checkers.base import Checker
from pysmpi.checkers.describing import place, places
from pysmpi.checkers.memory import Touch, WatchedRegion, overlap, region_of
from pysmpi.checkers.memory_of_calls import (
    buffers_of_contribution,
    may_use_memory,
    memory_of_arguments,
    receives,
)
from pysmpi.checkers.pending import PendingMemory
from pysmpi.checkers.problems.buffers import BuffersOverlap, BufferTouched
from pysmpi.checkers.registry import checker
from pysmpi.checkers.window_uses import COMMUNICATE, written_by
from pysmpi.kernel.requests import AbstractProcess, KernelRequest, Receive, Send
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.buffers.memory import is_in_place
from pysmpi.mpi.buffers.spellings import MessageRegion
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure, Role
from pysmpi.mpi.collective.background import CollectiveOperation
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.collective.data import Broadcast, Scatter
from pysmpi.mpi.collective.reductions import Prefix, Reduction
from pysmpi.mpi.point_to_point.operations import PairOperation
from pysmpi.reports.findings import Finding, Place


class Checksummed:
    """Memory that an operation owns, which the program must not change, and its checksum."""

    __slots__ = ("sent", "summed", "sum")

    def __init__(self, pending: PendingMemory) -> None:
        self.sent = _sent(pending.operation, pending.handle)
        # A collective operation reads the buffer where it is.
        collective = isinstance(pending.operation, CollectiveOperation)
        self.summed = pending.reads if collective and not self.sent else []
        self.sum = self.checksum()

    def checksum(self) -> int:
        """A checksum of what the program must not change; 0 if nothing is compared."""
        total = _checksum(self.sent)
        for region in self.summed:
            for start, stop in zip(region.starts.tolist(), region.stops.tolist(), strict=True):
                total = zlib.crc32((ctypes.c_char * (stop - start)).from_address(start), total)
        return total


class BufferChecks(Checker):
    """Watches the buffers of pending operations, and compares checksums of those that are sent."""

    needs_pending: ClassVar[bool] = True

    def __init__(self) -> None:
        self.contents: dict[PendingMemory, Checksummed] = {}
        self.reported: set[PendingMemory] = set()
        # By id of a datatype and number of elements (1, or 2 for more): the datatype, and whether
        # its entries overlap.
        self.twice: dict[tuple[int, int], tuple[object, bool]] = {}

    def concerns(self, event: str, procedure: Procedure) -> bool:
        """Calls that use memory."""
        if procedure.kind is CallKind.ONE_SIDED:
            return procedure.name in COMMUNICATE
        return may_use_memory(procedure)

    def request_started(self, request: KernelRequest, process: AbstractProcess, now: float) -> None:
        """A receive begins: no byte of its buffer is written twice."""
        message = request.payload if isinstance(request, Receive) else None
        if isinstance(message, MessageRegion) and message.data is None:
            call = self.session.call_on(process)
            if call is not None:
                self._written_twice(call, message)

    def collective_entered(self, contribution: Contribution, rank: Rank) -> None:
        """A collective call begins: compare its buffers, which may have a part for each rank."""
        call = self.session.call_on(rank.process)
        if call is None:
            return
        message: object = None
        if isinstance(contribution, Reduction | Prefix):
            message = contribution.target
        elif isinstance(contribution, Scatter):
            message = contribution.message
        elif isinstance(contribution, Broadcast) and not contribution.sends:
            message = contribution.message
        if isinstance(message, MessageRegion) and message.data is None:
            self._written_twice(call, message)
        pending = self.session.pending.of.get(rank.pid)
        name = call.name
        blocks = name[-1] in "vw" or "v_i" in name or "w_i" in name
        if call.kind is CallKind.COLLECTIVE and (pending or blocks) and name[0].isupper():
            out, into = buffers_of_contribution(contribution)
            if blocks and not any(is_in_place(one) for one in call.having(Role.BUFFER).values()):
                self._aliased(call, out, into)
            if blocks and _meet_each_other(into):
                self._reports_itself(call, "its parts for the ranks")
            self._compare(call, [piece for piece in out if not overlap([piece], into)], into)

    def _written_twice(self, call: MpiCall, message: MessageRegion) -> None:
        record = message.datatype._impl
        key = id(record), min(message.count, 2)
        entry = self.twice.get(key)
        if entry is None or entry[0] is not record:
            region = region_of(message)
            nbytes = 0 if region is None else int((region.stops - region.starts).sum())
            entry = self.twice[key] = record, region is not None and nbytes < message.nbytes
        if entry[1]:
            self._reports_itself(call, "its datatype")

    def _reports_itself(self, call: MpiCall, names: str) -> None:
        one_sided = call.kind is CallKind.ONE_SIDED
        buffer = "memory that it writes to" if one_sided else f"receive buffer of {call.name}"
        verb = "names" if names == "its datatype" else "name"
        section = "12.3" if one_sided else "5.1.11" if verb == "names" else call.procedure.section
        self.session.report(
            Finding(
                BuffersOverlap,
                f"{f'{call.name}: ' * one_sided}the {buffer} overlaps with itself: {names} "
                f"{verb} some bytes more than once",
                [place(call)],
                f"MPI 4.1, section {section}: no byte is written more than once",
                "use a datatype with a larger stride or extent, or a smaller count"
                if verb == "names"
                else "use counts and displacements that keep the parts apart",
            )
        )

    def call_made(self, call: MpiCall) -> None:
        """Compare the buffers of a call with each other, and with those that are owned."""
        name = call.name
        if call.kind is CallKind.ONE_SIDED:
            if name in COMMUNICATE:
                for message in written_by(call):
                    self._written_twice(call, message)
            return
        # The second half of a split access names the same buffer.
        if call.kind is not CallKind.FILE or not name.endswith("_end"):
            self._buffers(call)

    def _buffers(self, call: MpiCall) -> None:
        parameters = call.procedure.parameters
        pair = (
            "sendbuf" in parameters and "recvbuf" in parameters and not call.name.endswith("_init")
        )
        if not pair and not self.session.pending.of.get(call.rank.pid):
            return
        memory = memory_of_arguments(call)
        if pair:
            self._aliased(call, memory.get("sendbuf", []), memory.get("recvbuf", []))
        if call.kind is CallKind.COLLECTIVE and call.name[0].isupper():
            return  # it has entered with all its parts
        reads: list[WatchedRegion] = []
        writes: list[WatchedRegion] = []
        for name, pieces in memory.items():
            (writes if receives(call, name) else reads).extend(pieces)
        self._compare(call, reads, writes)

    def _aliased(self, call: MpiCall, out: list[WatchedRegion], into: list[WatchedRegion]) -> None:
        if overlap(out, into):
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

    def _compare(
        self,
        call: MpiCall,
        reads: list[WatchedRegion],
        writes: list[WatchedRegion],
        prepared: MpiCall | None = None,
    ) -> None:
        mine = self.session.pending.of.get(call.rank.pid)
        for pending in list(mine.values()) if mine else ():
            if pending.call is not call and pending.meets(reads, writes):
                self._meets(call, prepared or call, pending)

    def _meets(self, call: MpiCall, prepared: MpiCall, owned: PendingMemory) -> None:
        self.session.report(
            Finding(
                BuffersOverlap,
                f"the buffer of {prepared.name} overlaps with that of {owned.prepared.name}, which "
                "is not complete",
                [
                    *places(call, prepared, "uses it, too"),
                    *places(owned.call, owned.prepared, "owns the buffer"),
                ],
                "MPI 4.1, section 3.7.2: until an operation is complete, no other operation "
                "accesses its receive buffer, and none writes to its send buffer",
                "complete the first operation before, or use another buffer",
            )
        )

    def operation_begun(self, rank: Rank, pending: PendingMemory) -> None:
        """Watch the memory of an operation."""
        if pending.call.name.startswith(("Start", "Pready")):
            self._compare(pending.call, pending.reads, pending.writes, pending.prepared)
        self.contents[pending] = Checksummed(pending)

        def touched(rank: Rank, touch: Touch) -> None:
            if touch.writes or overlap([touch.memory], pending.writes):
                self._touched(rank, pending, touch)

        regions = [*pending.reads, *pending.writes]
        self.session.memory.watch(rank, (self, id(pending)), regions, touched)

    def operation_ended(self, rank: Rank, pending: PendingMemory, call: MpiCall) -> None:
        """Release the memory of an operation, which must not have changed."""
        self.session.memory.forget(rank, (self, id(pending)))
        contents = self.contents.pop(pending)
        if pending in self.reported or pending.call in self.session.explained:
            return
        if contents.checksum() != contents.sum:
            self.session.report(
                Finding(
                    BufferTouched,
                    f"the buffer of {pending.prepared.name} has changed before the operation was "
                    "complete",
                    [
                        *places(pending.call, pending.prepared, "owns the buffer"),
                        place(call, "changed before this"),
                    ],
                    "MPI 4.1, section 3.7.2: until an operation is complete, the program does not "
                    "write to its send buffer",
                    "write to the buffer after the Wait, or send a copy",
                )
            )

    def _touched(self, rank: Rank, owned: PendingMemory, touch: Touch) -> None:
        if owned in self.reported:
            return
        self.reported.add(owned)
        verb = "written" if touch.writes else "read"
        receives = bool(owned.writes)
        self.session.report(
            Finding(
                BufferTouched,
                f"the buffer of {owned.prepared.name} is {verb} before the operation is complete",
                [
                    Place(
                        [rank.pid],
                        f"the program {'writes' if touch.writes else 'reads'}",
                        touch.site,
                        "touches the buffer",
                    ),
                    *places(owned.call, owned.prepared, "owns the buffer"),
                ],
                "MPI 4.1, section 3.7.2: until an operation is complete, the program does not "
                + ("use its receive buffer" if receives else "write to its send buffer"),
                "move the use behind the Wait, or use another buffer",
            )  # fmt: skip
        )


def _checksum(messages: list[Any]) -> int:
    total = 0
    for message in messages:
        total = zlib.crc32(message.pack(), total)
    return total


def _sent(operation: object, handle: Any) -> list[object]:
    """The messages whose checksum must not change until the operation is complete."""
    message = getattr(handle, "ob_buf", None)
    if isinstance(message, tuple) and isinstance(operation, PairOperation):
        message = message[0]
    request = getattr(operation, "request", None)
    sends = isinstance(request, Send) or isinstance(operation, PairOperation)
    return [message] if sends and isinstance(message, MessageRegion) else []


def _meet_each_other(parts: list[WatchedRegion]) -> bool:
    """Whether some parts of a buffer have a byte in common."""
    parts = sorted(parts, key=lambda part: part.low)
    for i, part in enumerate(parts):
        for other in parts[i + 1 :]:
            if other.low >= part.high:
                break
            if part.overlaps(other):
                return True
    return False


checker("buffers", "buffers that the program touches while an operation owns them; overlaps")(
    BufferChecks
)
