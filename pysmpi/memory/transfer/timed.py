"""Messages whose time depends on their size and on the two cores alone."""

from __future__ import annotations

from collections.abc import Callable

from pysmpi.kernel.plan import Plan
from pysmpi.memory.transfer.channel import Channel
from pysmpi.memory.transfer.library import seconds
from pysmpi.memory.transfer.room import Room
from pysmpi.platform.config import Settings


class TimedChannel(Channel):
    """Messages that take `seconds(nbytes)`, of which the sender is busy for the part `sending`.

    Each side also pays `overhead`. A message above the eager limit of the library begins when both
    sides are ready, and keeps both busy. The state of caches does not count.
    """

    def __init__(
        self, room: Room, source: int, destination: int, sender: int, receiver: int,
        seconds: Callable[[int], float], sending: float,
        overhead: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(room, source, destination, sender, receiver)
        self.seconds = seconds
        self.part = sending
        self.overhead = overhead

    def plan(self, nbytes: int) -> Plan:
        """The plan of messages of a size."""
        total = self.seconds(nbytes)
        if nbytes <= self.room.library.eager:
            first = self.part * total + self.overhead
            last = (1.0 - self.part) * total + self.overhead
            return Plan(send_cost=first, isend_cost=first, recv_cost=last, eager=True)
        cores = self.room.cores
        used = [cores[self.sender]]
        if self.sender != self.receiver:
            used.append(cores[self.receiver])
        # Each core is busy with it for all of the time.
        pace = nbytes / total
        return Plan(
            2.0 * self.overhead, float(nbytes), pace, constraints=used,
            weights=[1.0 / pace] * len(used), detached=False,
        )  # fmt: skip


def added_overhead(settings: Settings) -> float:
    """The overhead of each side (s): these models have none unless memory/overhead is given."""
    return seconds(settings, "memory/overhead") if "memory/overhead" in settings.said else 0.0
