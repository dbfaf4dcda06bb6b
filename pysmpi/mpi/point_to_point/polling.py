"""Failed tests: their costs, and the detection of livelocks.

A program that tests for an event that never happens runs for ever, under a real MPI and in a
simulation. If all running ranks only test without success, and no active operation could end this,
the run ends with a report.
"""

from __future__ import annotations

from collections.abc import Callable

from pysmpi.kernel.activities import Bundle
from pysmpi.kernel.choices import NO, TEST
from pysmpi.kernel.engine import Alarm
from pysmpi.kernel.events import Event
from pysmpi.kernel.matching import mailbox_of
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Receive, Send
from pysmpi.kernel.steps import Execution
from pysmpi.mpi.base.ranks import Rank, Universe
from pysmpi.mpi.base.state import StateSlot

MOST = 1_000_000  # number of failed tests, of all ranks, after which the state is checked
COMPUTE = 0.05  # largest share of compute in the time of a rank that only tests


class Watch:
    """Counts the failed tests of a run while no other event happens.

    `hopeless(pids)` is called with the ranks that test, if it is certain that the tests can never
    succeed. A program may still leave such a loop by itself, after some number of tests or by the
    clock; `most` is more than programs usually try.
    """

    __slots__ = ("most", "hopeless", "polls", "posted", "seen")

    def __init__(
        self, most: int = MOST, hopeless: Callable[[frozenset[int]], None] | None = None
    ) -> None:
        self.most = most
        self.hopeless = hopeless
        self.polls = 0
        self.posted = -1  # messages and receives that were posted before these tests
        # By rank that has tested lately: its compute (s) and the date at its first test.
        self.seen: dict[int, tuple[float, float]] = {}

    def failed(self, rank: Rank) -> None:
        """A test of a rank will probably fail."""
        engine = rank.engine
        if engine.order != self.posted:
            self.posted = engine.order
            self.polls = 0
            self.seen.clear()
        self.polls += 1
        if 2 * self.polls <= self.most:
            return
        if rank.pid not in self.seen:
            self.seen[rank.pid] = rank.process.compute_seconds, engine.now
        if self.polls >= self.most:
            pids = frozenset(self.seen)
            certain = self._certain(rank)
            self.polls = self.most - self.most // 8  # look again soon
            if certain and self.hopeless is not None:
                self.posted = -1
                self.hopeless(pids)

    def _certain(self, rank: Rank) -> bool:
        """Whether the only activity is the tests of these ranks, which do nothing else."""
        engine = rank.engine
        if engine.before is not None or engine.more_now():
            return False  # a rank waits for the world outside, or more happens at this instant
        for pid, (compute, time) in self.seen.items():
            computed = rank.universe.ranks[pid].process.compute_seconds - compute
            if computed > COMPUTE * (engine.now - time):
                return False
        processes = engine.processes_ready()
        coming: list[Event] = [event for _, event in engine.queue.all()]
        coming += engine.system.fresh
        for event in coming:
            if isinstance(event, Alarm):
                waiter = event.request.waiter
                if event.request.done:
                    continue
                if waiter is None:
                    return False
                processes.append(waiter)
            elif isinstance(event, Process):
                processes.append(event)
            else:
                for activity in event.members() if isinstance(event, Bundle) else [event]:
                    if not isinstance(activity, Execution):
                        return False
                    processes.append(activity.process)  # it looks at the clock on a shared core
        return all(process.pid in self.seen for process in processes)


WATCH = StateSlot(Universe, Watch)


def poll(
    rank: Rank, done: Callable[[], bool], requests: dict[str, KernelRequest] | None = None
) -> bool:
    """Charge for a test, and run other ranks; return `done()`.

    MPI does not say when a test sees a completion, so this is a choice. It depends on `requests`,
    if these are given.
    """
    control = rank.engine.control
    if control is None:
        charge(rank)
        return done()
    return choose(rank, lambda: ["yes"] if done() else [], requests) != NO


def choose(
    rank: Rank, answers: Callable[[], list[str]], requests: dict[str, KernelRequest] | None
) -> str:
    """The answer of a test, if the clock does not decide; `NO` if it sees nothing."""
    control = rank.engine.control
    assert control is not None
    answer = control.ask(rank.process, TEST, answers, requests)
    if answer == NO:
        charge(rank)
    return answer


def look(rank: Rank, probe: Receive) -> Send | None:
    """The message that a test for a message sees, charged as other tests."""
    control = rank.engine.control
    if control is None:
        charge(rank, probe=True)
        return mailbox_of(probe).peek(probe, rank.engine.now)
    send = control.probed(probe, rank.process)
    if send is None:
        charge(rank, probe=True)
    return send


def charge(rank: Rank, *, probe: bool = False) -> None:
    """Charge for a test, more after each failure, and run other ranks."""
    rank.polls += 1
    universe = rank.universe
    if rank.polls > 1000:
        watch = WATCH.peek(universe)
        if watch is not None and watch.most:
            watch.failed(rank)
    settings = universe.settings
    cost = settings.iprobe if probe else settings.test
    if settings.grow_injected_times:
        cost *= rank.polls
    rank.process.sleep(cost)
