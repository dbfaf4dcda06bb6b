"""SR1: send and receive over lists and locks, as in MPICH 1.2's shared-memory device.

Each process has a list of available packets and a list of incoming packets. Every access locks the
list, also the check whether it is empty. The receiver returns a packet to the list of its owner.
"""

from __future__ import annotations

from collections.abc import Mapping

from pysmpi.memory.primitives.operations import (
    Program,
    Variable,
    acquire,
    load,
    mark,
    release,
    store,
)
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


class _List:
    """A linked list of packets under a lock; one without a tail is used from its head only."""

    def __init__(
        self,
        name: str,
        owner: int,
        packets: list[str],
        following: Mapping[str, Variable],
        has_tail: bool,
        look: bool,
    ) -> None:
        self.look = look
        self.following = following
        first, last = (packets[0], packets[-1]) if packets else (None, None)
        self.lock = Variable(f"{name}[{owner}].lock", 0, "lock", owner)
        self.head = Variable(f"{name}[{owner}].head", first, "pointer", owner)
        self.tail = Variable(f"{name}[{owner}].tail", last, "pointer", owner) if has_tail else None
        self.variables = [self.lock, self.head] + ([self.tail] if self.tail else [])

    def take(self) -> Step:
        """Wait for a packet and take the first one."""
        packet = None
        while packet is None:
            while self.look and (yield load(self.head)) is None:
                pass
            yield from acquire(self.lock)
            packet = yield load(self.head)
            if packet is not None:
                following = yield load(self.following[packet])
                yield store(self.head, following)
                if following is None and self.tail is not None:
                    yield store(self.tail, None)
            yield from release(self.lock)
        return packet

    def give(self, packet: str) -> Step:
        """Add a packet: at the end of a list with a tail, else at its head."""
        if self.tail is None:
            yield from acquire(self.lock)
            first = yield load(self.head)
            yield store(self.following[packet], first)
            yield store(self.head, packet)
        else:
            yield store(self.following[packet], None)
            yield from acquire(self.lock)
            last = yield load(self.tail)
            if last is None:
                yield store(self.head, packet)
            else:
                yield store(self.following[last], packet)
            yield store(self.tail, packet)
        yield from release(self.lock)


def program(
    packets: int = 1,
    fifo: bool = False,
    look: bool = False,
    streaming: bool = False,
    lines: int = 1,
) -> Program:
    """Ping-pong over SR1, with `packets` packets for each process.

    fifo: packets return to the end of the list of available ones, which then also has a tail; in
    MPICH they return to its head. look: a process locks a list only after it has seen a packet in
    it, as in MPICH. streaming: process 0 sends and process 1 receives, without answers. lines:
    cache lines of the contents of a packet.
    """
    check_sizes(packets, lines)
    both = (0, 1)
    names = {i: [f"{i}.{k}" for k in range(packets)] for i in both}
    following, header, payload = {}, {}, {}
    for i in both:
        for name, after in zip(names[i], [*names[i][1:], None]):
            following[name] = Variable(f"next[{name}]", after, "pointer", i)
            header[name] = Variable(f"header[{name}]", None, "packet", i)
            payload[name] = payloads(name, i, lines)
    available = [_List("available", i, names[i], following, fifo, look) for i in both]
    incoming = [_List("incoming", i, [], following, True, look) for i in both]

    def send(me: int, message: int, mine: dict[str, int]) -> Step:
        packet = yield from available[me].take()
        yield store(header[packet], me)
        yield from write(payload[packet], message)
        yield mark(sends(me, message))
        yield from incoming[1 - me].give(packet)

    def receive(me: int, mine: dict[str, int]) -> Step:
        packet = yield from incoming[me].take()
        source = yield load(header[packet])
        message = yield from read(payload[packet])
        yield mark(receives(me, message))
        yield from available[source].give(packet)

    variables = [variable for each in (*available, *incoming) for variable in each.variables]
    variables += [*following.values(), *header.values()]
    variables += [line for each in payload.values() for line in each]
    description = "send and receive over lists with locks"
    if streaming:
        return stream("sr1", description, variables, dict, send, receive, packets, lines)
    return ping_pong("sr1", description, variables, dict, send, receive, lines)
