"""Activities that come again and again: their rates are fair, and their memory does not grow."""

import gc
import math
import os
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.kernel.activities import Activity, ActivityKind, Constraint
from tests.kernel.fair_rates import assert_fair, new_system, rates, solve


def memory():
    """Bytes that Python has allocated since tracemalloc began."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


class Exchange:
    """Hosts with two links each, and the messages of all pairs of them.

    Messages name their kinds, or not; a third link of a pair is never contended.
    """

    def __init__(self, hosts, named=True, spare=False):
        up = [Constraint(10.0) for _ in range(hosts)]
        down = [Constraint(0.5) for _ in range(hosts)]
        self.links = [*up, *down]
        self.pairs = []
        for one in range(hosts):
            for other in range(hosts):
                if one != other:
                    third = [Constraint(1e9)] if spare else []
                    self.links += third
                    route = [up[one], down[other], *third]
                    self.pairs.append((route, ActivityKind() if named else None))
        self.weights = [1.0, 0.05, 1.0][: 3 if spare else 2]

    def send(self, system, pairs, each=3):
        """Send messages between some pairs at once, and end them; returns their rates."""
        running = [
            Activity(1.0, 1.0, 8.0, route, self.weights, kind)
            for route, kind in pairs
            for _ in range(each)
        ]
        for activity in running:
            system.add(activity)
        solve(system)
        assert_fair(system, running, self.links)
        shares = rates(running)
        for activity in running:
            system.remove(activity)
        system.queue.keep_only([])  # the ends that had been expected
        return shares


@pytest.mark.parametrize("spare", [False, True])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("together", [1, 24])
def test_repeated_messages_have_equal_rates_and_take_no_more_memory(named, spare, together):
    exchange, system = Exchange(9, named, spare), new_system()

    def rounds(count):
        for _ in range(count):
            for first in range(0, len(exchange.pairs), together):
                shares[first] = exchange.send(system, exchange.pairs[first : first + together])

    shares: dict[int, list[float]] = {}
    rounds(6)  # the links are contended from the start then
    before = dict(shares)
    tracemalloc.start(1)
    try:
        rounds(2)
        few = memory()
        rounds(10)
        assert memory() < few + 40_000  # 700 exchanges more, each of some 300 bytes
    finally:
        tracemalloc.stop()
    for first, equal in shares.items():
        assert equal == pytest.approx(before[first])


def test_another_simulation_on_the_same_links_has_rates_of_its_own():
    exchange, system, later = Exchange(4), new_system(), new_system()
    first = [exchange.send(system, exchange.pairs) for _ in range(6)]
    assert exchange.send(later, exchange.pairs) == pytest.approx(first[-1])
    assert exchange.send(system, exchange.pairs) == pytest.approx(first[-1])


@pytest.mark.skipif(
    os.environ.get("PYSMPI_INTERPRETED") == "1", reason="36,000 pairs take long interpreted"
)
def test_pairs_that_exchange_nothing_more_give_their_memory_back():
    """Each host sends messages to one after another of all the others."""
    hosts, system = 190, new_system()
    up = [Constraint(10.0) for _ in range(hosts)]
    down = [Constraint(0.5) for _ in range(hosts)]
    sizes = []
    tracemalloc.start(1)
    try:
        for shift in range(1, hosts):
            running = [
                Activity(1.0, 1.0, 8.0, route, [1.0, 0.05], kind)
                for route, kind in [
                    ([up[i], down[(i + shift) % hosts]], ActivityKind()) for i in range(hosts)
                ]
                for _ in range(2)
            ]
            for activity in running:
                system.add(activity)
            solve(system)
            for activity in running:
                system.remove(activity)
            system.queue.keep_only([])  # the ends that had been expected
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[-1] < max(sizes) / 2, sizes


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 8))
def test_rates_are_fair_while_messages_come_and_go(seed, hosts):
    draw = random.Random(seed)
    system = new_system()
    up = [Constraint(draw.choice([5.0, 10.0, 40.0])) for _ in range(hosts)]
    down = [Constraint(draw.choice([5.0, 10.0, 40.0])) for _ in range(hosts)]
    weights = [1.0, 1.0, 0.05, 0.05]
    routes = {
        (one, other): ([up[one], down[other], down[one], up[other]], ActivityKind())
        for one in range(hosts)
        for other in range(hosts)
        if one != other
    }
    present: list[Activity] = []
    for step in range(400):
        # Now most messages begin, now most end.
        if present and draw.random() < (0.7 if step // 40 % 2 else 0.3):
            system.remove(present.pop(draw.randrange(len(present))))
        else:
            route, kind = draw.choice(list(routes.values()))
            present.append(Activity(1.0, 1.0, draw.choice([8.0, math.inf]), route, weights, kind))
            system.add(present[-1])
        if draw.random() < 0.7:
            solve(system)
        if draw.random() < 0.1:
            solve(system)
            assert_fair(system, present, [*up, *down])
    for flow in present:
        system.remove(flow)
    assert all(constraint.count == 0 for constraint in [*up, *down])


def test_a_host_that_exchanges_messages_with_a_thousand_in_turn():
    """The list of bundles of its link, which each solution reads, stays short."""
    system, hub = new_system(), Constraint(10.0)
    for link in [Constraint(10.0) for _ in range(1000)]:
        route, kind = [hub, link], ActivityKind()
        flows = [Activity(1.0, 1.0, 9.0, route, [1.0, 1.0], kind) for _ in range(2)]
        for flow in flows:
            system.add(flow)
        solve(system)
        assert rates(flows) == [pytest.approx(5.0)] * 2
        for flow in flows:
            system.remove(flow)
    assert len(hub.bundles) < 20


def test_messages_that_fit_cost_no_solution():
    """They come and go on a link that is contended and never saturated."""
    system, hub, narrow = new_system(), Constraint(10.0), Constraint(1.0)
    for _ in range(2):
        system.add(Activity(1.0, 1.0, 9.0, [hub, narrow], [1.0, 1.0]))
    solve(system)
    assert hub.contended
    solved = system.solver.solved
    for i in range(1000):
        flow = Activity(1.0, 1.0, 2.0 + i / 1000, [hub], [1.0])
        system.add(flow)
        solve(system)
        assert rates([flow]) == [flow.bound]
        system.remove(flow)
    assert system.solver.solved == solved
