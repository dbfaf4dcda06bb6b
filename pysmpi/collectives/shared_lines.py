"""Collectives through cache lines that the ranks of a node share.

Ranks copy directly from each other's lines. The costs of reads pass as time of the reading rank. A
wait for another rank's data is a `share` of the kernel, which takes no time. If all ranks enter
together, a collective takes the best case of the line-cost model.

If the costs of a node's lines are unknown, the same trees carry ordinary messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.collectives.building import NOTHING, Builder
from pysmpi.collectives.call import Call
from pysmpi.memory.lines.costs import LineCosts
from pysmpi.memory.lines.machine import XEON_PHI, costs_of


class Shared:
    """One rank of a node: its visible data, its waits, the costs of its reads."""

    def __init__(self, s: Builder, c: Call) -> None:
        self.s = s
        self.c = c
        self.first = s.slots
        found = None
        if c.selection is not None and c.selection.lines is not None and c.nodes is not None:
            found = c.selection.lines.of(c.nodes[c.rank])
        self.timed = found is not None
        self.costs: LineCosts = costs_of(XEON_PHI) if found is None else found

    def passes(self, seconds: float) -> None:
        """Let the time of reads pass."""
        if self.timed and seconds > 0.0:
            self.s.sleep(seconds)

    def show(self, peers: Sequence[int], nbytes: int, at: int) -> None:
        """Make bytes visible to each peer."""
        for peer in peers:
            if self.timed:
                self.s.share(peer, nbytes, at)
            else:
                self.s.isend(peer, nbytes, at)

    def end(self) -> None:
        """Wait for the messages that are still under way."""
        self.s.waitall(self.first, self.s.slots)

    def take(self, peer: int, nbytes: int, at: int) -> None:
        """Wait until a peer shows bytes."""
        self.s.recv(peer, nbytes, at)

    # Flags carry no data. A message needs no flag.

    def notify(self, peers: Sequence[int]) -> None:
        """Set the flags of peers."""
        if self.timed:
            self.show(peers, 0, NOTHING)

    def notified(self, peers: Sequence[int]) -> None:
        """Wait for the flags of peers."""
        if self.timed:
            for peer in peers:
                self.take(peer, 0, NOTHING)
