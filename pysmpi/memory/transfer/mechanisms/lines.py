"""The line model: the time of a message follows from the cache lines that cores read.

The model was measured up to 8 KiB. Longer messages are those of the model `pipelined`.

Source: Ramos, Hoefler: Modeling Communication in Cache-Coherent SMP Systems: A Case-Study with
Xeon Phi. HPDC 2013, equations 1 and 2.
"""

from __future__ import annotations

from pysmpi.errors import UsageError
from pysmpi.kernel.plan import Plan
from pysmpi.memory.lines.costs import LineCosts
from pysmpi.memory.lines.machine import line_costs
from pysmpi.memory.lines.pingpong import multi_line, single_line
from pysmpi.memory.transfer.channel import Channel
from pysmpi.memory.transfer.models import Builder, memory_model
from pysmpi.memory.transfer.names import LINE_STATES
from pysmpi.memory.transfer.room import Room
from pysmpi.memory.transfer.timed import TimedChannel, added_overhead
from pysmpi.platform.config import Settings

MOST = 8192  # bytes of the longest messages for which the paper has measured and fitted T_N


class LineChannel(TimedChannel):
    """Messages by their lines up to 8 KiB; longer ones are pipelined through shared buffers."""

    def plan(self, nbytes: int) -> Plan:
        """The plan of messages of a size."""
        return Channel.plan(self, nbytes) if nbytes > MOST else super().plan(nbytes)


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
            room, source, destination, sender, receiver, seconds, 1.0 - reading, overhead
        )

    return build


def _one(costs: LineCosts, state: str) -> float:
    """T_1 of the full model (table 2b)."""
    return single_line(costs, state, simplified=False)
