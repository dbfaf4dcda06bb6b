"""Delay models: LogP, LogGP, PLogP and LogGPS.

A message keeps the processors at both ends busy. It uses the network card of the sender's host, and
then the card of the receiver's host. A card handles one message at a time in each direction, so the
gap is a first-come-first-served resource of the host. Nothing else is shared: the network has no
contention in any topology. Messages between ranks of one host use no card.

Parameters that the machine does not give for this model come from its description: L is the sum of
the latencies of a route, G the inverse of its smallest bandwidth, and the overheads are those of
the hybrid model (`smpi/os`, `smpi/or`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from pysmpi.kernel.plan import Gap, Plan, Port, Transport
from pysmpi.network.models import Explanation, model
from pysmpi.network.overheads import Overheads
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host, Platform

SYNCHRONOUS = "smpi/send-is-detached-thresh"


@dataclass(frozen=True)
class Timing:
    """The seconds of one message: see `pysmpi.kernel.plan.Plan` and `Gap`."""

    send: float
    isend: float
    receive: float
    latency: float
    hold: float
    last: float
    lead: float = 0.0
    ahead: float = 0.0
    late: float = 0.0
    request: float = 0.0
    answer: float = 0.0
    eager: bool = True


class DelayTransport(Transport):
    """Plans of messages that take a card of each host; `hosts[slot]` is the host of each slot."""

    def __init__(self, platform: Platform, hosts: Sequence[Host], settings: Settings) -> None:
        self.platform = platform
        self.hosts = hosts
        self.cards: dict[int, tuple[Port, Port]] = {}
        self.ways: dict[tuple[int, int], tuple[float, float]] = {}
        self.sending = Overheads(settings, "smpi/os", hosts)
        self.receiving = Overheads(settings, "smpi/or", hosts)
        self.own_sending = settings.value("loggp/os")
        self.own_receiving = settings.value("loggp/or")
        self.latency = settings.value("loggp/L")
        self.gap = settings.number("loggp/g", 0.0)
        self.per_byte = settings.value("loggp/G")

    @abstractmethod
    def timing(self, src: Host, dst: Host, nbytes: int) -> Timing:
        """The costs of a message of `nbytes` from one host to another."""

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """The plan of a message of `nbytes` between two slots."""
        src, dst = self.hosts[source], self.hosts[destination]
        timing = self.timing(src, dst, nbytes)
        out = into = None
        if src is not dst:
            out, into = self._cards(src)[0], self._cards(dst)[1]
        gap = Gap(
            out, into, timing.hold, timing.last, timing.lead, timing.ahead, timing.request,
            timing.answer, timing.late,
        )  # fmt: skip
        return Plan(
            timing.latency, send_cost=timing.send, isend_cost=timing.isend,
            recv_cost=timing.receive, eager=timing.eager, detached=timing.eager, gap=gap,
        )  # fmt: skip

    def place(self, slot: int) -> int:
        """The host: in these models all its slots have the same costs."""
        return self.hosts[slot].index

    def _cards(self, host: Host) -> tuple[Port, Port]:
        """The ports of a host, outwards and inwards."""
        result = self.cards.get(host.index)
        if result is None:
            result = self.cards[host.index] = Port(), Port()
        return result

    def os(self, src: Host, nbytes: int) -> float:
        """The sender's overhead (s)."""
        result = self.own_sending or self.sending.of(src)
        return float(result.affine(nbytes))

    def os_fixed(self, src: Host, nbytes: int) -> float:
        """The part of the sender's overhead that does not grow with the size (s)."""
        result = self.own_sending or self.sending.of(src)
        return float(result.factor(nbytes))

    def orecv(self, dst: Host, nbytes: int) -> float:
        """The receiver's overhead (s)."""
        result = self.own_receiving or self.receiving.of(dst)
        return float(result.affine(nbytes))

    def way(self, src: Host, dst: Host) -> tuple[float, float]:
        """L (s) and G (s/byte) between two hosts."""
        key = src.index, dst.index
        result = self.ways.get(key)
        if result is None:
            links = self.platform.way(src, dst)
            latency = sum(link.latency for link in links)
            per_byte = 1.0 / min(link.bandwidth for link in links)
            if src is not dst:
                latency = self.latency if self.latency is not None else latency
                per_byte = self.per_byte if self.per_byte is not None else per_byte
            if len(self.ways) >= 1 << 18:
                self.ways.clear()
            result = self.ways[key] = latency, per_byte
        return result


