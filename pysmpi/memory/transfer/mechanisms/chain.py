"""The FAME model: a message takes the mean time of a send-receive primitive on coherent caches.

The time is that of the Markov chain of the primitive, of the node's coherence protocol, and of the
latencies of lines between the two cores. A packet carries one line; more packets follow each other.

Source: Chehaibar, Zidouni, Mateescu: Modeling Multiprocessor Cache Protocol Impact on MPI
Performance. AINA Workshops 2009.
"""

from __future__ import annotations

from functools import lru_cache

from pysmpi.errors import UsageError
from pysmpi.memory.coherence import protocol
from pysmpi.memory.primitives.library import program
from pysmpi.memory.primitives.machine import PrimitiveMachine
from pysmpi.memory.primitives.placement import Latencies, at_distance, of_node
from pysmpi.memory.primitives.solution import solution
from pysmpi.memory.transfer.channel import Channel
from pysmpi.memory.transfer.models import Builder, memory_model
from pysmpi.memory.transfer.room import Room
from pysmpi.memory.transfer.timed import TimedChannel, added_overhead
from pysmpi.platform.config import Settings

_Row = tuple[tuple[str, float], ...]


@memory_model("fame", "a packet a line, each by a primitive on coherent caches (Chehaibar 2009)")
def fame(settings: Settings) -> Builder:
    """The chain of the primitive memory/primitive, on the protocol of the node."""
    primitive = settings.text("memory/primitive") or "sr1"
    chosen = program(primitive)
    if len(chosen.processes) != 2 or chosen.unit != "message":
        raise UsageError(
            "memory/primitive: expected a program that passes messages between two processes, "
            f"such as sr1 or sr2, got {primitive}: a {chosen.unit} of {len(chosen.processes)}"
        )
    table = settings.text("memory/protocol")
    overhead = added_overhead(settings)

    def build(room: Room, source: int, destination: int, sender: int, receiver: int) -> Channel:
        latencies = of_node(room.node)
        rows = tuple(tuple(sorted(row.items())) for row in latencies.distances)
        far = max(0, room.node.distance(sender, receiver))
        packet = packet_seconds(
            primitive, table or room.node.protocol, latencies.name, latencies.hit, rows, far
        )
        line = room.node.line

        def seconds(nbytes: int) -> float:
            return packet * max(1, -(-nbytes // line))

        # The chain does not give the end of the sender's part: both sides have equal parts.
        return TimedChannel(room, source, destination, sender, receiver, seconds, 0.5, overhead)

    return build


@lru_cache(maxsize=256)
def packet_seconds(
    primitive: str, table: str, node: str, hit: float, rows: tuple[_Row, ...], far: int
) -> float:
    """The mean latency of a packet between processes at distance `far`; `rows` are latencies."""
    priced = Latencies(node, hit, tuple(dict(row) for row in rows), ())
    chosen = program(primitive)
    positions = at_distance(2, far, max(3, len(rows)))
    solved = solution(PrimitiveMachine(chosen, protocol(table), positions, priced))
    if not solved.ok:
        wrong = next(each for each in solved.checks if not each.holds)
        raise UsageError(
            f"memory/primitive: {primitive} on {table}: expected a program that is right, but "
            f"{wrong.name} fails: {wrong.detail}"
        )
    return solved.figures().latency
