"""Middleware models: log_nP, log_3P, mlog_nP and 2log_{2,3}P.

Sources: Cameron, Ge and Sun, log_nP and log_3P: Accurate Analytical Models of Point-to-Point
Communication in Distributed Systems (IEEE Transactions on Computers 56, 2007); Tu, Fan, Zhan and
Zhao, Accurate Analytical Models for Message Passing on Multi-core Clusters (PDP 2009).
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.kernel.plan import Transport
from pysmpi.network.middleware import (
    NETWORK,
    NODE,
    SOCKET,
    MiddlewareTransport,
    flat,
    hop_by_hop,
)
from pysmpi.network.models import Explanation, model
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host, Platform

CAMERON = (
    "Cameron, Ge, Sun: log_nP and log_3P: Accurate Analytical Models of Point-to-Point "
    "Communication in Distributed Systems. IEEE Transactions on Computers 56(3), 2007"
)
TU = (
    "Tu, Fan, Zhan, Zhao: Accurate Analytical Models for Message Passing on Multi-core Clusters. "
    "PDP 2009"
)
_F = (
    ("s, d", "bytes of the message, and bytes from one piece of the derived datatype to the next"),
    ("f(s,1)", "overhead of one side (s): lognp/o, or the machine's smpi/os and smpi/or"),
    ("f(s,d)", "latency of one side (s): lognp/l, the time of a piece and of a byte by stride, or "
     "the time for packing a piece in the description of the node; 0 for contiguous messages"),
)  # fmt: skip
_INSIDE = (
    ("inside a node", "lognp/o-node and lognp/l-node, or overheads and half of the loopback on "
     "each side"),
)  # fmt: skip
_NET = (
    "o_net",
    "network overhead (s): lognp/net, or latencies of the route and s over its smallest bandwidth",
)
_VALID = (
    "messages that are sent without a handshake (up to 16 KiB in the paper); no contention, "
    "g = o; one rank a core"
)


class Log3P(MiddlewareTransport):
    """All messages go between nodes, and the network is one transfer."""

    def level(self, source: int, destination: int) -> int:
        return NETWORK

    def network(self, src: Host, dst: Host, nbytes: int) -> float:
        if self.net is not None:
            return self.net.affine(nbytes)
        return flat(self.platform, src, dst, nbytes)


class LogNP(Log3P):
    """All messages go between nodes, and each link is a separate transfer."""

    def network(self, src: Host, dst: Host, nbytes: int) -> float:
        if self.net is not None:
            return self.net.affine(nbytes)
        return hop_by_hop(self.platform, src, dst, nbytes)


class Log23P(Log3P):
    """Messages inside a node have two transfers, those between nodes three."""

    def level(self, source: int, destination: int) -> int:
        return NODE if self.hosts[source] is self.hosts[destination] else NETWORK


class MLogNP(LogNP):
    """Levels: inside a socket, inside a node, between nodes, there with a transfer a link."""

    def level(self, source: int, destination: int) -> int:
        if self.hosts[source] is not self.hosts[destination]:
            return NETWORK
        return SOCKET if self.socket(source) == self.socket(destination) else NODE

    def place(self, slot: int) -> int:
        host = self.hosts[slot]
        return host.index * self._sockets + self.socket(slot)

    @property
    def _sockets(self) -> int:
        return max(host.sockets for host in self.hosts)


@model(
    "log_nP",
    "log_nP: middleware costs by size and stride, and a transfer for each link of the route",
    Explanation(
        "T = sum over i < n of o_i + l_i = 2 f(s,1) + 2 f(s,d) + sum over the links of "
        "(latency + s / bandwidth); n is 2 + the number of links",
        (*_F, ("links", "those of the route, one after the other; lognp/net replaces their sum")),
        CAMERON,
        _VALID + "; ranks of one node are as far apart as those of two",
    ),
)
def log_np(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """log_nP."""
    return LogNP(platform, hosts, settings)


@model(
    "log_3P",
    "log_3P: middleware costs by size and stride on both sides, and one network transfer",
    Explanation(
        "T = o_mw + l_mw + o_net = 2 f(s,1) + 2 f(s,d) + o_net",
        (*_F, _NET),
        CAMERON,
        _VALID + "; ranks of one node are as far apart as those of two",
    ),
)
def log_3p(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """log_3P."""
    return Log3P(platform, hosts, settings)


@model(
    "mlog_nP",
    "mlog_nP: log_nP with costs of their own inside a socket, inside a node, between nodes",
    Explanation(
        "T = 2 f(s,1) + 2 f(s,d) with f of the level; between nodes, + sum over the links of "
        "(latency + s / bandwidth)",
        (
            *_F,
            *_INSIDE,
            ("inside a socket", "lognp/o-socket and lognp/l-socket, or those inside a node"),
            ("links", "as in log_nP"),
        ),
        TU,
        _VALID,
    ),
)
def mlog_np(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """mlog_nP."""
    return MLogNP(platform, hosts, settings)


@model(
    "2log_23P",
    "2log_{2,3}P: log_3P between nodes, two transfers without a network inside a node",
    Explanation(
        "T = 2 f(s,1) + 2 f(s,d) inside a node (n = 2), "
        "2 f'(s,1) + 2 f'(s,d) + o_net between nodes (n = 3)",
        (*_F, *_INSIDE, _NET),
        TU + ", equations 4 and 5",
        _VALID,
    ),
)
def two_log_23p(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """2log_{2,3}P."""
    return Log23P(platform, hosts, settings)