_OVERHEADS = (
    ("os, or", "overheads of the sender and the receiver (s): loggp/os and loggp/or, or those of "
     "the machine (smpi/os, smpi/or)"),
    ("L", "latency (s): loggp/L, or the sum of the latencies of the route"),
)  # fmt: skip
_G = ("G", "gap per byte (s/byte): loggp/G, or the inverse of the route's smallest bandwidth")
_g = ("g", "gap between messages of a card (s): loggp/g, or 0")


class LogP(DelayTransport):
    """A message is as many packets as it needs, each with its overheads, a gap apart."""

    def __init__(self, platform: Platform, hosts: Sequence[Host], settings: Settings) -> None:
        super().__init__(platform, hosts, settings)
        self.packet = int(settings.number("logp/packet"))
        self.own_gap = settings.value("loggp/g")

    def timing(self, src: Host, dst: Host, nbytes: int) -> Timing:
        latency, per_byte = self.way(src, dst)
        gap = self.own_gap if self.own_gap is not None else self.packet * per_byte
        send, receive = self.os(src, 1), self.orecv(dst, 1)
        each = max(gap, send, receive)
        busy = (max(1, -(-nbytes // self.packet)) - 1) * each
        return Timing(send + busy, send + busy, receive, latency, busy + each, busy, busy, busy)


@model(
    "logp",
    "LogP: packets, each with its overheads, a gap apart (Culler et al. 1993)",
    Explanation(
        "T(k) = os + (k-1) max(g, os, or) + L + or, for k packets; the sender is busy for "
        "os + (k-1) max(g, os, or), and a card takes the packets of one message after those of "
        "another",
        (
            ("k", "the number of packets of logp/packet bytes (1500: an Ethernet frame)"),
            *_OVERHEADS,
            ("g", "gap between packets (s): loggp/g, or a packet at the route's smallest "
             "bandwidth"),
        ),
        "Culler, Karp, Patterson, Sahay, Schauser, Santos, Subramonian, von Eicken: LogP: Towards "
        "a Realistic Model of Parallel Computation. PPoPP 1993; the formula for k packets as in "
        "Bedaride et al. (PMBS 2013), section II",
        "short messages; it sends long ones as packets, so it overestimates them "
        "where overheads are larger than a packet's gap. No contention but at the cards.",
    ),
)  # fmt: skip
def logp(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """LogP."""
    return LogP(platform, hosts, settings)


class LogGP(DelayTransport):
    """The overheads of all messages are equal; each byte after the first takes G."""

    def timing(self, src: Host, dst: Host, nbytes: int) -> Timing:
        latency, per_byte = self.way(src, dst)
        send, receive = self.os(src, 1), self.orecv(dst, 1)
        last = max(0, nbytes - 1) * per_byte
        return Timing(send, send, receive, latency, last + self.gap, last)


@model(
    "loggp",
    "LogGP: a gap per byte for long messages, overheads that do not depend on the size",
    Explanation(
        "T(k) = os + (k-1) G + L + or, for k bytes; the card of the sender, and then that of the "
        "receiver, is busy for (k-1) G + g",
        (*_OVERHEADS, _g, _G),
        "Alexandrov, Ionescu, Schauser, Scheiman: LogGP: Incorporating Long Messages into the LogP "
        "Model. SPAA 1995",
        "messages that are sent without waiting for the receiver; no protocol, no contention but "
        "at the cards.",
    ),
)
def loggp(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """LogGP."""
    return LogGP(platform, hosts, settings)


class LogGPS(DelayTransport):
    """Overheads grow with the size; long messages wait for their receiver."""

    def __init__(self, platform: Platform, hosts: Sequence[Host], settings: Settings) -> None:
        super().__init__(platform, hosts, settings)
        self.short = settings.number("loggps/s", 0.0)
        self.short_per_byte = settings.value("loggps/g")
        self.synchronous = settings.number("loggps/S", settings.number(SYNCHRONOUS))

    def timing(self, src: Host, dst: Host, nbytes: int) -> Timing:
        latency, per_byte = self.way(src, dst)
        short = min(nbytes, self.short)
        first = self.short_per_byte if self.short_per_byte is not None else per_byte
        last = short * first + (nbytes - short) * per_byte
        send, receive = self.os(src, nbytes), self.orecv(dst, nbytes)
        fixed = self.os_fixed(src, nbytes)
        late = send - fixed
        # T4 is max(L + o, tr - ts) + o; the call pays the first o; T5 is 2o + L.
        ready = self.orecv(dst, 0)
        answer = ready + (ready + latency + fixed)
        if nbytes < self.synchronous:
            return Timing(
                send, fixed, receive, latency, last + self.gap, last,
                late=late, request=latency, answer=answer,
            )  # fmt: skip
        return Timing(
            fixed, fixed, receive, latency, last + self.gap, last,
            request=latency, answer=answer + send, eager=False,
        )  # fmt: skip


@model(
    "loggps",
    "LogGPS: LogGP with overheads that grow with the size, and a rendezvous for long messages",
    Explanation(
        "T1 = o + k Os, T2 = L + k g for k < s, else L + s g + (k-s) G, T3 = o + k Or; "
        "T(k) = T1 + T2 + T3 below S bytes; from S on the sender waits for T4 = "
        "max(L + o, tr - ts) + o and T5 = 2 o + L before T1, ts and tr being the dates of the "
        "calls. A non-blocking send costs o. A card is busy for T2 - L + g_message",
        (
            ("o + k Os, o + k Or", "overheads of both sides (s): loggp/os and loggp/or, or those "
             "of the machine (smpi/os, smpi/or)"),
            _OVERHEADS[1],
            ("g", "gap per byte of short messages (s/byte): loggps/g, or G"),
            ("s", "bytes up to which g holds: loggps/s, or 0"),
            _G,
            ("S", "bytes from which on messages are synchronous: loggps/S, or "
             "smpi/send-is-detached-thresh"),
            ("g_message", "gap between messages of a card (s): loggp/g, or 0"),
        ),
        "Ino, Fujimoto, Hagihara: LogGPS: A Parallel Computational Model for Synchronization "
        "Analysis. PPoPP 2001; as in figure 1 of Bedaride et al. (PMBS 2013). A card as a queue in "
        "each direction: Hoefler, Schneider, Lumsdaine: LogGOPSim. HPDC 2010",
        "a machine whose network has full bisection bandwidth; on others it is optimistic where "
        "many ranks communicate at once, since there is no contention but at the cards.",
    ),
)  # fmt: skip
def loggps(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """LogGPS."""
    return LogGPS(platform, hosts, settings)


class PLogP(DelayTransport):
    """Overheads and gap are functions of the size."""

    def __init__(self, platform: Platform, hosts: Sequence[Host], settings: Settings) -> None:
        super().__init__(platform, hosts, settings)
        self.gaps = settings.value("plogp/g")

    def timing(self, src: Host, dst: Host, nbytes: int) -> Timing:
        latency, per_byte = self.way(src, dst)
        send, receive = self.os(src, nbytes), self.orecv(dst, nbytes)
        if self.gaps is None:
            gap = self.gap + nbytes * per_byte
        else:
            gap = self.gaps.affine(nbytes)
        gap = max(gap, send, receive)
        # The card begins with the sender, and the receiver ends with the card, which begins L after
        # the sender has: that may be before the sender is done.
        return Timing(
            send, send, receive, max(0.0, latency - send), gap, gap - receive,
            lead=send, ahead=max(0.0, send - latency),
        )  # fmt: skip


@model(
    "plogp",
    "PLogP: LogP with overheads and a gap that depend on the size (Kielmann et al. 2000)",
    Explanation(
        "T(m) = L + g(m), at least os(m) + or(m); the sender is busy for os(m), the receiver for "
        "the last or(m), the card of each for g(m)",
        (
            ("os(m), or(m)", "overheads (s): loggp/os and loggp/or, or those of the machine"),
            _OVERHEADS[1],
            ("g(m)", "gap (s) by size: plogp/g (bytes:s:s/byte;...), or loggp/g + m G; at least "
             "os(m) and or(m), which it covers"),
            _G,
        ),
        "Kielmann, Bal, Verstoep: Fast Measurement of LogP Parameters for Message Passing "
        "Platforms. IPDPS Workshops 2000",
        "any size, as far as g(m) was measured; senders and receivers that are ready, since the "
        "measured gap holds the protocol. No contention but at the cards.",
    ),
)  # fmt: skip
def plogp(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """PLogP."""
    return PLogP(platform, hosts, settings)
