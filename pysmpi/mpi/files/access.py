"""Active accesses to a file: their data and their time.

A `FileAccess` is one process's reading or writing of one message. Its bytes pass the simulated
disk, and at the end of this the real file is read or written. In a collective access the processes
first exchange the ranges of the file that they want. If these interleave, they exchange data so
that each accesses one piece (two-phase I/O; Thakur et al., "Data sieving and collective I/O in
ROMIO"); otherwise each accesses its range independently.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from pysmpi.collectives.cache import schedule_for
from pysmpi.collectives.call import Call
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest
from pysmpi.mpi.base.constants import ANY_SOURCE, ANY_TAG, ERR_FILE, SUCCESS
from pysmpi.mpi.base.ranks import Rank, Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.spellings import MessageRegion
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.files.disks import DiskStep
from pysmpi.mpi.files.pointers import FileSide, RangeClaim
from pysmpi.mpi.files.storage import FileError
from pysmpi.mpi.files.views import Pieces
from pysmpi.mpi.groups.agreement import agree_later, tag_of
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.point_to_point.operations import RequestOperation

# The message of a process about its part: its begin and end in the file.
RANGE_BYTES = 16


# The effect of a call that asks for the length of a file.
MEASURE = f"reads {sys.maxsize} {sys.maxsize} {sys.maxsize} 1"


def take_turn(rank: Rank, side: FileSide, effect: str) -> None:
    """Wait for the turn at the file, where the order of accesses is chosen."""
    control = rank.engine.control
    if control is not None:
        place = f"file {os.path.realpath(side.file.storage.path)}"
        control.turn(rank.process, place, "", effect)


class FileAccess(RequestOperation):
    """Reads or writes a message at a position (bytes) of the stream of a view.

    `got` is the amount of the message that was transferred, in bytes of the file.
    """

    __slots__ = (
        "claim", "detail", "error", "got", "message", "nbytes", "pieces", "finished",
        "side", "steps", "stream", "write",
    )  # fmt: skip

    pieces: Pieces

    def __init__(
        self, rank: Rank, subject: object, side: FileSide, write: bool, message: MessageRegion
    ) -> None:
        super().__init__(rank, subject)
        self.side = side
        self.write = write
        self.message = message
        self.nbytes = side.representation.nbytes(message)
        self.got = 0
        self.error: int = SUCCESS
        self.detail = ""
        self.finished = False
        self.stream: Any = None
        self.steps: list[DiskStep] = []
        self.claim: RangeClaim | None = None
        if write and side.representation.converts:
            # The rank that calls a conversion, which may be a function of the program.
            try:
                self.stream = side.representation.encode(message)
            except FileError as error:
                self.refuse(error)

    # The begin. The process has entered its call, and has no pending compute.

    def begin(self, position: int) -> None:
        """Start at a position of the stream; the request completes at the end."""
        self.request = KernelRequest()
        self.place(position)
        self.go()

    def place(self, position: int) -> None:
        """Compute the places of the data in the file."""
        self.pieces = self.side.view.pieces(position, self.nbytes)

    def effect(self) -> str:
        """The effect on the file, for `pysmpi.explore.events.exchangeable`.

        Its words are the kind, the first byte and the last one plus 1, the first byte of which a
        reader sees a change, and whether the length of the file changes or matters. A reader at
        the end of the file sees how long it is.
        """
        low, high = self.pieces.low, self.pieces.high
        end = self.side.file.storage.size()
        if not self.write:
            return f"reads {low} {high if high <= end else sys.maxsize} {low} 0"
        if high <= end:
            return f"writes {low} {high} {low} 0"
        return f"writes {low} {high} {min(low, end)} 1"

    def way(self) -> list[DiskStep]:
        """The work of the disk."""
        side = self.side
        sieving = side.hints["romio_ds_write" if self.write else "romio_ds_read"]
        return side.disk.steps(self.pieces, self.write, sieving)

    def go(self) -> None:
        """Start the work of the disk."""
        if self.nbytes == 0 or self.error:
            self.complete()
            return
        side = self.side
        self.steps = self.way()
        if side.file.atomic:
            low, high = self.pieces.low, self.pieces.high
            self.claim = RangeClaim(low, high, self.write, self.step)
            side.file.claims.take(self.claim)
        else:
            self.step()

    def step(self) -> None:
        """Let the next part of the work pass; after the last one, move the data."""
        if self.steps:
            self.side.disk.work(self.rank.engine, self.steps.pop(0), self.step).start()
            return
        try:
            self.move()
        except FileError as error:
            self.refuse(error)
        else:
            listeners = self.rank.engine.listeners
            if listeners.file_accessed is not None:
                kind = "write" if self.write else "read"
                file = self.side.file
                listeners.notify("file_accessed", file, self.rank, kind, self.pieces.low, self.got)
        if self.claim is not None:
            self.side.file.claims.release(self.claim)
        self.complete()

    def refuse(self, error: FileError) -> None:
        """Store an error for the rank."""
        self.error = error.code
        self.detail = error.detail

    def complete(self) -> None:
        """End the access, for the kernel."""
        assert self.request is not None
        self.request.complete(self.rank.engine.now)

    def move(self) -> None:
        """Read or write the file."""
        storage = self.side.file.storage
        if storage.fd < 0:
            raise FileError(ERR_FILE, f"{storage.path} was closed before the access was over")
        message = self.message
        converts = self.side.representation.converts
        if self.write:
            storage.write(self.pieces, memoryview(self.stream if converts else message.pack()))
            self.got = self.nbytes
            return
        direct = message.data is not None and not converts
        stream = message.data if direct else memoryview(bytearray(self.nbytes))
        assert stream is not None
        self.got = storage.read(self.pieces, stream)
        if not direct:
            self.stream = stream[: self.got]

    # The end, in the rank.

    def fill(self, status: Status | None) -> int:
        """Store the data that was read, once; describe it in `status`."""
        representation = self.side.representation
        if not self.finished:
            self.finished = True
            if not self.write and self.stream is not None:
                try:
                    representation.decode(self.message, self.stream)
                except FileError as error:
                    self.refuse(error)
            self.stream = None
        if status is not None:
            got = representation.memory_bytes(self.message, self.got)
            status._fill(ANY_SOURCE, ANY_TAG, got)
            status.error = self.error
        return self.error


# Called with each access that begins, before it has its place.
WATCHER: StateSlot[Universe, Callable[[FileAccess], None]] = StateSlot(Universe)


class NamedCollective(NamedTuple):
    """The name of a collective operation, where reports of deadlocks look for it."""

    op: str


class AccessGroup(NamedTuple):
    """The collective call of an access, and its group of processes."""

    communicator: Communicator
    number: int
    call: NamedCollective


class CollectiveAccess(FileAccess):
    """One process's part of a collective access.

    `name` is that of the operation. With an `order`, the processes access one after the other:
    `order` computes the positions (etypes) of all from the numbers of etypes that they access.
    """

    __slots__ = ("block", "name", "number", "order", "part")

    part: AccessGroup

    def __init__(
        self, rank: Rank, subject: object, side: FileSide, write: bool, message: MessageRegion,
        name: str,
        order: Callable[[dict[int, int]], dict[int, int]] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(rank, subject, side, write, message)
        self.name = name
        self.order = order
        self.block = 0  # bytes that each process sends to each before or after its access
        self.number = 0

    def begin(self, position: int) -> None:
        """Start with the others, in the background."""
        self.request = KernelRequest()
        side = self.side
        communicator = side.file.communicator
        value: Any
        make: Any = self.order
        if make is None:
            make = interleave
            self.place(position)
            hint = side.hints["romio_cb_write" if self.write else "romio_cb_read"]
            if side.hints["collective_buffering"] == "false":
                hint = "disable"
            value = (self.pieces.low, self.pieces.high, self.nbytes, hint)
        else:
            value = self.nbytes // side.view.unit
        self.request.payload = agree_later(
            self.rank, communicator, self.name, value, RANGE_BYTES, make, self.agreed
        )
        # All processes count the exchange, whether or not there will be one.
        communicator.continue_call(side.me)
        self.number = communicator.next_call(side.me)
        self.part = AccessGroup(
            communicator, self.number - 1, NamedCollective(self.name.removeprefix("i"))
        )

    def agreed(self, made: Any) -> None:
        """All processes have entered the call."""
        if self.order is not None:
            self.place(made[self.side.me] * self.side.view.unit)
            self.go()
            return
        self.block = made
        if self.block and self.write:
            self.exchange(self.go)
        else:
            self.go()

    def way(self) -> list[DiskStep]:
        """One piece, after an exchange."""
        if self.block:
            return [DiskStep(self.write, self.side.disk.latency, self.nbytes)]
        return super().way()

    def complete(self) -> None:
        """End the access after the others have the data that was read for them."""
        if self.block and not self.write:
            self.exchange(super().complete)
        else:
            super().complete()

    def exchange(self, then: Callable[[], object]) -> None:
        """Move data between the processes that use it and the processes that access it."""
        rank, side = self.rank, self.side
        communicator = side.file.communicator
        call = Call("alltoall", side.me, communicator.size, count=self.block,
                    selection=rank.universe.selection)  # fmt: skip
        main = rank.process
        process = Process(rank.engine, rank.pid, main.slot, main.core)
        tag = tag_of(self.number, "file_exchange")
        process.prepare(schedule_for(call), communicator.coll, side.me, tag)
        process.resume = then
        process.launch()


def interleave(values: dict[int, tuple[int, int, int, str]]) -> int:
    """The bytes of a block of the exchange that precedes or follows a collective access.

    There is no exchange, and the result is 0, if each process accesses its part of the file after
    the part of the previous process.
    """
    size = len(values)
    hint = values[0][3]
    if size == 1 or hint == "disable":
        return 0
    total = 0
    reached = -1
    interleaved = hint == "enable"
    for rank in range(size):
        low, high, nbytes, _ = values[rank]
        if nbytes:
            interleaved = interleaved or low < reached
            reached = high
            total += nbytes
    return -(-total // (size * size)) if interleaved else 0
