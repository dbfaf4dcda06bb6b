"""Systems of activities whose rates tests compare with the definition of max-min fairness."""

import math

from pysmpi.kernel.events import EventQueue
from pysmpi.kernel.sharing import System


def new_system():
    return System(EventQueue())


def solve(system):
    if system.pending():
        system.share()


def rates(activities):
    return [a.limit if a.bundle is None else a.bundle.rate for a in activities]


def assert_fair(system, activities, constraints):
    """Feasible, and each rate has a reason: its bound, or a saturated constraint it leads on."""
    rate = {id(a): r for a, r in zip(activities, rates(activities))}
    usage = {id(c): 0.0 for c in constraints}
    users = {id(c): [] for c in constraints}
    for a in activities:
        for c, w in zip(a.constraints, a.weights):
            usage[id(c)] += w * rate[id(a)]
            users[id(c)].append(a)
    for c in constraints:
        assert usage[id(c)] <= c.capacity * (1 + 1e-6)
        if c.contended:
            assert math.isclose(usage[id(c)], c.usage, rel_tol=1e-6, abs_tol=1e-6 * c.capacity)
    for a in activities:
        assert rate[id(a)] > 0
        if rate[id(a)] >= a.bound * (1 - 1e-6):
            assert rate[id(a)] <= a.bound * (1 + 1e-6)
            continue
        assert any(
            usage[id(c)] >= c.capacity * (1 - 1e-6)
            and all(
                rate[id(other)] * other.penalty <= rate[id(a)] * a.penalty * (1 + 1e-6)
                for other in users[id(c)]
            )
            for c in a.constraints
        ), "a rate below its bound needs a bottleneck"
