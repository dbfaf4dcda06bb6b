"""The benchmarks around any send and receive: ping-pong for latency, stream for bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.memory.primitives.operations import (
    Operation,
    Program,
    Value,
    Variable,
    load,
    start,
    store,
)

Step = Generator[Operation, Any, Any]

# The marks of a send and a receive, and their order in a ping-pong.
SPECIFICATION: dict[Hashable, dict[str, Hashable]] = {
    0: {"0 sends 0": 1},
    1: {"1 receives 0": 2},
    2: {"1 sends 0": 3},
    3: {"0 receives 0": 4},
    4: {"0 sends 1": 5},
    5: {"1 receives 1": 6},
    6: {"1 sends 1": 7},
    7: {"0 receives 1": 0},
}


def sends(me: int, message: int) -> str:
    """The mark of process `me` sending `message`."""
    return f"{me} sends {message}"


def receives(me: int, message: Value) -> str:
    """The mark of process `me` having received `message`."""
    return f"{me} receives {message}"


def check_sizes(packets: int, lines: int) -> None:
    """Raise UsageError if there is no packet for a message, or no line for its contents."""
    for name, value in (("packets", packets), ("lines", lines)):
        if value < 1:
            raise UsageError(f"{name}: expected at least 1, got {value}")


def payloads(packet: str, owner: int, lines: int) -> list[Variable]:
    """The variables of the contents of a packet, a line each."""
    names = [f"payload[{packet}]"]
    if lines > 1:
        names = [f"payload[{packet}][{line}]" for line in range(lines)]
    return [Variable(name, None, "packet", owner) for name in names]


def write(payload: Sequence[Variable], message: int) -> Step:
    """Store a message in each line of a packet."""
    for line in payload:
        yield store(line, message)


def read(payload: Sequence[Variable]) -> Step:
    """Load a message from each line of a packet: its contents, or "mixed" if lines differ."""
    message = yield load(payload[0])
    for line in payload[1:]:
        if (yield load(line)) != message:
            message = "mixed"
    return message


def ping_pong(
    name: str,
    description: str,
    variables: Sequence[Variable],
    private: Callable[[], dict[str, int]],
    send: Callable[[int, int, dict[str, int]], Step],
    receive: Callable[[int, dict[str, int]], Step],
    lines: int = 1,
) -> Program:
    """Two processes that send each other a message in turn: 0 and 1 alternate as its contents.

    `send(me, message, mine)` and `receive(me, mine)` are generators. They yield the marks above
    when the message is passed on and when it has been read. `mine` is the private state of the
    process, which `private()` creates; it persists between calls. lines: cache lines of the
    contents.
    """

    def process(me: int) -> Step:
        mine = private()
        message = 0
        while True:
            yield start()
            for sending in (True, False) if me == 0 else (False, True):
                if sending:
                    yield from send(me, message, mine)
                else:
                    yield from receive(me, mine)
            message = 1 - message

    return Program(
        name,
        variables,
        (lambda: process(0), lambda: process(1)),
        messages=2,
        specification=SPECIFICATION,
        description=description,
        lines=lines,
    )


def stream(
    name: str,
    description: str,
    variables: Sequence[Variable],
    private: Callable[[], dict[str, int]],
    send: Callable[[int, int, dict[str, int]], Step],
    receive: Callable[[int, dict[str, int]], Step],
    packets: int,
    lines: int = 1,
) -> Program:
    """Process 0 sends to process 1 as fast as it can: 0 and 1 alternate as the contents.

    The functions are those of `ping_pong`. The sender waits when all of its `packets` packets are
    on their way.
    """

    def sender() -> Step:
        mine = private()
        message = 0
        while True:
            yield start()
            yield from send(0, message, mine)
            message = 1 - message

    def receiver() -> Step:
        mine = private()
        while True:
            yield start()
            yield from receive(1, mine)

    return Program(
        name,
        variables,
        (sender, receiver),
        specification=_queue(packets),
        description=description,
        lines=lines,
    )


def _queue(capacity: int) -> dict[Hashable, dict[str, Hashable]]:
    """The allowed marks of a stream: a queue of at most `capacity` messages, first in, first out.

    A state has the contents of the next message to send, and the number of messages in the queue.
    """
    result: dict[Hashable, dict[str, Hashable]] = {}
    for inside in range(capacity + 1):
        for message in (0, 1):
            leaving: dict[str, Hashable] = {}
            if inside < capacity:
                leaving[sends(0, message)] = (1 - message, inside + 1)
            if inside > 0:
                leaving[receives(1, (message + inside) % 2)] = (message, inside - 1)
            result[message, inside] = leaving
    return result
