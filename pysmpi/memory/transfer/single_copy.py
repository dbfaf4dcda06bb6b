"""Transfers with one copy: the receiver reads the sender's memory itself.

The operating system copies (CMA, KNEM), or maps the sender's pages into the receiver (XPMEM). There
is no pipeline, and the sender's core is idle. The receiver's loads take the lines from the sender's
caches or memory, and leave them shared.
"""

from typing import Optional

from pysmpi.kernel.activities import Constraint
from pysmpi.kernel.plan import Plan
from pysmpi.kernel.requests import Send
from pysmpi.memory.transfer.buffers import Location
from pysmpi.memory.transfer.caches import Block
from pysmpi.memory.transfer.channel import Channel
from pysmpi.memory.transfer.room import MOST_CACHED, Room

PAGE = 4096


class SingleCopy(Channel):
    """A message takes `start` seconds, `page` seconds for each page, and one copy.

    With `lasting` the pages of a buffer stay mapped: they cost only at its first message.
    """

    def __init__(
        self,
        room: Room,
        source: int,
        destination: int,
        sender: int,
        receiver: int,
        start: float,
        page: float,
        lasting: bool,
    ) -> None:
        super().__init__(room, source, destination, sender, receiver)
        self.start: float = start
        self.page: float = page
        self.lasting: bool = lasting
        self.mapped: dict[Block, int] = {}

    def _transfer(self, send: Send, into: Block, nbytes: int, location: Optional[Location]) -> Plan:
        """The plan of a message; the receiver reads the sender's lines itself."""
        plan = super()._transfer(send, into, nbytes, location)
        weights: dict[Constraint, float] = {}
        self._add_line(weights, send.payload, nbytes)
        if len(weights) == 0:
            return plan
        weights.update(zip(plan.constraints, plan.weights))
        return self._plan(nbytes, nbytes / plan.bound, weights)

    def _priced(self, out: Block, into: Block, nbytes: int) -> Plan:
        room = self.room
        load = room.caches.access(self.receiver, out, False)
        store = room.caches.access(self.receiver, into, True)
        new = not (self.lasting and out in self.mapped)
        key = (nbytes, load, store, out.home, into.home, new)
        plan = self.plans.get(key)
        if plan is None:
            each = room.copy(load, store, nbytes, nbytes)
            seconds = self.start + nbytes * each
            if new:
                seconds += self.page * (1 + (nbytes - 1) // PAGE)
            weights: dict[Constraint, float] = {room.cores[self.receiver]: each}
            room.use(weights, self.receiver, load, nbytes, out.home)
            room.use(weights, self.receiver, store, nbytes, into.home)
            plan = self._plan(nbytes, seconds, weights)
            self._cache_plan(key, plan)
        if new and self.lasting:
            if len(self.mapped) >= MOST_CACHED:
                self.mapped = {}
            self.mapped[out] = nbytes
        return plan
