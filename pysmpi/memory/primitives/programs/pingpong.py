"""The ping-pong benchmark around any send and receive."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.memory.primitives.operations import Operation, Program, Variable, start

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


def receives(me: int, message: int) -> str:
    """The mark of process `me` having received `message`."""
    return f"{me} receives {message}"


def check_packets(packets: int) -> None:
    """Raise UsageError if there is no packet for a message."""
    if packets < 1:
        raise UsageError(f"packets: expected at least 1, got {packets}")


def ping_pong(
    name: str,
    description: str,
    variables: Sequence[Variable],
    private: Callable[[], dict[str, int]],
    send: Callable[[int, int, dict[str, int]], Step],
    receive: Callable[[int, dict[str, int]], Step],
) -> Program:
    """Two processes that send each other a message in turn: 0 and 1 alternate as its contents.

    `send(me, message, mine)` and `receive(me, mine)` are generators. They yield the marks above
    when the message is passed on and when it has been read. `mine` is the private state of the
    process, which `private()` creates; it persists between calls.
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
    )
