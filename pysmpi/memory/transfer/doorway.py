"""Messages that leave or enter a described node: their buffers pass through its caches."""

from typing import Optional

from pysmpi.kernel.requests import Pricing, Receive, Send
from pysmpi.memory.transfer.buffers import Buffers
from pysmpi.memory.transfer.packing import pack_seconds
from pysmpi.memory.transfer.room import Room


class Side:
    """One end of a message: the ranks on a slot, on a core of a node."""

    def __init__(self, room: Room, slot: int, core: int) -> None:
        self.room: Room = room
        self.core: int = core
        self.buffers: Buffers = room.of(slot, core)

    def through(self, payload: object, nbytes: int, write: bool) -> float:
        """Seconds of the library to pack or unpack; its core uses the buffer."""
        if nbytes == 0:
            return 0.0
        room = self.room
        location = room.location(payload)
        block = self.buffers.block(location, payload, nbytes)
        kind = room.caches.access(self.core, block, write)
        if location is None or location[3] <= 1:
            return 0.0
        return pack_seconds(room, kind, location, nbytes, True)


class Doorway(Pricing):
    """The network's price, and the costs of the library at described ends."""

    def __init__(self, sender: Optional[Side], receiver: Optional[Side]) -> None:
        self.sender: Optional[Side] = sender
        self.receiver: Optional[Side] = receiver

    def sending(self, send: Send) -> None:
        """The library reads the buffer, and packs it if it is strided."""
        if self.sender is not None:
            send.start_cost += self.sender.through(send.payload, send.nbytes, False)

    def matched(self, send: Send, receive: Receive) -> None:
        """The library writes the buffer, and unpacks it if it is strided."""
        if self.receiver is not None:
            nbytes = min(send.nbytes, receive.nbytes)
            receive.finish_cost += self.receiver.through(receive.payload, nbytes, True)
