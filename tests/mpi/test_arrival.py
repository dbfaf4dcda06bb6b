"""Wildcards and probes see messages as they arrive, not as they are posted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import Calling

from pysmpi.kernel.matching import ANY, Mailbox, accepts
from pysmpi.kernel.plan import Plan, Transport
from pysmpi.kernel.requests import Context, Receive, Send
from pysmpi.mpi import MPI
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.point_to_point import envelopes
from pysmpi.platform.model import Host
from pysmpi.platform.placement import Slot
from pysmpi.ranks.simulation import Simulation

SLOW, FAST = 2.0, 0.5  # latencies (s) of messages from rank 1 and from others


class FarAndNear(Transport):
    """Rank 1 is far from rank 0. Messages below 100 bytes are eager, below 1,000 detached."""

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        latency = SLOW if source == 1 else FAST
        return Plan(latency, nbytes, 1e6, eager=nbytes < 100, detached=nbytes < 1000)


def run(size: int, main: Callable[[int], Any], by_arrival: bool = True) -> list[Any]:
    slots = [Slot(Host(f"host{i}", i, (1e9,), 1), 0) for i in range(size)]
    simulation = Simulation(FarAndNear(), slots)
    simulation.engine.by_arrival = by_arrival
    simulation.universe.settings.grow_injected_times = False
    envelopes.install(simulation.engine)
    simulation.add_world(range(size), Calling(lambda rank: main(rank.index)))
    simulation.run()
    for outcome in simulation.outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [outcome.value for outcome in simulation.outcomes]


def sleep(seconds: float) -> None:
    current().sleep(seconds)


SIZES = [8, 500, 5000]  # eager, detached, neither


@pytest.mark.parametrize("nbytes", SIZES)
@pytest.mark.parametrize("early", [True, False])
def test_a_wildcard_takes_the_message_that_arrives_first(nbytes: int, early: bool) -> None:
    def main(me: int) -> Any:
        comm, buf = MPI.COMM_WORLD, np.zeros(nbytes, "b")
        if me == 0:
            if not early:
                sleep(5.0)
            sources, status = [], MPI.Status()
            for _ in range(2):
                comm.Recv(buf, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
                assert buf[0] == status.source
                sources.append(status.source)
            return sources
        sleep(0.0 if me == 1 else 1.0)
        buf[:] = me
        comm.Send(buf, 0, me)
        buf[:] = -1
        return None

    assert run(3, main)[0] == [2, 1]
    assert run(3, main, by_arrival=False)[0] == [1, 2]


@pytest.mark.parametrize("nbytes", SIZES)
@pytest.mark.parametrize("wait", [0.0, 0.3, 5.0])
def test_a_wildcard_without_a_choice_takes_as_long_as_a_name(nbytes: int, wait: float) -> None:
    def ends(source: int, by_arrival: bool) -> list[float]:
        def main(me: int) -> float:
            comm, buf = MPI.COMM_WORLD, np.zeros(nbytes, "b")
            if me == 0:
                sleep(wait)
                comm.Recv(buf, source)
                comm.Irecv(buf, source).Wait()
            else:
                sleep(0.1)
                comm.Send(buf, 0)
                comm.Send(buf, 0)
            return MPI.Wtime()

        return run(2, main, by_arrival)

    assert ends(MPI.ANY_SOURCE, True) == ends(1, True) == ends(MPI.ANY_SOURCE, False)


@pytest.mark.parametrize("nbytes", SIZES)
@pytest.mark.parametrize("source", [1, MPI.ANY_SOURCE])
def test_a_probe_sees_a_message_once_it_has_arrived(nbytes: int, source: int) -> None:
    def main(me: int) -> Any:
        comm, buf = MPI.COMM_WORLD, np.zeros(nbytes, "b")
        if me == 1:
            for _ in range(4):
                comm.Isend(buf, 0)
            sleep(30.0)
            return None
        dates = []
        sleep(SLOW / 2)
        assert not comm.Iprobe(source) and comm.Improbe(source) is None
        comm.Probe(source)
        dates.append(MPI.Wtime())
        assert comm.Iprobe(source)
        comm.Recv(buf, source)
        assert comm.Iprobe(source)
        comm.Recv(buf, source)
        comm.Mprobe(source).Recv(buf)
        comm.Improbe(source).Recv(buf)
        return dates

    [date] = run(2, main)[0]
    assert date == pytest.approx(SLOW, abs=1e-3)
    assert run(2, lambda me: MPI.COMM_WORLD.Iprobe() if me == 0 else None)[0] is False


def test_messages_of_one_source_do_not_overtake_each_other() -> None:
    class Shrinking(FarAndNear):
        """The larger, the slower."""

        def plan(self, source: int, destination: int, nbytes: int) -> Plan:
            return Plan(nbytes * 1e-3, nbytes, 1e6, eager=True)

    slots = [Slot(Host(f"host{i}", i, (1e9,), 1), 0) for i in range(2)]
    simulation = Simulation(Shrinking(), slots)
    envelopes.install(simulation.engine)
    found: list[int] = []

    def main(rank: Rank) -> None:
        comm = MPI.COMM_WORLD
        if rank.index == 1:
            for i in range(20):
                comm.Isend(np.full(20 - i, i, "b"), 0, i % 3)
            return
        status = MPI.Status()
        for i in range(20):
            buf = np.zeros(20, "b")
            # A receive by name must not take what an earlier one waits for.
            comm.Recv(buf, 1 if i % 2 else MPI.ANY_SOURCE, i % 3 if i % 2 else MPI.ANY_TAG, status)
            found.append(int(buf[0]))

    simulation.add_world(range(2), Calling(main))
    simulation.run()
    assert [outcome.error for outcome in simulation.outcomes] == [None, None]
    assert found == list(range(20))


def test_a_named_receive_leaves_a_message_to_an_earlier_wildcard() -> None:
    def main(me: int) -> Any:
        comm = MPI.COMM_WORLD
        if me == 1:
            comm.Isend(np.full(8, 1, "b"), 0, 7)
            comm.Isend(np.full(8, 2, "b"), 0, 7)
            sleep(9.0)
            return None
        one, two = np.zeros(8, "b"), np.zeros(8, "b")
        requests = [comm.Irecv(one, MPI.ANY_SOURCE, MPI.ANY_TAG)]
        sleep(0.1)  # the messages are on their way
        requests.append(comm.Irecv(two, 1, 7))
        MPI.Request.Waitall(requests)
        return one[0], two[0]

    assert run(2, main)[0] == (1, 2)


# The rule itself, in plain lists, against the mailbox.

CONTEXT = Context(1, [])
steps = st.lists(
    st.tuples(
        st.sampled_from(["send", "receive", "pass"]),
        st.sampled_from([*range(4), ANY]),
        st.sampled_from([0, 1, ANY]),
        st.integers(0, 6),
    ),
    max_size=60,
)


class Naive:
    """Messages become visible at their dates; those of one source in their order."""

    def __init__(self) -> None:
        self.sends: list[Send] = []
        self.receives: list[Receive] = []
        self.pairs: list[tuple[int, int]] = []

    def settle(self, now: float) -> None:
        """Match messages that have arrived, in the order of arrival."""
        for send in sorted(self.sends, key=lambda send: (send.visible, send.order)):
            if send.visible <= now:
                for receive in self.receives:
                    if accepts(receive, send):
                        self.pairs.append((receive.order, send.order))
                        self.receives.remove(receive)
                        self.sends.remove(send)
                        break


@settings(max_examples=400, deadline=None)
@given(steps)
def test_matches_are_those_of_messages_that_wait_until_they_arrive(script: Any) -> None:
    """Named receives match early; at the end all have matched as if they had waited, too."""
    box, naive = Mailbox(), Naive()
    pairs: list[tuple[int, int]] = []
    latest: dict[int, float] = {}
    pending: list[tuple[float, int, Send]] = []
    now = 0.0

    def announce(until: float) -> None:
        while pending and min(pending)[0] <= until:
            entry = min(pending)
            pending.remove(entry)
            naive.settle(entry[0])
            send = entry[2]
            if send.unexpected:
                receive = box.offer(send)
                if receive is not None:
                    pairs.append((receive.order, send.order))

    def wait_for(send: Send) -> None:
        send.awaited = True
        pending.append((send.visible, send.order, send))

    for order, (what, source, tag, delay) in enumerate(script):
        if what == "pass":
            now += delay
            announce(now)
            naive.settle(now)
        elif what == "send":
            source, tag = max(source, 0), max(tag, 0)
            send = Send(CONTEXT, source, 0, tag, 8)
            send.order = order
            # Every message of a source takes the same path.
            send.visible = max(now + delay + 0.5, latest.get(source, 0.0))
            latest[source] = send.visible
            receive = box.match_send(send, now)
            if receive is not None:
                pairs.append((receive.order, order))
            elif send.awaited:
                wait_for(send)
            naive.sends.append(send)
        else:
            receive = Receive(CONTEXT, source, 0, tag, 8)
            receive.order = order
            found = box.match_receive(receive, now)
            if found is not None:
                pairs.append((order, found.order))
            else:
                for send in box.coming(receive, now):
                    wait_for(send)
            naive.receives.append(receive)
            naive.settle(now)
    announce(1e9)
    naive.settle(1e9)
    assert sorted(pairs) == sorted(naive.pairs)
