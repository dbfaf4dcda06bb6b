"""The base of log_nP and related models: middleware costs by size and stride.

A message costs its sender f(s, 1) + f(s, d). The first term is the overhead of s contiguous bytes
in the middleware. The second is the additional latency of packing pieces with a stride of d bytes.
The receiver has the same costs, for its own datatype. The network is between the two.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from pysmpi.kernel.plan import Gap, Plan, Transport
from pysmpi.kernel.requests import Pricing, Receive, Send
from pysmpi.network.overheads import Overheads
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host, Platform
from pysmpi.platform.piecewise import Piecewise
from pysmpi.platform.placement import Slot
from pysmpi.platform.stride_table import Strides, StrideTable

# Levels of communication, the narrowest first.
SOCKET, NODE, NETWORK = 0, 1, 2
_OPTIONS = (
    ("lognp/o-socket", "lognp/l-socket", "lognp/f-socket"),
    ("lognp/o-node", "lognp/l-node", "lognp/f-node"),
    ("lognp/o", "lognp/l", "lognp/f"),
)


class Level:
    """The middleware of one level of communication."""

    def __init__(
        self,
        overhead: Piecewise | None,
        latency: Piecewise | None,
        table: StrideTable | None,
        name: int,
    ) -> None:
        self.overhead = overhead
        self.latency = latency
        self.table = table
        self.name = name

    def strided(self, host: Host, nbytes: int, pieces: int, span: int) -> float:
        """f(s, d): seconds of `nbytes` in equal `pieces` over `span` bytes, in addition to f(s, 1).

        If the machine has no such latencies, the packing time of its description is used.
        """
        if pieces <= 1:
            return 0.0
        stride = (span - nbytes // pieces) // (pieces - 1)
        if self.table is not None:
            return self.table.at(nbytes, stride)
        if self.latency is None:
            node = host.node
            if node is None:
                return 0.0
            return pieces * node.packing[1 if self.name == NETWORK else 0]
        each, per_byte = (*self.latency.at(stride), 0.0)[:2]
        return each * pieces + per_byte * nbytes


class Packing(Pricing):
    """The costs that the datatypes at both ends add to a message of a level between two hosts."""

    def __init__(self, transport: MiddlewareTransport, level: Level, src: Host, dst: Host) -> None:
        self.transport = transport
        self.level = level
        self.src = src
        self.dst = dst

    def _seconds(self, host: Host, payload: object, nbytes: int) -> float:
        locate = self.transport.locate
        place = None if locate is None or payload is None else locate(payload)
        if place is None or nbytes == 0:
            return 0.0
        _, start, end, pieces = place
        return self.level.strided(host, nbytes, pieces, end - start)

    def _of_collective(self, host: Host, pid: int, nbytes: int) -> float:
        """The cost of a part of the strided data of a collective."""
        strides = self.transport.moving.get(pid)
        if strides is None or nbytes == 0:
            return 0.0
        part = min(1.0, nbytes / strides.nbytes)
        pieces, span = round(part * strides.pieces), round(part * strides.span)
        return self.level.strided(host, nbytes, pieces, span)

    def sending(self, send: Send) -> None:
        """The sender packs."""
        send.start_cost += self._seconds(self.src, send.payload, send.nbytes)
        if self.transport.moving and send.payload is None:
            context = send.context
            sources = context if context.peer is None else context.peer
            pid = sources.members[send.source].pid
            send.start_cost += self._of_collective(self.src, pid, send.nbytes)

    def matched(self, send: Send, receive: Receive) -> None:
        """The receiver unpacks."""
        nbytes = min(send.nbytes, receive.nbytes)
        receive.finish_cost += self._seconds(self.dst, receive.payload, nbytes)
        if self.transport.moving and receive.payload is None:
            pid = send.context.members[send.destination].pid
            receive.finish_cost += self._of_collective(self.dst, pid, nbytes)


class MiddlewareTransport(Transport):
    """Plans of messages by middleware costs.

    `hosts[slot]` is the host of each slot. The creator of the run sets `places`, the host and core
    of each slot, and `locate(payload)`. `locate` returns the place of a payload: the object that
    owns it, its first byte, its last byte + 1, and the number of pieces; or None if it is in no
    buffer of the program.
    """

    def __init__(self, platform: Platform, hosts: Sequence[Host], settings: Settings) -> None:
        self.platform = platform
        self.hosts = hosts
        self.places: Sequence[Slot] = ()
        self.locate: Any = None
        self.sending = Overheads(settings, "smpi/os", hosts)
        self.receiving = Overheads(settings, "smpi/or", hosts)
        self.net: Piecewise | None = settings.value("lognp/net")
        self.levels = [
            Level(settings.value(overhead), settings.value(latency), settings.value(table), name)
            for name, (overhead, latency, table) in enumerate(_OPTIONS)
        ]
        self.moving: dict[int, Strides] = {}  # by pid: the strided data of its collective

    @abstractmethod
    def level(self, source: int, destination: int) -> int:
        """The level of communication of two slots."""

    @abstractmethod
    def network(self, src: Host, dst: Host, nbytes: int) -> float:
        """The network overhead (s) between two hosts."""

    def socket(self, slot: int) -> int:
        """The socket of a slot in its host."""
        if not self.places:
            return 0
        host, core = self.places[slot]
        return core // max(1, host.cores // host.sockets)

    def place(self, slot: int) -> int:
        return self.hosts[slot].index

    def pack_seconds(self, slot: int, strides: Strides, write: bool) -> float:
        """Each message of a collective has its own cost, so its data has none."""
        return 0.0

    def moves_strided(self, pid: int, strides: Strides | None) -> None:
        """The data of the collective that a rank is in is strided, or it has left."""
        if strides is None:
            self.moving.pop(pid, None)
        else:
            self.moving[pid] = strides

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        src, dst = self.hosts[source], self.hosts[destination]
        name = self.level(source, destination)
        level = self._fallback(name)
        if level.overhead is not None:
            send = receive = level.overhead.affine(nbytes)
        else:
            send = self.sending.of(src).affine(nbytes)
            receive = self.receiving.of(dst).affine(nbytes)
            if name != NETWORK:
                # The machine has no overhead of a copy: half of its loopback on each side.
                half = flat(self.platform, src, src, nbytes) / 2.0
                send += half
                receive += half
        if name == NETWORK:
            latency = self.network(src, self._beyond(src) if src is dst else dst, nbytes)
        else:
            latency = 0.0
        return Plan(
            latency, send_cost=send, isend_cost=send, recv_cost=receive, eager=True,
            pricing=Packing(self, level, src, dst), gap=Gap(None, None, 0.0, 0.0),
        )  # fmt: skip

    def _fallback(self, name: int) -> Level:
        """The level; a socket without its own costs has those of the node."""
        level = self.levels[name]
        if name == SOCKET and not (level.overhead or level.latency or level.table):
            return self.levels[NODE]
        return level

    def _beyond(self, host: Host) -> Host:
        """Another host: a model without nodes does not distinguish the ranks of one host."""
        hosts = self.platform.hosts
        return hosts[host.index - 1 if host.index else min(1, len(hosts) - 1)]


def flat(platform: Platform, src: Host, dst: Host, nbytes: int) -> float:
    """Latencies of a route and the bytes through its narrowest link: seconds."""
    links = platform.way(src, dst)
    return sum(link.latency for link in links) + nbytes / min(link.bandwidth for link in links)


def hop_by_hop(platform: Platform, src: Host, dst: Host, nbytes: int) -> float:
    """The bytes through one link after the other: seconds."""
    return sum(link.latency + nbytes / link.bandwidth for link in platform.way(src, dst))
