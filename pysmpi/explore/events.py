"""Events: the decisions of one execution, and which of them depend on each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pysmpi.kernel.choices import MATCH, PROBE, SOME, TEST, Alternative, Control
from pysmpi.kernel.matching import ANY

ANSWERS = (TEST, SOME)  # kinds of answers to a process


class Decision(NamedTuple):
    """A decision, or one that could have been made.

    `pids` are the processes that it lets continue or whose requests it completes. `receipt`,
    `wanted` and `tag` are the receive, the tag that it wants and the tag of the message, of a match
    or of a probe. An answer to a process depends on the requests `watched`; None if it may depend
    on all that happens to the process.
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
    watched: tuple[str, ...] | None = None


_TYPES = (str, str, list, str, str, str, int, int, int)  # of the fields in JSON


def decision_of(data: object) -> Decision:
    """A decision from JSON; ValueError for other data."""
    if type(data) is not list or tuple(map(type, data[:-1])) != _TYPES:
        raise ValueError
    fields = list(data)
    if any(type(pid) is not int for pid in fields[2]):
        raise ValueError
    fields[2] = tuple(fields[2])
    if fields[-1] is not None:
        if type(fields[-1]) is not list or any(type(one) is not str for one in fields[-1]):
            raise ValueError
        fields[-1] = tuple(fields[-1])
    return Decision(*fields)


class Offer(NamedTuple):
    """A message that was sent, a process that waits for its turn, or a request that matched.

    `place` is a mailbox, an object, or the name of the request. `past` has a bit for each event
    that had to happen before.
    """

    place: str
    pid: int
    tag: int
    source: int
    past: int


def offer_of(data: object) -> Offer:
    """An arrival from JSON; ValueError for other data."""
    if type(data) is not list or tuple(map(type, data)) != (str, int, int, int, int):
        raise ValueError
    return Offer(*data)


def event_of(option: Alternative, control: Control) -> Decision:
    """The event of taking an option."""
    send, receive, gate = option.send, option.receive, option.gate
    if send is None or receive is None:
        watched = None
        if gate is not None and gate.requests is not None:
            watched = tuple(map(control.watched, gate.requests.values()))
        return Decision(
            option.name, option.kind, (option.pid,), option.place, option.effect, watched=watched
        )
    receiver = receive.context.members[receive.destination].pid
    return Decision(
        option.name, option.kind, (receiver, option.pid), option.place, "",
        option.name.split(" ")[1], receive.tag, send.tag, send.source,
    )  # fmt: skip


def accepts(wanted: int, tag: int) -> bool:
    """Whether a receive of tag `wanted` takes a message of a tag."""
    return wanted in (ANY, tag)


def exchangeable(first: str, second: str) -> bool:
    """Whether two effects at one place are the same in either order: equal ones, and accesses to a
    file that have no bytes in common or only read (see `FileAccess.effect`).
    """
    one, other = first.split(), second.split()
    if len(one) != 5 or len(other) != 5:
        return bool(first) and first == second
    both = one[0] == other[0]
    if both and one[0] == "reads":
        return True
    # Where the file ends matters to a reader, and not to another writer.
    if not both and one[4] == other[4] == "1":
        return False
    begin = 1 if both else 3
    return int(one[2]) <= int(other[begin]) or int(other[2]) <= int(one[begin])


def dependent(first: Decision, second: Decision) -> bool:
    """Whether the order of two events may matter, or one makes the other impossible.

    Events at one place depend on each other, unless their effects can be exchanged. Two matches in
    one mailbox do so only if the first receive could take the second message, or the reverse. An
    answer to a process can be exchanged with a match of its requests (see `concerns`); if the
    requests are not known, it depends on all events of the process.
    """
    if first.place == second.place:
        if first.kind == second.kind == MATCH or first.kind == second.kind == PROBE:
            return accepts(first.wanted, second.tag) or accepts(second.wanted, first.tag)
        return not exchangeable(first.effect, second.effect)
    if first.kind in ANSWERS and first.watched is None:
        return first.pids[0] in second.pids
    if second.kind in ANSWERS and second.watched is None:
        return second.pids[0] in first.pids
    return False


def concerns(arrival: Offer, event: Decision) -> bool:
    """Whether an arrival could have given an event another outcome."""
    if arrival.place == event.place:
        message = event.kind in (MATCH, PROBE) and arrival.source >= 0
        return not message or accepts(event.wanted, arrival.tag)
    if event.kind not in ANSWERS:
        return False
    if event.watched is None:
        return arrival.pid == event.pids[0]
    return arrival.place in event.watched


