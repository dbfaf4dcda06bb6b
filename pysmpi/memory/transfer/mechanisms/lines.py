"""The line model: the time of a message follows from the cache lines that cores read.

The model was measured up to 8 KiB. Longer messages are those of the model `pipelined`.

One-sided transfers copy lines once: a read of one line takes R_L + R_R, and c n + b if n ranks read
this line at the same time, with b = R_L + R_R - c. Each further line takes o.

Source: Ramos, Hoefler: Modeling Communication in Cache-Coherent SMP Systems: A Case-Study with
Xeon Phi. HPDC 2013, equations 1 to 3.
"""

from __future__ import annotations

from collections.abc import Callable

from pysmpi.errors import UsageError
from pysmpi.kernel.activities import Constraint
from pysmpi.kernel.plan import Plan
from pysmpi.kernel.requests import Pricing, Transfer
from pysmpi.memory.lines.costs import LineCosts
from pysmpi.memory.lines.machine import line_costs
from pysmpi.memory.lines.pingpong import multi_line, single_line
from pysmpi.memory.transfer.channel import Channel
from pysmpi.memory.transfer.models import Builder, memory_model
from pysmpi.memory.transfer.names import LINE_STATES
from pysmpi.memory.transfer.room import MOST_CACHED, Room
from pysmpi.memory.transfer.timed import TimedChannel, added_overhead
from pysmpi.platform.config import Settings

MOST = 8192  # bytes of the longest messages for which the paper has measured and fitted T_N


class LineChannel(TimedChannel):
    """Messages by their lines up to 8 KiB; longer ones are pipelined through shared buffers."""

    def __init__(
        self, room: Room, source: int, destination: int, sender: int, receiver: int,
        seconds: Callable[[int], float], sending: float, overhead: float, costs: LineCosts,
        state: str,
    ) -> None:  # fmt: skip
        super().__init__(
            room, source, destination, sender, receiver, seconds, sending, overhead
        )  # fmt: skip
        self.copies = LineCopies(self, costs, state)

    def plan(self, nbytes: int) -> Plan:
        """The plan of messages of a size."""
        if nbytes > MOST:
            return Channel.plan(self, nbytes)
        return super().plan(nbytes).priced(self.copies)


class LineCopies(Pricing):
    """The one-sided transfers of a channel: the origin copies the lines of one side to the other.

    `state` is the state of the lines that are read.
    """

    def __init__(self, channel: LineChannel, costs: LineCosts, state: str) -> None:
        self.channel = channel
        self.costs = costs
        self.get = costs.read("remote", state) + costs.R_L
        self.put = costs.read("local", state) + costs.R_R
        self.further = costs.per_line(state)
        self.plans: dict[tuple[int, Constraint | None], Plan] = {}

    def moving(self, transfer: Transfer) -> None:
        """A transfer of one side's memory; those that read the same line slow each other down."""
        channel, nbytes, memory = self.channel, transfer.nbytes, transfer.reads
        line = None
        if memory is not None and nbytes and channel.sender != channel.receiver:
            line = channel.room.read_line(channel.senders, memory)
        plan = self.plans.get((nbytes, line))
        if plan is None:
            seconds = self.put if memory is None else self.get
            seconds += channel.overhead + self.further * (self.costs.lines(nbytes) - 1)
            if line is None:
                plan = Plan(seconds, isend_cost=channel.overhead)
            else:
                # Alone, a reader needs the line for the last c seconds of its time.
                last = self.costs.contention
                plan = Plan(
                    max(0.0, seconds - last), float(nbytes), nbytes / last,
                    constraints=[line], weights=[last / nbytes], isend_cost=channel.overhead,
                )  # fmt: skip
            if len(self.plans) >= MOST_CACHED:
                self.plans = {}
            self.plans[nbytes, line] = plan
        transfer.start_cost = plan.isend_cost
        transfer.plan = plan


@memory_model(
    "lines", "up to 8 KiB one line takes T_1 and N lines o N + q - p / N (Ramos and Hoefler 2013)"
)
def lines(settings: Settings) -> Builder:
    """The line model; buffers are in the state of memory/line-state."""
    state = LINE_STATES[settings.text("memory/line-state") or "E"]
    overhead = added_overhead(settings)

    def build(room: Room, source: int, destination: int, sender: int, receiver: int) -> Channel:
        costs = line_costs(room.node, {sender, receiver})
        if costs is None:
            raise UsageError(
                f"--memory-model lines: node {room.node.name}: expected latencies of lines, got "
                "none"
            )
        priced = costs

        def seconds(nbytes: int) -> float:
            count = priced.lines(nbytes)
            return _one(priced, state) if count == 1 else multi_line(priced, count, state)

        # The receiver reads the line that the sender has written.
        reading = priced.remote.modified / _one(priced, state)
        return LineChannel(
            room, source, destination, sender, receiver, seconds, 1.0 - reading, overhead, priced,
            state,
        )  # fmt: skip

    return build


def _one(costs: LineCosts, state: str) -> float:
    """T_1 of the full model (table 2b)."""
    return single_line(costs, state, simplified=False)
