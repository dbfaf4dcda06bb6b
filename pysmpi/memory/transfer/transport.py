"""The transport of a run: the network between hosts, a memory model inside described ones."""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.kernel.plan import Plan, Transport
from pysmpi.memory.coherence import protocol
from pysmpi.memory.transfer.buffers import Location
from pysmpi.memory.transfer.channel import Channel
from pysmpi.memory.transfer.described import Locate, described
from pysmpi.memory.transfer.doorway import Doorway, Side
from pysmpi.memory.transfer.library import read_library
from pysmpi.memory.transfer.models import Builder
from pysmpi.memory.transfer.packing import pack_seconds
from pysmpi.memory.transfer.room import LOADED, STORED, Room
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host
from pysmpi.platform.placement import Slot
from pysmpi.platform.stride_table import Strides


class MemoryTransport(Transport):
    """Plans of `network` between hosts, and of a memory model inside hosts with a description.

    `places[slot]` is the place of each slot; it may grow. `locate(payload)` returns the place of a
    payload.
    """

    def __init__(
        self,
        network: Transport,
        slots: Sequence[Slot],
        settings: Settings,
        build: Builder,
        locate: Locate | None = None,
    ) -> None:
        self.network = network
        self.slots = slots
        self.library = read_library(settings)
        self.protocol = settings.text("memory/protocol")
        if self.protocol:
            protocol(self.protocol)
        self.build = build
        self.locate = locate
        self.rooms: dict[int, Room] = {}
        self.channels: dict[tuple[int, int], Channel] = {}
        self._first: dict[int, int] = {}  # by place of the network: the first slot there, for all

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """The plan of a message of `nbytes` between two slots."""
        sender, receiver = self.slots[source], self.slots[destination]
        if sender.host is not receiver.host:
            plan = self.network.plan(source, destination, nbytes)
            if described(sender.host) or described(receiver.host):
                # The plan may be cached by the network's model.
                return plan.priced(Doorway(self._side(source), self._side(destination)))
            return plan
        if not described(sender.host):
            return self.network.plan(source, destination, nbytes)
        channel = self.channels.get((source, destination))
        if channel is None:
            channel = self.channels[source, destination] = self.build(
                self.room(sender.host), source, destination, sender.core, receiver.core
            )
        return channel.plan(nbytes)

    def place(self, slot: int) -> int:
        """The slot itself in a described host, whose caches it uses; else one number a host."""
        if described(self.slots[slot].host):
            return slot
        return self._first.setdefault(self.network.place(slot), slot)

    def apart_from(self) -> int:
        """The size from which the slots of a host without description share its memory."""
        return self.network.apart_from()

    def host_numbers(self, slots: int) -> list[int] | None:
        """The slot itself in a described host; else one number a host, below 0."""
        hosts = self.network.host_numbers(slots)
        if hosts is None:
            return None
        return [
            slot if described(self.slots[slot].host) else -1 - host
            for slot, host in enumerate(hosts)
        ]

    def room(self, host: Host) -> Room:
        """The node of a described host."""
        room = self.rooms.get(host.index)
        if room is None:
            node = host.node
            assert node is not None
            room = self.rooms[host.index] = Room(
                node, protocol(self.protocol or node.protocol), self.library, self.locate
            )
        return room

    def pack_seconds(self, slot: int, strides: Strides, write: bool) -> float:
        """Seconds to pack the strided data of a rank, or to unpack it (`write`)."""
        host = self.slots[slot].host
        if not described(host):
            return 0.0
        nbytes, pieces, span = strides
        kind = STORED if write else LOADED
        return pack_seconds(self.room(host), kind, (None, 0, span, pieces), nbytes)

    def moves_strided(self, pid: int, strides: Strides | None) -> None:
        """The messages of a collective carry packed data."""

    def touch(self, slot: int, location: Location, nbytes: int, write: bool) -> None:
        """The program loads, or stores to, `nbytes` of its memory on a slot."""
        host, core = self.slots[slot]
        if described(host) and nbytes:
            room = self.room(host)
            block = room.of(slot, core).block(location, None, nbytes)
            room.caches.access(core, block, write)

    def _side(self, slot: int) -> Side | None:
        host_core = self.slots[slot]
        return (
            Side(self.room(host_core.host), slot, host_core.core)
            if described(host_core.host)
            else None
        )
