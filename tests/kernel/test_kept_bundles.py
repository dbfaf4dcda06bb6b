"""Bundles stay for the next messages, and neither they nor the lists of constraints pile up."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.kernel.activities import Activity, ActivityKind, Constraint
from tests.kernel.fair_rates import assert_fair, new_system, rates, solve


@pytest.mark.parametrize("named", [True, False])
def test_the_bundle_of_a_kind_stays_for_the_next_messages(named):
    links, weights, kind = [Constraint(10.0), Constraint(20.0)], [1.0, 0.05], ActivityKind()

    def three(system):
        found = [Activity(1.0, 1.0, 8.0, links, weights, kind if named else None) for _ in range(3)]
        # All constraints are contended.
        other = Activity(1.0, 1.0, 19.0, [links[1]], [1.0])
        for one in [*found, other]:
            system.add(one)
        system.share()
        assert len({id(one.bundle) for one in found}) == 1
        assert_fair(system, [*found, other], links)
        bundle = found[0].bundle
        for one in [*found, other]:
            system.remove(one)
        return bundle

    system = new_system()
    for _ in range(5):  # until the links are contended from the start
        three(system)
    first = three(system)
    assert first.cached
    assert three(system) is first
    # Another simulation on the same links begins anew.
    later = new_system()
    assert three(later).system is later
    assert three(system).system is system


@pytest.mark.parametrize("partly", [False, True])
@pytest.mark.parametrize(
    ("together", "affordable", "again"), [(24, 0, True), (1, 0, False), (1, 48, True)]
)
def test_as_many_bundles_are_kept_as_a_job_repeats(together, affordable, again, partly):
    """Messages at once all count; of those few at a time, as many as the job can afford."""
    system = new_system()
    system.cache.most_whole = system.cache.most_partial = 4
    system.cache.affordable = affordable
    pairs = [[Constraint(10.0), Constraint(20.0)] for _ in range(24)]
    seconds = [[pair[1]] for pair in pairs]
    weights, alone = [1.0, 0.05], [1.0]
    if partly:  # a third link is never contended
        pairs = [[*pair, Constraint(1e9)] for pair in pairs]
        weights = [*weights, 1.0]
    kinds = [ActivityKind() for _ in pairs]

    def all_of_them():
        bundles = []
        for first in range(0, len(pairs), together):
            group = range(first, first + together)
            running = []
            for i in group:
                running += [Activity(1.0, 1.0, 8.0, pairs[i], weights, kinds[i]) for _ in range(3)]
                running.append(Activity(1.0, 1.0, 19.0, seconds[i], alone))
            for one in running:
                system.add(one)
            system.share()
            bundles += [running[4 * j].bundle for j in range(len(group))]
            for one in running:
                system.remove(one)
        return bundles

    for _ in range(6):  # until the links are contended from the start
        all_of_them()
    earlier = all_of_them()
    same = [one is other for one, other in zip(earlier, all_of_them())]
    assert all(same) if again else not any(same)
    assert len(system.cache.whole) <= system.cache.most_whole
    assert len(system.cache.partial) <= system.cache.most_partial
    assert (max(system.cache.most_whole, system.cache.most_partial) > 4) == again
    # Those that were let go take no memory.
    assert all(bundle.cached for pair in pairs for link in pair for bundle in link.bundles)


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 8), st.sampled_from([2, 4, 1 << 15]))
def test_constraints_list_each_bundle_once_while_messages_come_and_go(seed, hosts, most):
    draw = random.Random(seed)
    system = new_system()
    system.cache.most_whole = system.cache.most_partial = most
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
            assert_listed(present, [*up, *down])
    for flow in present:
        system.remove(flow)
    assert all(constraint.uses == 0 for constraint in [*up, *down])


def assert_listed(activities, constraints):
    """The list of a contended constraint has the bundles of its users, and not many others."""
    for constraint in constraints:
        if constraint.contended:
            users = {id(one.bundle) for one in activities if constraint in one.constraints}
            assert constraint.uses == len(users)
            listed_once = [id(bundle) for bundle in constraint.bundles]
            assert len(listed_once) == len(set(listed_once))
            assert users == {id(bundle) for bundle in constraint.bundles if bundle.count > 0}


def test_bundles_without_members_do_not_pile_up():
    """A host that exchanges messages with one after another of a thousand keeps a short list."""
    system, hub = new_system(), Constraint(10.0)
    links = [Constraint(10.0) for _ in range(1000)]
    for link in links:
        route, kind = [hub, link], ActivityKind()
        flows = [Activity(1.0, 1.0, 9.0, route, [1.0, 1.0], kind) for _ in range(2)]
        for flow in flows:
            system.add(flow)
        solve(system)
        assert rates(flows) == [pytest.approx(5.0)] * 2
        for flow in flows:
            system.remove(flow)
    assert len(hub.bundles) < 20


def test_bundles_that_fit_do_not_pile_up():
    """They come and go on a link that is contended and never saturated, so nothing is solved."""
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
    assert len(hub.bundles) < 20