class LocatedMatch(NamedTuple):
    """A message and its receive, of an execution whose lines are recorded.

    `send` and `receive` are calls with their lines, followed by their numbers among those of their
    rank. `posted` orders receives by their begin. `wanted` is the tag that the receive names.
    `event` is the number of the decision, -1 if there was none.
    """

    sender: int
    send: str
    send_number: int
    receiver: int
    receive: str
    receive_number: int
    posted: int
    source: int
    tag: int
    wanted: int
    event: int


@dataclass
class Trace:
    """The events of an execution (see `Observer`).

    `met` is the digest of the state at which it has ended because another execution goes on from
    there; `idle` are tests that lead nowhere, and `new_idle` the states of ranks that show it.
    `twins` are options that are the same as another one but for numbers of ranks, `asked` those
    that are so if the order with these numbers exchanged leads to the same state. Where lines are
    recorded, `sites` describe the events, `matches` are the messages, and `calls` are the calls of
    ranks in their order: the rank, the call with its line, its number among those of the rank.
    """

    events: list[Decision] = field(default_factory=list)
    pasts: list[int] = field(default_factory=list)
    options: list[list[Decision]] = field(default_factory=list)
    asleep: list[list[Decision]] = field(default_factory=list)
    arrivals: list[Offer] = field(default_factory=list)
    sites: list[str] | None = None
    sends: int = 0
    redundant: bool = False
    diverged: tuple[int, str, str] | None = None
    digests: list[bytes | None] = field(default_factory=list)
    idle: list[list[str]] = field(default_factory=list)
    moments: list[int] = field(default_factory=list)
    met: bytes | None = None
    new_idle: list[bytes] = field(default_factory=list)
    twins: list[dict[str, str]] = field(default_factory=list)
    matches: list[LocatedMatch] = field(default_factory=list)
    calls: list[tuple[int, str, int]] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)

    def __getstate__(self) -> tuple[object, object]:
        """Plain data with each decision once: an execution sends it to the search."""
        numbers: dict[Decision, int] = {}

        def numbered(events: list[Decision]) -> list[int]:
            return [numbers.setdefault(event, len(numbers)) for event in events]

        state = dict(self.__dict__)
        state["events"] = numbered(self.events)
        state["options"] = list(map(numbered, self.options))
        state["asleep"] = list(map(numbered, self.asleep))
        state["arrivals"] = list(map(tuple, self.arrivals))
        return list(map(tuple, numbers)), state

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Take in what `__getstate__` has returned."""
        rows, fields = state
        events = list(map(Decision._make, rows))
        fields["events"] = [events[number] for number in fields["events"]]
        for name in ("options", "asleep"):
            fields[name] = [[events[number] for number in row] for row in fields[name]]
        fields["arrivals"] = list(map(Offer._make, fields["arrivals"]))
        self.__dict__.update(fields)


def exchanged(event: Decision, first: int, second: int) -> str:
    """The name of a match or a probe if two ranks of its group change places."""
    numbers = {str(first): str(second), str(second): str(first)}
    kind, receipt, message = event.name.split(" ")
    place, _, which = receipt.rpartition("#")
    label, _, rank = place.rpartition(":")
    source, _, number = message.partition("#")
    rank, source = numbers.get(rank, rank), numbers.get(source, source)
    return f"{kind} {label}:{rank}#{which} {source}#{number}"


class DrawnDecision(NamedTuple):
    """A decision: the rank that it lets go on, and the sender of its message, -1 without one.

    `sent` is the number of decisions before the message was sent.
    """

    name: str
    text: str
    rank: int
    sender: int
    sent: int


def steps_of(trace: Trace) -> list[DrawnDecision]:
    """The decisions of an execution whose lines were recorded."""
    moments: dict[tuple[str, int], list[int]] = {}
    for moment, arrival in zip(trace.moments, trace.arrivals):
        if arrival.source >= 0:
            moments.setdefault((arrival.place, arrival.source), []).append(moment)
    found = []
    for event, text in zip(trace.events, trace.sites or ()):
        sender, sent = -1, -1
        if event.kind in (MATCH, PROBE):
            sender = event.pids[1]
            number = int(event.name.rpartition("#")[2])
            known = moments.get((event.place, event.source), [])
            sent = known[number] if number < len(known) else -1
        found.append(DrawnDecision(event.name, text, event.pids[0], sender, sent))
    return found
