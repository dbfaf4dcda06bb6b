"""The events of a recording as columns of numbers, for analyses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pysmpi.errors import UsageError
from pysmpi.trace.columns import Floats, Integers
from pysmpi.trace.events import (
    CALL,
    END,
    ENTER,
    MAIN,
    PROCESS,
    RETURN,
    START_RECEIVE,
    START_SEND,
    START_WAIT,
    STEPS,
    EventRows,
    MessageRows,
    TracedCall,
)
from pysmpi.trace.events import COLLECTIVE as COLLECTIVES
from pysmpi.trace.lines import read_lines
from pysmpi.trace.measured import measured_events
from pysmpi.trace.model import Recording

COLLECTIVE, POINT_TO_POINT, OTHER = "collective", "point-to-point", "other"
_UNFINISHED: Final = "unfinished call"


class TracedSite(NamedTuple):
    """A call of a line of the program; `kind` says how its calls communicate."""

    name: str
    file: str
    line: int
    kind: str


@dataclass
class SiteCollective:
    """The blocking collective calls of a site, on all ranks, and the bytes of one call.

    `calls` counts those of a rank. They are `alike` if all have the same arguments.
    """

    operation: str
    count: int
    type_size: int
    root: int
    algorithms: set[str]
    calls: float = 0.0
    alike: bool = True


@dataclass
class RunActivity:
    """The events of a run with their dates.

    `kind`, `process`, `date` (s), `a`, `b`, `x` are the columns of the events; in those of calls,
    `a` is the number of a site. `messages` has a row for each message, with the columns of
    `MessageRows`. `routes` holds the numbers of the links of each route, `links` their names and
    capacities (bytes/s), `hosts` the host of each rank. `measured` says whether the dates are those
    of a real MPI library.
    """

    kind: Integers
    process: Integers
    date: Floats
    a: Integers
    b: Floats
    x: Floats
    messages: NDArray[np.int64]
    sites: list[TracedSite]
    routes: list[list[int]]
    links: list[tuple[str, float]]
    hosts: list[str]
    facts: dict[str, Any]
    measured: bool = False
    collectives: dict[str, SiteCollective] = field(default_factory=dict)  # by site
    # By route, if its messages are split: the part of a message on each link.
    shares: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def carried(self, route: int, nbytes: float) -> Iterable[tuple[int, float]]:
        """The links of a route, and the bytes of a message that each carries."""
        links = self.routes[route]
        shares = self.shares.get(route)
        if shares is None:
            return zip(links, repeat(nbytes))
        return zip(links, (share * nbytes for share in shares))

    @property
    def seconds(self) -> float:
        """The makespan: the date of the last rank's end (simulated s)."""
        ends = self.date[self.kind == END]
        return float(ends.max()) if len(ends) else 0.0

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return len(self.hosts)

    @property
    def failed(self) -> bool:
        """Whether a rank has ended with another exit status than 0."""
        return bool((self.x[self.kind == END] != 0).any())

    def site(self, number: int) -> str:
        """A call site in the form `Allreduce at cg.py:310`."""
        name, file, line, _ = self.sites[number]
        return f"{name} at {file}:{line}" if file else name

    def machine(self) -> dict[str, Any]:
        """The figures of the run that a page shows."""
        known = ("platform", "model", "selector", "nprocs", "compute", "command", "pysmpi",
                 "library")  # fmt: skip
        return {
            **{name: self.facts.get(name) for name in known},
            "hosts": len(set(self.hosts)),
            "messages": len(self.messages),
            "bytes": int(self.messages[:, 4].sum()),
        }


def activity_of(recording: Recording) -> RunActivity:
    """The activity of a recording. Raises UsageError if its events contradict each other."""
    derived = not recording.event_rows and bool(recording.calls)
    if derived:
        events, rows = measured_events(recording)
    else:
        events = _joined_events(recording.event_rows)
        rows = _joined_messages(recording.message_rows)
    links: dict[tuple[str, float], int] = {}
    routes = []
    shares: dict[int, tuple[float, ...]] = {}
    for number in range(len(recording.routes)):
        route = recording.routes.get(number)
        if route is None:
            raise UsageError(f"expected routes of all numbers from 0 on, got no number {number}")
        routes.append([links.setdefault(link, len(links)) for link in route.links])
        if route.shares:
            shares[number] = route.shares
    if derived:
        routes = [[]]
    hosts = [place.host for place in recording.places]
    events = _ended(events, len(hosts))
    events, sites = _located(recording.calls, events)
    found = RunActivity(
        *events,
        messages=np.stack(rows, 1),
        sites=sites,
        routes=routes,
        shares=shares,
        links=list(links),
        hosts=hosts,
        facts=recording.facts,
        measured="library" in recording.facts,
        collectives=_collectives(recording),
    )
    _check(found)
    return found


