"""The rates are max-min fair after any sequence of changes."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.kernel.activities import Activity, ActivityKind, Constraint
from pysmpi.kernel.events import EventQueue, events_of
from pysmpi.kernel.sharing import System
from tests.kernel.fair_rates import assert_fair, new_system, rates, solve

positive = st.floats(0.1, 1000.0)


@st.composite
def systems(draw):
    capacities = draw(st.lists(positive, min_size=1, max_size=6))
    number = len(capacities)
    flows = draw(
        st.lists(
            st.tuples(
                positive,
                st.one_of(st.just(math.inf), positive),
                st.lists(
                    st.tuples(st.integers(0, number - 1), st.sampled_from([1.0, 0.05, 1.05, 2.0])),
                    min_size=1,
                    max_size=4,
                    unique_by=lambda pair: pair[0],
                ),
            ),
            min_size=1,
            max_size=12,
        )
    )
    order = draw(st.permutations(range(len(flows))))
    batches = draw(st.lists(st.booleans(), min_size=len(flows), max_size=len(flows)))
    return capacities, flows, order, batches


@settings(deadline=None)
@given(systems())
def test_rates_are_fair_after_each_change(case):
    capacities, flows, order, batches = case
    constraints = [Constraint(c) for c in capacities]
    system = new_system()
    present = []
    for (penalty, bound, uses), together in zip(flows, batches):
        activity = Activity(
            1.0, penalty, bound, [constraints[i] for i, _ in uses], [w for _, w in uses]
        )
        system.add(activity)
        present.append(activity)
        if not together:
            solve(system)
            assert_fair(system, present, constraints)
    solve(system)
    assert_fair(system, present, constraints)
    for i in order:
        activity = present[i]
        system.remove(activity)
        left = [present[j] for j in order[order.index(i) + 1 :]]
        solve(system)
        assert_fair(system, left, constraints)


def plain_rates(activities):
    """All rates from scratch: raise the level of rate * penalty, fix rates at their limits."""
    rate = {}
    while len(rate) < len(activities):
        open_ones = [a for a in activities if a not in rate]
        remaining, load = {}, {}
        for a in activities:
            for c, w in zip(a.constraints, a.weights):
                remaining[c] = remaining.get(c, c.capacity) - w * rate.get(a, 0.0)
                load[c] = load.get(c, 0.0) + (w / a.penalty if a not in rate else 0.0)
        full = {c: max(0.0, remaining[c]) / load[c] for c in load if load[c] > 0}
        level = min([a.bound * a.penalty for a in open_ones] + list(full.values()))
        for a in open_ones:
            if a.bound * a.penalty <= level:
                rate[a] = a.bound
            elif any(full[c] <= level * (1 + 1e-12) for c in a.constraints):
                rate[a] = level / a.penalty
    return [rate[a] for a in activities]


def exchanges(hosts, pairs, kinds):
    """Activities between pairs of hosts with a link up and a link down, and cross-traffic."""
    up, down = [Constraint(10.0) for _ in range(hosts)], [Constraint(10.0) for _ in range(hosts)]
    weights = [1.0, 1.0, 0.05, 0.05]
    paths = {(a, b): [up[a], down[b], up[b], down[a]] for a, b in pairs}
    return [
        Activity(1.0, penalty, bound, paths[pair], weights)
        for pair, (penalty, bound) in zip(pairs, kinds)
    ]


ways = st.tuples(st.integers(0, 9), st.sampled_from([1, 2, 3])).map(
    lambda way: (way[0], (way[0] + way[1]) % 10)
)
kinds = st.tuples(st.sampled_from([1.0, 1.0, 1.3, 3.7]), st.sampled_from([10.0, 10.0, 4.0]))


@settings(deadline=None)
@given(st.lists(st.tuples(ways, kinds), min_size=1, max_size=30), st.data())
def test_rates_of_exchanges_are_those_of_a_plain_solver(flows, data):
    """Messages of neighbours and their answers: long chains of links, of which parts change."""
    activities = exchanges(10, [pair for pair, _ in flows], [kind for _, kind in flows])
    system, present = new_system(), []
    changes = data.draw(
        st.lists(st.sets(st.sampled_from(activities), max_size=4), min_size=1, max_size=20)
    )
    for change in [set(activities), *changes]:
        for activity in change:
            if activity in present:
                system.remove(activity)
                present.remove(activity)
            else:
                system.add(activity)
                present.append(activity)
        solve(system)
        assert rates(present) == pytest.approx(plain_rates(present), rel=1e-9)


@settings(deadline=None)
@given(systems(), st.data())
def test_rates_of_any_system_are_those_of_a_plain_solver(case, data):
    capacities, flows, _, _ = case
    constraints = [Constraint(c) for c in capacities]
    activities = [
        Activity(1.0, penalty, bound, [constraints[i] for i, _ in uses], [w for _, w in uses])
        for penalty, bound, uses in flows
    ]
    system, present = new_system(), []
    for activity in activities + data.draw(st.lists(st.sampled_from(activities), max_size=30)):
        if activity in present:
            system.remove(activity)
            present.remove(activity)
        else:
            system.add(activity)
            present.append(activity)
        if data.draw(st.booleans()):
            system.set_capacity(data.draw(st.sampled_from(constraints)), data.draw(positive))
        solve(system)
        assert rates(present) == pytest.approx(plain_rates(present), rel=1e-6)


@settings(deadline=None)
@given(st.lists(ways, min_size=1, max_size=8, unique=True), st.booleans(), st.data())
def test_rates_of_repeated_rounds_are_those_of_a_plain_solver(pairs, named, data):
    """The same messages, some of them, or others come and go together, as in loops of programs."""
    activities = exchanges(10, pairs, [(1.0, 10.0)] * len(pairs))
    seconds = [Activity(1.0, 1.0, 10.0, one.constraints, one.weights) for one in activities]
    if named:
        for one, second in zip(activities, seconds):
            one.kind = second.kind = ActivityKind()
    activities += seconds
    system = new_system()
    rounds = st.lists(st.sampled_from(activities), min_size=1, max_size=16, unique=True)
    pool = data.draw(st.lists(rounds, min_size=1, max_size=3))
    pool.append(pool[0][len(pool[0]) // 2 :])
    for members in data.draw(st.lists(st.sampled_from(pool), min_size=2, max_size=8)):
        if data.draw(st.integers(0, 4)) == 0:
            system.set_capacity(activities[0].constraints[0], data.draw(st.floats(5.0, 15.0)))
        for activity in members:
            system.add(activity)
        solve(system)
        assert rates(members) == pytest.approx(plain_rates(members), rel=1e-9)
        for activity in members:
            system.remove(activity)
        solve(system)


@settings(deadline=None)
@given(st.integers(3, 10), st.lists(ways, min_size=1, max_size=4, unique=True), st.data())
def test_rates_of_a_ring_beside_messages_that_stay(hosts, pairs, data):
    """All messages of a ring but one are joined to links that are saturated by then."""
    around = [(i, (i + 1) % hosts) for i in range(hosts)]
    activities = exchanges(10, around + pairs, [(1.0, 10.0)] * (hosts + len(pairs)))
    for one in activities:
        one.kind = ActivityKind()
    ring, others = activities[:hosts], activities[hosts:]
    links = list({id(link): link for one in activities for link in one.constraints}.values())
    system, staying = new_system(), []
    for move in data.draw(st.lists(st.integers(-3, len(others) - 1), min_size=8, max_size=16)):
        if move >= 0:
            one = others[move]
            if one in staying:
                staying.remove(one)
                system.remove(one)
            else:
                staying.append(one)
                system.add(one)
            if data.draw(st.booleans()):
                solve(system)
        for one in ring:
            system.add(one)
        solve(system)
        assert rates(ring + staying) == pytest.approx(plain_rates(ring + staying), rel=1e-9)
        assert_fair(system, ring + staying, links)
        for one in ring:
            system.remove(one)
        if data.draw(st.booleans()):
            solve(system)


def test_a_round_is_repeated_unless_something_else_shares_its_links():
    hosts = 6
    *ring, other = exchanges(hosts, [*((i, (i + 1) % hosts) for i in range(hosts)), (0, 3)],
                             [(1.0, 10.0)] * (hosts + 1))  # fmt: skip
    system = new_system()
    for beside in [False] * 6 + [True, False]:
        present = [*ring, other] if beside else ring
        for one in present:
            system.add(one)
        stamp = system.solver.new_stamp()
        repeated = system.memo.repeated(system.fresh, system.fitting, system.dirty, stamp)
        assert not (beside and repeated)
        if repeated:
            assert {id(one) for one in repeated} == {id(one.bundle) for one in ring}
            for constraint in system.dirty:
                constraint.dirty = True
        solve(system)
        assert rates(present) == pytest.approx(plain_rates(present))
        for one in present:
            system.remove(one)
        solve(system)
    assert repeated


def test_the_rates_of_a_round_are_not_those_of_a_part_of_it():
    links = [Constraint(10.0), Constraint(10.0)]
    activities = [
        Activity(1.0, 1.0, 10.0, links[:1], [1.0]),
        Activity(1.0, 1.0, 10.0, links, [1.0, 1.0]),
        Activity(1.0, 0.1, 10.0, links[1:], [1.0]),
    ]
    system = new_system()
    # After a few rounds the links are taken to be contended from the start.
    for members in [activities] * 5 + [activities[:2], activities]:
        for activity in members:
            system.add(activity)
        solve(system)
        assert rates(members) == pytest.approx(plain_rates(members))
        for activity in members:
            system.remove(activity)
        solve(system)


def test_a_change_far_along_a_chain_is_not_solved():
    flows = exchanges(1000, [(i, (i + 1) % 1000) for i in range(1000)], [(1.0, 10.0)] * 1000)
    system = new_system()
    for flow in flows:
        system.add(flow)
    solve(system)
    assert rates(flows) == [pytest.approx(10.0 / 1.05)] * 1000
    before = {flow: flow.bundle.stamp for flow in flows}
    system.remove(flows[500])
    solve(system)
    assert sum(flow.bundle.stamp != before[flow] for flow in flows if flow.bundle) < 10


@pytest.mark.parametrize("number", [3, 30, 300])
def test_a_change_that_moves_a_whole_chain_is_followed_to_its_end(number):
    # Each link has two flows, one also on the next link: the next one takes the rate that one gives
    # up.
    links = [Constraint(10.0 + i) for i in range(number)]
    flows = [
        Activity(1.0, 1.0, math.inf, links[i : i + 2], [1.0] * len(links[i : i + 2]))
        for i in range(number)
    ]
    own = [Activity(1.0, 1.0, math.inf, [link], [1.0]) for link in links]
    system = new_system()
    for activity in flows + own:
        system.add(activity)
    solve(system)
    assert rates(flows + own) == pytest.approx(plain_rates(flows + own), rel=1e-9)
    system.remove(own[0])
    solve(system)
    assert rates(flows + own[1:]) == pytest.approx(plain_rates(flows + own[1:]), rel=1e-9)


def test_a_flow_that_fits_is_not_solved():
    system = new_system()
    link = Constraint(10.0)
    flows = [Activity(1.0, 1.0, 4.0, [link], [1.0]) for _ in range(3)]
    for flow in flows[:2]:
        system.add(flow)
    assert not system.pending()
    assert rates(flows[:2]) == [4.0, 4.0]
    system.add(flows[2])
    solve(system)
    assert rates(flows) == [pytest.approx(10.0 / 3)] * 3


def test_only_what_is_tied_to_the_change_moves():
    system = new_system()
    one, other, bridge = Constraint(10.0), Constraint(10.0), Constraint(100.0)
    near = [Activity(1.0, 1.0, math.inf, [one, bridge], [1.0, 1.0]) for _ in range(2)]
    far = [Activity(1.0, 1.0, math.inf, [other, bridge], [1.0, 1.0]) for _ in range(2)]
    for activity in near + far:
        system.add(activity)
    solve(system)
    system.remove(near[0])
    assert system.solve() == [near[1].bundle]


def test_those_that_share_alike_are_solved_as_one():
    system = new_system()
    sink = Constraint(10.0)
    flows = [Activity(1.0, 1.0, 5.0, [sink, Constraint(5.0)], [1.0, 1.0]) for _ in range(100)]
    for flow in flows:
        system.add(flow)
    solve(system)
    assert sink.uses == 1
    assert rates(flows) == [pytest.approx(0.1)] * 100


def test_a_resource_with_one_user_is_no_more_than_a_bound():
    system, links = new_system(), [Constraint(10.0), Constraint(4.0)]
    flow = Activity(8.0, 3.0, math.inf, links, [1.0, 2.0])
    system.add(flow)
    assert not system.pending() and not any(link.contended for link in links)
    assert rates([flow]) == [2.0]
    other = Activity(8.0, 3.0, 9.0, links[:1], [1.0])
    system.add(other)
    solve(system)
    assert rates([flow, other]) == [2.0, pytest.approx(8.0)]


def test_links_that_were_contended_do_not_keep_their_single_users_apart():
    system, sink = new_system(), Constraint(10.0)
    links = [Constraint(5.0) for _ in range(100)]
    for _ in range(4):  # periods in which each link has two users
        busy = [Activity(1.0, 1.0, math.inf, [link], [1.0]) for link in links for _ in range(2)]
        for activity in busy:
            system.add(activity)
        solve(system)
        for activity in busy:
            system.remove(activity)
        solve(system)
    assert all(link.contended for link in links)
    flows = [Activity(1.0, 1.0, math.inf, [sink, link], [1.0, 1.0]) for link in links]
    for flow in flows:
        system.add(flow)
    solve(system)
    assert sink.uses == 100
    system.remove(flows.pop())
    solve(system)
    assert sink.uses == 1
    assert_fair(system, flows, [sink, *links])
    late = Activity(1.0, 1.0, math.inf, links[:1], [1.0])
    system.add(late)
    solve(system)
    assert_fair(system, [*flows, late], [sink, *links])


def incast(nodes, each, capacity, up=10.0):
    """A sink, the links of some nodes, and as many flows of each of them to the sink."""
    sink, links = Constraint(capacity), [Constraint(up) for _ in range(nodes)]
    weights = [1.0, 1.0]
    routes = [[link, sink] for link in links]
    flows = [Activity(1.0, 1.0, up, route, weights) for _ in range(each) for route in routes]
    return sink, links, flows


def left_out(capacity):
    """A system with an incast of 4 flows from each of 40 nodes, whose links are left out."""
    system = new_system()
    sink, links, flows = incast(40, 4, capacity)
    for flow in flows:
        system.add(flow)
    solve(system)
    for _ in range(8):  # so often that it is worth while
        system.remove(flows.pop())
        solve(system)
    assert sink.uses < 40 and not any(link.contended for link in links[:-8])
    return system, sink, links, flows


def test_a_crowd_from_shared_links_is_one_bundle():
    system = new_system()
    sink, links, flows = incast(100, 8, 10.0)
    for flow in flows:
        system.add(flow)
        solve(system)
    assert sink.uses < 40  # links that have just become contended are not left out one by one
    assert_fair(system, flows, [sink, *links])
    solved = system.solver.solved
    for flow in flows[:400]:
        system.remove(flow)
        solve(system)
    assert system.solver.solved - solved < 40 * 400
    assert_fair(system, flows[400:], [sink, *links])


def test_a_link_that_was_left_out_is_taken_in_when_it_becomes_the_bottleneck():
    system, sink, links, flows = left_out(40.0)
    # Only the flows of two nodes stay: now their own links limit them.
    stay = [flow for flow in flows if flow.constraints[0] in links[:2]]
    for flow in flows:
        if flow not in stay:
            system.remove(flow)
            solve(system)
    assert rates(stay) == [pytest.approx(2.5)] * 8
    assert_fair(system, stay, [sink, *links])


def test_flows_from_a_link_that_was_left_out_to_other_hosts_are_limited_by_it():
    system, sink, links, flows = left_out(10.0)
    away = [Activity(1.0, 1.0, math.inf, links[:1], [1.0]) for _ in range(2)]
    for flow in away:
        system.add(flow)
        solve(system)
    assert links[0].contended
    assert rates(away) == [pytest.approx((10.0 - 4 * 10.0 / 152) / 2)] * 2
    assert_fair(system, [*flows, *away], [sink, *links])


def test_many_more_flows_on_links_that_were_left_out():
    system, sink, links, flows = left_out(10.0)
    # Each of them alone would be slow enough, but not all of them together.
    other, weights = Constraint(1600.0), [1.0, 1.0]
    routes = [[link, other] for link in links]
    more = [Activity(1.0, 1.0, 10.0, route, weights) for _ in range(40) for route in routes]
    for flow in more:
        system.add(flow)
    solve(system)
    assert_fair(system, [*flows, *more], [sink, other, *links])


@settings(max_examples=settings().max_examples // 3, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(33, 45),
    st.sampled_from([1.0, 10.0, 100.0, 500.0]),
    st.booleans(),
)
def test_rates_are_fair_whatever_begins_and_ends_in_a_crowd(seed, nodes, capacity, alike):
    draw = random.Random(seed)
    system = new_system()
    sink, links, crowd = incast(nodes, draw.choice([1, 2, 5]), capacity)
    constraints = [sink, *links]
    if not alike:
        for link in links:
            link.capacity = draw.choice([2.0, 10.0, 30.0])
    away = [
        Activity(1.0, draw.choice([1.0, 2.0]), draw.choice([math.inf, 1.0]), [link], [weight])
        for link in draw.sample(links, 6)
        for weight in (1.0, 0.05)
    ]
    present: list[Activity] = []
    waiting = [*crowd, *away] if alike else draw.sample([*crowd, *away], len(crowd) + len(away))
    leave = 0.1
    while waiting or len(present) > 3:
        if not waiting:
            leave = 1.0
        if present and draw.random() < leave:
            system.remove(present.pop(draw.randrange(len(present))))
        elif waiting:
            present.append(waiting.pop(0))
            system.add(present[-1])
        if draw.random() < 0.02:
            system.set_capacity(draw.choice(constraints), draw.choice([1.0, 10.0, 50.0]))
        if draw.random() < 0.7:
            solve(system)
            if draw.random() < 0.2:
                assert_fair(system, present, constraints)
    solve(system)
    assert_fair(system, present, constraints)


def test_messages_of_one_pair_are_one_bundle():
    # Every constraint of theirs is contended.
    system, links = new_system(), [Constraint(10.0), Constraint(10.0)]
    weights = [1.0, 0.05]
    activities = [Activity(100.0, 1.0, 10.0, links, weights) for _ in range(400)]
    for activity in activities:
        system.add(activity)
        solve(system)
    assert all(link.contended for link in links)
    assert {link.uses for link in links} == {1}
    assert_fair(system, activities, links)
    for activity in activities[:-1]:
        system.remove(activity)
        solve(system)
    assert rates(activities[-1:]) == [10.0]


def test_capacity_can_change():
    system = new_system()
    link = Constraint(10.0)
    flows = [Activity(1.0, 1.0, math.inf, [link], [1.0]) for _ in range(4)]
    for flow in flows:
        system.add(flow)
    solve(system)
    system.set_capacity(link, 20.0)
    solve(system)
    assert rates(flows) == [5.0] * 4


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.0, 5.0), st.floats(0.1, 20.0), st.sampled_from([1.0, 4.0, 10.0])),
        min_size=1,
        max_size=12,
    )
)
def test_ends_are_those_of_a_shared_link(flows):
    """Compare with a simulation in small steps of processor sharing with equal priorities."""
    queue = EventQueue()
    system = System(queue)
    link = Constraint(10.0)
    starts = sorted(flows)
    ends, present = {}, {}
    arrivals = list(enumerate(starts))
    while arrivals or not queue.empty():
        if system.pending():
            system.share()
        coming = arrivals[0][1][0] if arrivals else math.inf
        if queue.empty() or queue.next() > coming:
            name, (start, work, bound) = arrivals.pop(0)
            queue.now = start
            own = Constraint(20.0)
            present[name] = Activity(work, 1.0, bound, [link, own], [1.0, 1.0])
            system.add(present[name])
            continue
        queue.now = max(queue.now, queue.next())
        for _, event in events_of([queue.pop()]):
            event.fire()
        for name in [name for name, activity in present.items() if activity.system is None]:
            del present[name]
            ends[name] = queue.now
    assert ends == pytest.approx(expected_ends(starts, 10.0), rel=1e-6)


def expected_ends(flows, capacity):
    now, ends = 0.0, {}
    left = {name: work for name, (_, work, _) in enumerate(flows)}
    while left:
        active = [name for name in left if flows[name][0] <= now]
        rate = {}
        spare, unfixed = capacity, sorted(active, key=lambda name: flows[name][2])
        for position, name in enumerate(unfixed):
            rate[name] = min(flows[name][2], spare / (len(unfixed) - position))
            spare -= rate[name]
        steps = [left[name] / rate[name] for name in active]
        steps += [flows[name][0] - now for name in left if flows[name][0] > now]
        step = min(steps)
        now += step
        for name in active:
            left[name] -= rate[name] * step
        for name in active:
            if left[name] <= 1e-9 * flows[name][1]:
                ends[name] = now
                del left[name]
    return ends


@settings(deadline=None)
@given(systems(), st.data())
def test_rates_are_fair_after_a_bound_has_changed(case, data):
    capacities, flows, order, _ = case
    constraints = [Constraint(c) for c in capacities]
    system = new_system()
    present = [
        Activity(1.0, penalty, bound, [constraints[i] for i, _ in uses], [w for _, w in uses])
        for penalty, bound, uses in flows
    ]
    for activity in present:
        system.add(activity)
    solve(system)
    for i in order:
        system.set_bound(present[i], data.draw(positive))
        solve(system)
        assert_fair(system, present, constraints)


@settings(deadline=None)
@given(
    positive,
    st.lists(st.tuples(st.floats(0.1, 50.0), st.floats(0.1, 20.0)), max_size=5),
    st.booleans(),
)
def test_an_activity_ends_when_its_bounds_have_done_its_work(work, changes, contended):
    """`changes` are pairs of a wait (s) and the bound after it; the link is wide enough."""
    queue = EventQueue()
    system = System(queue)
    link = Constraint(25.0)
    activity = Activity(work, 1.0, 1.0, [link], [1.0])
    system.add(activity)
    if contended:
        # Another that is there for ever makes them a bundle each.
        system.add(Activity(1e12, 1.0, 5.0, [link, Constraint(5.0)], [1.0, 1.0]))
        system._contend(link)

    def run_until(date):
        while activity.system is not None:
            if system.pending():
                system.share()
            if queue.empty() or queue.next() > date:
                queue.now = date
                return
            queue.now = max(queue.now, queue.next())
            for _, event in events_of([queue.pop()]):
                event.fire()

    left, rate, now = work, 1.0, 0.0
    for wait, bound in changes:
        if left <= rate * wait:
            break
        now += wait
        left -= rate * wait
        run_until(now)
        assert activity.system is not None
        rate = bound
        system.set_bound(activity, bound)
    run_until(1e6)
    assert activity.system is None
    assert queue.now == pytest.approx(now + left / rate, rel=1e-6)
