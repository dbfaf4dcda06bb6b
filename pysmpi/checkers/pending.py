"""The memory of operations that have begun in a rank and are not complete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from pysmpi.checkers.memory import WatchedRegion, overlap, regions_of
from pysmpi.checkers.memory_of_calls import memory_of_operation
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure
from pysmpi.mpi.files.pointers import FileSide
from pysmpi.mpi.point_to_point.operations import RequestOperation
from pysmpi.mpi.point_to_point.partitioned import (
    Partitioned,
    PartitionedReceive,
    PartitionedSend,
)
from pysmpi.mpi.point_to_point.requests import Request

_STARTS = frozenset(("Start", "Startall"))


class PendingMemory:
    """The memory that an operation owns until it is complete."""

    __slots__ = ("call", "prepared", "handle", "operation", "reads", "writes")

    def __init__(
        self,
        call: MpiCall,
        prepared: MpiCall,
        handle: Request | FileSide | None,
        operation: object,
        reads: list[WatchedRegion],
        writes: list[WatchedRegion],
    ) -> None:
        self.call = call
        self.prepared = prepared  # the call that prepared it, if it is persistent
        self.handle = handle
        self.operation = operation
        self.reads = reads  # MPI reads these: the program must not write
        self.writes = writes  # MPI writes these: the program must not use them

    def meets(self, reads: list[WatchedRegion], writes: list[WatchedRegion]) -> bool:
        """Whether other accesses to memory conflict with it."""
        return (
            overlap(writes, self.writes)
            or overlap(writes, self.reads)
            or overlap(reads, self.writes)
        )


class PendingWatcher(Protocol):
    """Hears of operations."""

    def operation_begun(self, rank: Rank, pending: PendingMemory) -> None:
        """An operation owns memory from now on."""

    def operation_ended(self, rank: Rank, pending: PendingMemory, call: MpiCall) -> None:
        """A call has completed an operation."""


class PendingOperations:
    """The operations of all ranks; hears of each call before the checkers that watch."""

    def __init__(self) -> None:
        self.watchers: Sequence[PendingWatcher] = ()
        # By pid, by id of the operation or of the file side, and number of the partition or -1.
        self.of: dict[int, dict[tuple[int, int], PendingMemory]] = {}
        self._operations: dict[int, list[RequestOperation]] = {}  # by id of the call
        self._special: dict[Procedure, bool] = {}  # whether a call may begin one without a request
        # The handle of each persistent operation and the call that made it, by its id.
        self._persistent: dict[int, tuple[Request, MpiCall, object]] = {}

    def all_of(self, pid: int) -> list[PendingMemory]:
        """The operations of a rank that are not complete."""
        mine = self.of.get(pid)
        return list(mine.values()) if mine else []

    def call_made(self, call: MpiCall) -> None:
        """Note the operations that the call may start."""
        if call.name in _STARTS and call.operations:
            self._operations[id(call)] = call.operations

    def call_returned(self, call: MpiCall, result: object) -> None:
        """Note the memory of new operations; release that of complete ones."""
        rank = call.rank
        mine = self.of.get(rank.pid)
        if mine:
            self._release(rank, call, mine)
        procedure = call.procedure
        special = self._special.get(procedure)
        if special is None:
            special = self._special[procedure] = (
                procedure.name in _STARTS
                or procedure.name.startswith(("Pready", "Parrived"))
                or procedure.kind is CallKind.FILE
            )
        if (result is None and not special) or call.kind is CallKind.LOCAL:
            return
        if call.name in _STARTS:
            for operation in self._operations.pop(id(call), ()):
                entry = self._persistent.get(id(operation))
                handle = None if entry is None else entry[0]
                if isinstance(operation, PartitionedReceive):
                    self._partitions(rank, call, handle, operation, range(operation.partitions))
                else:
                    self._begin(rank, call, handle, operation)
            return
        if call.name.startswith(("Pready", "Parrived")):
            self._partition(rank, call, result)
            return
        if call.kind is CallKind.FILE and call.name.endswith(("_begin", "_end")):
            self._split(rank, call)
            return
        if isinstance(result, Request):
            self._returned(rank, call, result)
        elif isinstance(result, tuple):
            for handle in result:
                if isinstance(handle, Request):
                    self._returned(rank, call, handle)

    def _returned(self, rank: Rank, call: MpiCall, handle: Request) -> None:
        started = handle._impl
        if isinstance(started, RequestOperation):
            if started.persistent:
                self._persistent[id(started)] = handle, call, started
            elif not call.values or handle is not call.values[0]:
                self._begin(rank, call, handle, started)

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """Forget the call."""
        self._operations.pop(id(call), None)

    def _partition(self, rank: Rank, call: MpiCall, result: object) -> None:
        """A partition is ready: MPI owns it until the operation is complete. Or it has arrived."""
        handle = call.values[0]
        operation = handle._impl if isinstance(handle, Request) else None
        if isinstance(operation, PartitionedSend):
            mine = self.of.get(rank.pid, {})
            ready = [i for i in sorted(operation.marked) if (id(operation), i) not in mine]
            self._partitions(rank, call, handle, operation, ready)
        elif isinstance(operation, PartitionedReceive) and result:
            self._end(rank, call, (id(operation), int(call.arguments["partition"])))

    def _partitions(
        self,
        rank: Rank,
        call: MpiCall,
        handle: Request | None,
        operation: Partitioned,
        numbers: Iterable[int],
    ) -> None:
        blocks = operation.blocks
        if blocks is None or operation.request is None:
            return
        for i in numbers:
            memory = regions_of(blocks.block(i))
            sends = isinstance(operation, PartitionedSend)
            reads, writes = (memory, []) if sends else ([], memory)
            prepared = self._maker(call, operation)
            self._own(rank, i, PendingMemory(call, prepared, handle, operation, reads, writes))

    def _split(self, rank: Rank, call: MpiCall) -> None:
        """A split collective access has begun or ended."""
        side = getattr(call.values[0], "_impl", None)
        if not isinstance(side, FileSide):
            return
        self._end(rank, call, (id(side), -1))
        if call.name.endswith("_begin") and side.split is not None:
            reads, writes = memory_of_operation(side.split[1], None)
            self._own(rank, -1, PendingMemory(call, call, side, side, reads, writes))

    def _begin(
        self, rank: Rank, call: MpiCall, handle: Request | None, operation: RequestOperation
    ) -> None:
        reads, writes = memory_of_operation(operation, handle)
        prepared = self._maker(call, operation)
        self._own(rank, -1, PendingMemory(call, prepared, handle, operation, reads, writes))

    def _maker(self, call: MpiCall, operation: RequestOperation) -> MpiCall:
        """The call that made a persistent operation; for others the one that began it."""
        entry = self._persistent.get(id(operation))
        return call if entry is None else entry[1]

    def _own(self, rank: Rank, number: int, pending: PendingMemory) -> None:
        if pending.reads or pending.writes:
            self.of.setdefault(rank.pid, {})[id(pending.operation), number] = pending
            for watcher in self.watchers:
                watcher.operation_begun(rank, pending)

    def _end(self, rank: Rank, call: MpiCall, key: tuple[int, int]) -> None:
        pending = self.of.get(rank.pid, {}).pop(key, None)
        if pending is not None:
            for watcher in self.watchers:
                watcher.operation_ended(rank, pending, call)

    def _release(
        self, rank: Rank, call: MpiCall, mine: dict[tuple[int, int], PendingMemory]
    ) -> None:
        for key, pending in list(mine.items()):
            handle = pending.handle
            if isinstance(handle, FileSide):
                continue  # the second half of the call ends it
            operation = handle._impl if handle is not None else None
            if not isinstance(operation, RequestOperation) or (
                operation.persistent and operation.request is None
            ):
                self._end(rank, call, key)
