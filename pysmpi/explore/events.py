"""Events: the decisions of one execution, and which of them depend on each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pysmpi.kernel.choices import MATCH, PROBE, SOME, TEST, Alternative
from pysmpi.kernel.matching import ANY


class Decision(NamedTuple):
    """A decision, or one that could have been made.

    `pids` are the processes that it lets continue or whose requests it completes. `receipt`,
    `wanted` and `tag` are the receive, the tag that it wants and the tag of the message, of a match
    or of a probe. `site` is the line of the program, in a reported execution only.
    """

    name: str
    kind: str
    pids: tuple[int, ...]
    place: str
    effect: str
    receipt: str = ""
    wanted: int = ANY
    tag: int = ANY
    source: int = -1


_TYPES = (str, str, list, str, str, str, int, int, int)  # of the fields in JSON


def decision_of(data: object) -> Decision:
    """A decision from JSON; ValueError for other data."""
    if type(data) is not list or tuple(map(type, data)) != _TYPES:
        raise ValueError
    name, kind, pids, *others = data
    if any(type(pid) is not int for pid in pids):
        raise ValueError
    return Decision(name, kind, tuple(pids), *others)


class Offer(NamedTuple):
    """A message that was sent, or a process that began to wait for its turn.

    `past` has a bit for each event that had to happen before.
    """

    place: str
    pid: int
    tag: int
    source: int
    past: int


def event_of(option: Alternative) -> Decision:
    """The event of taking an option."""
    send, receive = option.send, option.receive
    if send is None or receive is None:
        return Decision(option.name, option.kind, (option.pid,), option.place, option.effect)
    receiver = receive.context.members[receive.destination].pid
    return Decision(
        option.name, option.kind, (receiver, option.pid), option.place, "",
        option.name.split(" ")[1], receive.tag, send.tag, send.source,
    )  # fmt: skip


def accepts(wanted: int, tag: int) -> bool:
    """Whether a receive of tag `wanted` takes a message of a tag."""
    return wanted in (ANY, tag)


def dependent(first: Decision, second: Decision) -> bool:
    """Whether the order of two events may matter, or one makes the other impossible.

    Events at one place depend on each other, unless their effects can be exchanged. Two matches in
    one mailbox do so only if the first receive could take the second message, or the reverse. An
    answer to a process depends on the events that complete its requests.
    """
    if first.place == second.place:
        if first.kind == second.kind == MATCH or first.kind == second.kind == PROBE:
            return accepts(first.wanted, second.tag) or accepts(second.wanted, first.tag)
        return not (first.effect and first.effect == second.effect)
    if first.kind in (TEST, SOME):
        return first.pids[0] in second.pids
    if second.kind in (TEST, SOME):
        return second.pids[0] in first.pids
    return False


def concerns(arrival: Offer, event: Decision) -> bool:
    """Whether an arrival could have given an event another outcome."""
    if arrival.place == event.place:
        return event.kind not in (MATCH, PROBE) or accepts(event.wanted, arrival.tag)
    return event.kind in (TEST, SOME) and arrival.pid == event.pids[0]


@dataclass
class Trace:
    """The events of an execution (see `Observer`)."""

    events: list[Decision] = field(default_factory=list)
    pasts: list[int] = field(default_factory=list)
    options: list[list[Decision]] = field(default_factory=list)
    asleep: list[list[Decision]] = field(default_factory=list)
    arrivals: list[Offer] = field(default_factory=list)
    sites: list[str] | None = None
    sends: int = 0
    redundant: bool = False
    diverged: tuple[int, str, str] | None = None
