"""Operations that a test has begun and not completed: the next test would meet them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from greenlet import getcurrent

from pysmpi import text
from pysmpi.kernel.matching import ANY, mailboxes_of
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Receive, Send
from pysmpi.mpi.base.ranks import fiber_of
from pysmpi.mpi.groups.communicator import CollectiveState, Communicator
from pysmpi.python.frames import CallSite, current_site, greenlet_site, shorten
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.waiting import describe_communicator, public, unmatched_sends

_MOST = 5  # lines of a report

# An operation that is not complete, and its description.
Leftover = tuple[KernelRequest | CollectiveState, str]


class Starts:
    """The lines at which messages and receives were started that have no partner yet.

    A listener of the events of a run.
    """

    def __init__(self) -> None:
        self.simulation: Simulation | None = None
        self._sites: dict[int, CallSite] = {}  # by the `id` of the request

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """A rank starts a request; those inside collective calls have no payload."""
        if request.payload is not None and isinstance(request, (Send, Receive)):
            site = self._site(process)
            if site is not None:
                self._sites[id(request)] = site

    def _site(self, process: Process) -> CallSite | None:
        """The line of the thread of a rank that a process of the kernel belongs to."""
        assert self.simulation is not None
        rank = self.simulation.universe.ranks[process.pid]
        fiber: Any = rank.fiber
        for thread in self.simulation.threads.get(rank.pid, ()):
            if thread.process is process:
                fiber = thread
        if fiber_of(getcurrent()) is fiber:
            return current_site()
        return greenlet_site(fiber.waiting or fiber)

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A message has its receive."""
        self._sites.pop(id(send), None)
        self._sites.pop(id(receive), None)

    def place(self, request: KernelRequest) -> str:
        """The line that started a request, for a report."""
        place = _place(self._sites.get(id(request)))
        return f", started{place}" if place else ""


def leftovers(simulation: Simulation, starts: Starts) -> list[Leftover]:
    """Messages that nobody has received, receives without a message, collective calls that some
    ranks have not made.
    """
    result: list[Leftover] = []
    communicators = dict(simulation.universe.communicators)
    for number, communicator in sorted(communicators.items()):
        if communicator.p2p.number != number or communicator.kind == "window":
            continue
        name = describe_communicator(simulation.universe.ranks[communicator.group[0]], communicator)
        for one, said in (*_sends(communicator), *_receives(communicator)):
            result.append((one, f"{said}{starts.place(one)}, in {name}"))
        result += [(one, f"{said}, in {name}") for one, said in _calls(communicator)]
    return result


def report(lines: list[str]) -> str:
    """The report of the operations that a test has left."""
    shown = [f"  {line}" for line in lines[:_MOST]]
    if len(lines) > _MOST:
        shown.append(f"  {len(lines) - _MOST} more")
    return "\n".join(["The test has left operations that the next one would meet:", *shown])


def _sends(communicator: Communicator) -> Iterator[tuple[Send, str]]:
    for send in unmatched_sends(communicator.p2p):
        if send.payload is not None:
            source = communicator.remote.group[send.source]
            target = send.context.members[send.destination].pid
            yield (
                send,
                (
                    f"rank {target} has not received a message of rank {source}: tag {send.tag}, "
                    f"{text.count(send.nbytes, 'byte')}"
                ),
            )


def _receives(communicator: Communicator) -> Iterator[tuple[Receive, str]]:
    for box in mailboxes_of(communicator.p2p).values():
        for receive in box.posted():
            if receive.payload is None:
                continue
            me = receive.context.members[receive.destination].pid
            source = "any rank"
            if receive.source != ANY:
                source = f"rank {communicator.remote.group[receive.source]}"
            tag = "any tag" if receive.tag == ANY else f"tag {receive.tag}"
            yield receive, f"rank {me} still receives from {source} with {tag}"


def _calls(communicator: Communicator) -> Iterator[tuple[CollectiveState, str]]:
    for (number, operation), state in sorted(communicator.collective_states.items()):
        entered = [communicator.group[rank] for rank in sorted(state.values)]
        if number < 0 or not entered or communicator.entered(state):
            continue
        call, site = (state.made or {}).get(min(state.values), ("", None))
        others = sorted(set(communicator.group) - set(entered))
        yield (
            state,
            (
                f"{text.ranks(entered)} called {call or public(operation)}{_place(site)}, "
                f"{text.ranks(others) if others else 'the other side'} did not"
            ),
        )


def _place(site: CallSite | None) -> str:
    return "" if site is None else f" at {shorten(site.file)}:{site.line}"
