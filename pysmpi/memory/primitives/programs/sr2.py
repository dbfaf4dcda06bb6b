"""SR2: send and receive without locks.

Buffers of fixed size replace the lists of SR1: each process has one for its available packets, and
one for its incoming packets. Each buffer has one writer and one reader. Each side keeps its
position privately; the writer advances an index up to which the reader may read. The reader empties
the slots that it has read; the writer waits for an empty slot.
"""

from __future__ import annotations

from pysmpi.memory.primitives.operations import Program, Variable, load, mark, store
from pysmpi.memory.primitives.programs.benchmarks import (
    Step,
    check_sizes,
    payloads,
    ping_pong,
    read,
    receives,
    sends,
    stream,
    write,
)


class _Buffer:
    """Names of packets in a ring of slots; `index` counts written packets, modulo 2 rounds."""

    def __init__(self, name: str, reader: int, packets: list[str | None]) -> None:
        self.size = len(packets)
        self.round = 2 * self.size
        filled = len([packet for packet in packets if packet is not None])
        self.index = Variable(f"{name}[{reader}].index", filled, "index", reader)
        self.slots = [
            Variable(f"{name}[{reader}].slot[{k}]", packet, "index", reader)
            for k, packet in enumerate(packets)
        ]

    def put(self, packet: str, mine: dict[str, int], position: str) -> Step:
        at = mine[position]
        mine[position] = (at + 1) % self.round
        slot = self.slots[at % self.size]
        while (yield load(slot)) is not None:
            pass
        yield store(slot, packet)
        yield store(self.index, mine[position])

    def get(self, mine: dict[str, int], position: str) -> Step:
        at = mine[position]
        while (yield load(self.index)) == at:
            pass
        mine[position] = (at + 1) % self.round
        slot = self.slots[at % self.size]
        packet = yield load(slot)
        yield store(slot, None)
        return packet


def program(packets: int = 1, streaming: bool = False, lines: int = 1) -> Program:
    """Ping-pong over SR2, with `packets` packets a process.

    streaming: process 0 sends and process 1 receives, without answers. lines: cache lines of the
    contents of a packet.
    """
    check_sizes(packets, lines)
    both = (0, 1)
    names = {i: [f"{i}.{k}" for k in range(packets)] for i in both}
    incoming = [_Buffer("incoming", i, [None] * packets) for i in both]
    available = [_Buffer("available", i, [*names[i]]) for i in both]
    header = {}
    payload = {}
    for i in both:
        for name in names[i]:
            header[name] = Variable(f"header[{name}]", None, "packet", i)
            payload[name] = payloads(name, i, lines)

    def private() -> dict[str, int]:
        return {"take": 0, "return": packets, "write": 0, "read": 0}

    def send(me: int, message: int, mine: dict[str, int]) -> Step:
        packet = yield from available[me].get(mine, "take")
        yield store(header[packet], me)
        yield from write(payload[packet], message)
        yield mark(sends(me, message))
        yield from incoming[1 - me].put(packet, mine, "write")

    def receive(me: int, mine: dict[str, int]) -> Step:
        packet = yield from incoming[me].get(mine, "read")
        source = yield load(header[packet])
        message = yield from read(payload[packet])
        yield mark(receives(me, message))
        yield from available[source].put(packet, mine, "return")

    buffers = [*incoming, *available]
    variables = [buffer.index for buffer in buffers]
    variables += [slot for buffer in buffers for slot in buffer.slots]
    variables += [*header.values(), *(line for each in payload.values() for line in each)]
    description = "send and receive over buffers with one reader, no locks"
    if streaming:
        return stream("sr2", description, variables, private, send, receive, packets, lines)
    return ping_pong("sr2", description, variables, private, send, receive, lines)
