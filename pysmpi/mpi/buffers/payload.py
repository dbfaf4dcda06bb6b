"""Messages whose data is not copied, although they take simulated time.

The data of a message is not copied in two cases. Folded memory is shared by all ranks, so a copy
from one to another would copy garbage to garbage. In skeleton mode, messages above a size are only
envelopes. Pickled objects always arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pysmpi.mpi.base.exporting import address_of
from pysmpi.mpi.buffers.regions import Blocks, MessageRegion, copy_message

NEVER = 1 << 62


class Payload:
    """The settings of this run: one object, `PAYLOAD`.

    Messages of more than `most` bytes carry no data. Buffers of at least `least` bytes are folded
    if their address is from `start` to `stop`, or in one of the partly private arrays.
    """

    __slots__ = ("least", "most", "active", "start", "stop", "_shared")

    def __init__(self) -> None:
        self.most = NEVER
        self.unfold()

    @contextmanager
    def skipping(self, most: int) -> Iterator[None]:
        """Send no data with messages of more than `most` bytes; `NEVER`: send all data."""
        self.most = most
        self._decide()
        try:
            yield
        finally:
            self.most = NEVER
            self._decide()

    def fold(self, start: int, stop: int, least: int, shared: Any) -> None:
        """Copy no data between folded buffers.

        `shared(address, nbytes)` tells whether memory outside the range is also shared.
        """
        self.start, self.stop, self.least, self._shared = start, stop, least, shared
        self._decide()

    def unfold(self) -> None:
        """No memory is folded."""
        self.start = self.stop = 0
        self.least = NEVER
        self._shared = None
        self._decide()

    def _decide(self) -> None:
        self.active = self.most < NEVER or self.least < NEVER

    def folded(self, memory: Any) -> bool:
        """Whether a message, a buffer of blocks or a view is in memory that ranks share."""
        view: Any
        if memory.__class__ is MessageRegion:
            view = memory.memory if memory.data is None else memory.data
        else:
            view = memory._memory if memory.__class__ is Blocks else memory
        if view.__class__ is not memoryview or view.nbytes < self.least:
            return False
        address = address_of(view)
        if self.start <= address < self.stop:
            return True
        return self._shared is not None and self._shared(address, view.nbytes)

    def stays(self, source: object, target: object) -> bool:
        """Whether no data is copied from a message, or packed data, to a message."""
        if source.__class__ is MessageRegion or source.__class__ is memoryview:
            if source.nbytes > self.most:
                return True
            return source.nbytes >= self.least and self.folded(source) and self.folded(target)
        return False

    def kept(self, source: MessageRegion) -> object:
        """The data to keep if the sender continues: a copy, if a receiver needs one."""
        if source.nbytes > self.most or (source.nbytes >= self.least and self.folded(source)):
            return source
        return source.snapshot()


PAYLOAD = Payload()


def move(source: MessageRegion, target: MessageRegion) -> None:
    """Copy the data of one message to another, unless data is not copied."""
    if not (PAYLOAD.active and PAYLOAD.stays(source, target)):
        copy_message(source, target)


def snapshot(source: MessageRegion) -> object:
    """A packed copy of a message's data; the message itself if its data is not copied."""
    return PAYLOAD.kept(source) if PAYLOAD.active else source.snapshot()
