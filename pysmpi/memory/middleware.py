"""Models of messages by middleware costs: log_3P and 2log_{2,3}P, and their broadcasts.

A message costs `overhead` (o: contiguous data through the middleware on both sides), `latency` (l:
the additional cost of packing and unpacking strided data) and `network` (o_net). log_3P has one
such cost, between nodes; 2log_{2,3}P also has a cost inside a node, without network.

Source: Tu, Fan, Zhan and Zhao, Accurate Analytical Models for Message Passing on Multi-core
Clusters (PDP 2009), equations 3 and 4 and section IV-B. All times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs of one message of some size and stride.

    `send` is the sender's part of the middleware's cost, if it was measured by itself. The paper
    assumes half: "the costs at point i=0 and i=2 are regarded as equal".
    """

    overhead: float
    latency: float
    network: float = 0.0
    send: float | None = None

    @property
    def middleware(self) -> float:
        """o_mw + l_mw, on both sides together."""
        return self.overhead + self.latency

    @property
    def sending(self) -> float:
        """The sender's part of o_mw + l_mw."""
        return self.middleware / 2 if self.send is None else self.send

    @property
    def message(self) -> float:
        """T = o_mw + l_mw + o_net (equations 3 and 4)."""
        return self.middleware + self.network


def linear_log_3p(ranks: int, between: Cost) -> float:
    """The root sends to each other rank: P (o' + l') / 2 + o'_net.

    A measured cost of the sender takes the place of (o' + l') / 2.
    """
    return ranks * between.sending + between.network


def linear_2log(ranks: int, nodes: int, inside: Cost, between: Cost) -> float:
    """The same, the ranks of the root's node first.

    (P/n - 1) (o + l) / 2 + (P - (P/n - 1) - 1) (o' + l') / 2 + o'_net

    Measured costs of the sender take the places of the halves.
    """
    local = ranks // nodes - 1
    remote = ranks - local - 1
    return local * inside.sending + remote * between.sending + between.network


def binomial_log_3p(ranks: int, between: Cost) -> float:
    """log2 P messages one after the other: (o' + l' + o'_net) log2 P."""
    return between.message * _steps(ranks)


def binomial_2log(ranks: int, local: int, inside: Cost, between: Cost) -> float:
    """The same with `local` of them inside nodes."""
    return inside.message * local + between.message * (_steps(ranks) - local)


def _steps(ranks: int) -> int:
    if ranks < 1:
        raise ValueError(f"ranks: expected at least 1, got {ranks}")
    return (ranks - 1).bit_length()
