"""How a rank takes part in a collective through cache lines that the ranks of a node share.

Ranks copy straight from each other's lines. What the reads cost passes as time of the rank that
does them; what one rank waits to see from another is a `share` of the kernel, which takes none.
So a collective whose ranks enter together takes what the best case of the line-cost model says.

Where nothing is known about the lines of a node, the same trees carry ordinary messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.collectives.building import NOTHING, Builder
from pysmpi.collectives.call import Call
from pysmpi.memory.lines.costs import LineCosts
from pysmpi.memory.lines.machine import XEON_PHI, costs_of


class Shared:
    """One rank of a node: what it shows to others, what it waits for, what its reads cost."""

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
        """Let each peer have bytes from now on."""
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

    # Flags carry no data. Messages say by themselves that they have come.

    def notify(self, peers: Sequence[int]) -> None:
        """Set the flags of peers."""
        if self.timed:
            self.show(peers, 0, NOTHING)

    def notified(self, peers: Sequence[int]) -> None:
        """Wait for the flags of peers."""
        if self.timed:
            for peer in peers:
                self.take(peer, 0, NOTHING)