def _collectives(recording: Recording) -> dict[str, SiteCollective]:
    """The collective calls of each site, by its name."""
    everybody = recording.nprocs
    found: dict[str, SiteCollective] = {}
    for call in recording.calls:
        some = [one for one in call.operations if one[0] in (COLLECTIVES, STEPS)]
        if not some:
            continue
        name = f"{call.name} at {call.site}" if call.site else call.name
        arguments = some[0][5] if some[0][0] == COLLECTIVES and not some[0][4] else {}
        key = (
            arguments.get("op", ""), arguments.get("count", 0), arguments.get("type_size", 1),
            arguments.get("root", 0),
        )  # fmt: skip
        known = found.get(name)
        if known is None:
            known = found[name] = SiteCollective(*key, algorithms=set())
        known.calls += 1.0 / everybody
        known.algorithms.add(call.algorithm)
        members = recording.communicators[some[0][2 if some[0][0] == COLLECTIVES else 1]].members
        known.alike &= (
            len(some) == 1
            and key == (known.operation, known.count, known.type_size, known.root)
            and len(members) == everybody
            and set(arguments) <= {"op", "count", "type_size", "root", "in_place"}
        )
    return found


def read_activity(path: str) -> RunActivity:
    """The activity of the recording in a file. Raises UsageError for any other file."""
    recording = read_lines(path)
    if not recording.places:
        raise UsageError(f"{path}: expected a recording of a run, got no ranks")
    try:
        return activity_of(recording)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except (LookupError, ValueError, TypeError, OverflowError, AttributeError) as error:
        raise contradiction(path, error) from None


def contradiction(path: str, error: Exception) -> UsageError:
    """The error of a recording whose records cannot have happened."""
    return UsageError(
        f"{path}: expected a recording of pysmpi run --trace FILE.jsonl, got records that "
        f"contradict each other ({type(error).__name__}: {error})"
    )


def _joined_events(blocks: list[EventRows]) -> EventRows:
    if not blocks:
        whole, real = np.zeros(0, np.int64), np.zeros(0)
        return EventRows(whole, whole, real, whole, real, real)
    return EventRows(*(np.concatenate(columns) for columns in zip(*blocks)))


def _joined_messages(blocks: list[MessageRows]) -> MessageRows:
    if not blocks:
        return MessageRows(*[np.zeros(0, np.int64)] * len(MessageRows._fields))
    return MessageRows(*(np.concatenate(columns) for columns in zip(*blocks)))


def _ended(events: EventRows, ranks: int) -> EventRows:
    """The events; those of a run that was stopped end with the last one of each rank."""
    begun = events.kind == PROCESS
    mains = events.process[begun & (events.b == MAIN)]
    missing = np.setdiff1d(mains, events.process[events.kind == END])
    if not len(missing) or not len(events.kind):
        return events
    last = float(events.date.max())
    more = len(missing)
    zeros = np.zeros(more)
    added = EventRows(
        np.full(more, END), missing, np.full(more, last), np.zeros(more, np.int64), zeros, zeros
    )
    return EventRows(*(np.concatenate(pair) for pair in zip(events, added)))


def _located(calls: list[TracedCall], events: EventRows) -> tuple[EventRows, list[TracedSite]]:
    """The events with sites in place of calls, and the sites."""
    sites: dict[tuple[str, str], int] = {}
    numbers = np.fromiter((call.number for call in calls), np.int64, len(calls))
    places = np.fromiter(
        (sites.setdefault((call.name, call.site), len(sites)) for call in calls),
        np.int64,
        len(calls),
    )
    order = np.argsort(numbers, kind="stable")
    numbers, places = numbers[order], places[order]
    chosen = (events.kind == CALL) | (events.kind == RETURN)
    wanted = events.a[chosen]
    a = events.a.copy()
    if len(wanted):
        at = np.searchsorted(numbers, wanted)
        at[at == len(numbers)] = 0
        known = numbers[at] == wanted if len(numbers) else np.zeros(len(wanted), bool)
        unfinished = len(sites)
        if not known.all():
            sites[_UNFINISHED, ""] = unfinished
        a[chosen] = np.where(known, places[at] if len(numbers) else unfinished, unfinished)
    events = events._replace(a=a)
    kinds = _kinds(events, len(sites))
    found = []
    for (name, place), kind in zip(sites, kinds):
        file, _, line = place.rpartition(":")
        found.append(TracedSite(name, file, int(line) if line.isdigit() else 0, kind))
    return events, found


def _kinds(events: EventRows, count: int) -> list[str]:
    """The kind of communication of each site, by the events between begin and end of its calls."""
    order = np.argsort(events.process, kind="stable")
    kind = events.kind[order]
    begun = np.maximum.accumulate(np.where(kind == CALL, np.arange(len(kind)), -1))
    inside = events.a[order][begun]
    valid = begun >= 0
    found = np.zeros(count, np.int64)
    messages = np.isin(kind, (START_SEND, START_RECEIVE, START_WAIT)) & valid
    found[inside[messages]] = 1
    found[inside[(kind == ENTER) & valid]] = 2
    names = (OTHER, POINT_TO_POINT, COLLECTIVE)
    return [names[number] for number in found]


def _check(found: RunActivity) -> None:
    """Refuse numbers out of range."""
    calls = np.isin(found.kind, (CALL, RETURN))
    for what, numbers, most in (
        ("call", found.a[calls], len(found.sites) - 1),
        ("rank", found.a[found.kind == PROCESS], found.ranks - 1),
        ("rank", found.messages[:, 1:3], found.ranks - 1),
        ("route", found.messages[:, 5], len(found.routes) - 1),
    ):
        if numbers.size and not (0 <= numbers.min() and numbers.max() <= most):
            raise UsageError(f"expected a {what} from 0 to {most}, got another number")
