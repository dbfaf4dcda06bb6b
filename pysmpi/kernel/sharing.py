"""Weighted, bounded max-min fair sharing of resources, solved again only where it changed.

A `Constraint` is a resource with a capacity (bytes/s of a link, flop/s of a core). An `Activity` is
an amount of work that uses some constraints, each with a weight. The rates are max-min fair: on
every constraint sum(weight * rate) <= capacity, and each rate is either the activity's own bound,
or limited by a saturated constraint on which no other activity has a larger rate * penalty. This is
the fluid model of Casanova and Marchal that SimGrid solves under the name LMM.

Three methods make it fast for many activities:

- A constraint that cannot be saturated even if all its members run at their bounds is not
  contended, and is left out. So is a constraint with a single member, which only bounds this
  member. The lowest bound of an activity is its limit. An activity without a contended constraint
  is free: it runs at its limit, without a solution.
- Activities with equal penalty, limit and contended constraints always have equal rates: they form
  a `Bundle`, which is solved as one activity. A bundle records the work that each member has done
  since it began; a member ends when this work reaches its goal. A thousand messages to one host
  therefore cost as much as one.
- Only rates that change are solved again. A set of rates is max-min fair exactly if each rate has a
  reason: its bound, or its bottleneck, a saturated constraint on which no rate * penalty is larger.
  So the bundles of the changed constraints are solved among the others, which keep their rates; the
  others that lose their reason then take part, until all have one.

The cost of a solution does not depend on the size of the saturated region. Let k be the number of
bundles on changed constraints or with changed rates, each with up to m constraints, and d the
number of bundles on such a constraint. A round costs O(k m d), and O(k m log k) for the levels
after the first few. The number of rounds is at most `ROUNDS` plus the logarithm of the number of
constraints through which a change spreads. Cross-traffic passes on 5 % of a change, so a change is
below rounding after about ten constraints.
"""

from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, Optional

from pysmpi.kernel.events import Event, EventQueue

INFINITY: Final = float("inf")
# Relative slack under which a constraint counts as saturated: well above rounding,
# well below anything that a prediction could show.
SLACK: Final = 1e-9
# Relative difference under which two levels are the same: the rounding of a few sums.
TIE: Final = 1e-11
# Bundles of pairs of hosts that are kept.
TWINS: Final = 1 << 15
# Scans of a region for the next saturated constraint, after which a heap is quicker.
SCANS: Final = 6
# Different limits in one solution after which the bundles are sorted by their limits.
PASSES: Final = 8
# Rounds of one solution after which it reaches out farther each time, lest their number grow with
# the length of a chain of bundles whose rates change.
ROUNDS: Final = 8
# Busy periods with contention, nearly in a row, after which a constraint is taken to be contended
# from the start of the next. Programs repeat themselves, and a right guess saves bundling anew.
HOT: Final = 3
# Number of contended constraints with a single member, in one solution, above which they are left
# out again.
LONELY: Final = 32
# The goals of a bundle with one member.
NO_GOALS: Final["list[tuple[float, int, Activity]]"] = []
NO_REGION: Final["list[Constraint]"] = []
# Members of a constraint that may have ended before its list of members is made anew.
ENDED: Final = 8


class Constraint:
    """A shared resource. `capacity` is in units of work a second."""

    def __init__(self, capacity: float, name: str = "") -> None:
        self.capacity: float = capacity
        self.name: str = name
        # Those that use it, in the order in which they came; some of the list may have ended.
        self.members: list[Activity] = []
        self.count: int = 0  # of the members that have not ended
        self.demand: float = 0.0  # sum of weight * bound over the members
        self.contended: bool = False
        self.exceeded: bool = False  # whether demand was above capacity since it was last idle
        self.heat: int = 0  # how often this happened recently, up to HOT
        self.cooling: bool = False  # whether it may have ceased to be contended
        # The uses by bundles, once contended: a list through `BundleUse.after`, in the order in
        # which the bundles came.
        self.first: Optional[BundleUse] = None
        self.last: Optional[BundleUse] = None
        self.uses: int = 0
        self.usage: float = 0.0  # sum of weight * rate over their members
        self.dirty: bool = False
        # Scratch of one solution.
        self.stamp: int = 0
        self.remaining: float = 0.0
        self.load: float = 0.0
        self.held: float = 0.0  # earlier rates of the solved bundles
        self.open: int = 0
        self.whole: bool = False  # whether all its bundles are being solved
        self.level: float = 0.0  # rate * penalty of those that it limits
        self.top: float = 0.0  # the largest rate * penalty of those that were solved
        self.moved: bool = False


class Activity(Event):
    """An amount of work that consumes constraints at a common rate.

    `penalty` is the inverse of its priority (for a flow: its round-trip weight), `bound` its own
    rate limit. `weights[i]` is the use of `constraints[i]` for one unit of rate. A subclass defines
    `finish`, which is called at the end.
    """

    def __init__(
        self,
        work: float,
        penalty: float,
        bound: float,
        constraints: "list[Constraint]",
        weights: "list[float]",
    ) -> None:
        self.work: float = work
        self.penalty: float = penalty
        self.bound: float = bound
        self.limit: float = bound  # the rate that it has without contention
        self.constraints: list[Constraint] = constraints
        self.weights: list[float] = weights
        self.system: Optional[System] = None
        self.gone: bool = False  # after it has been removed
        self.begun: float = 0.0  # date (s) since when it is free
        self.bundle: Optional[Bundle] = None
        self.goal: float = 0.0  # the progress of its bundle at which it ends
        self.turn: int = 0  # of joining it, over the whole simulation

    def finish(self) -> None:
        """Called at the end, when the activity has released its resources."""

    def fire(self) -> None:
        """End a free activity; if it has joined a bundle, it ends with the bundle."""
        system = self.system
        if system is not None and self.bundle is None:
            if self.begun + self.work / self.limit > system.queue.now:
                return  # a lower bound has put off its end
            system.remove(self)
            self.finish()


class BundleUse:
    """The use of a constraint by a bundle, for one unit of its rate."""

    def __init__(self, bundle: "Bundle", constraint: Constraint, weight: float) -> None:
        self.bundle: Bundle = bundle
        self.constraint: Constraint = constraint
        self.weight: float = weight
        self.before: Optional[BundleUse] = None
        self.after: Optional[BundleUse] = None

    def begin(self) -> None:
        """Add it to the uses of its constraint."""
        constraint = self.constraint
        last = constraint.last
        self.before = last
        if last is None:
            constraint.first = self
        else:
            last.after = self
        constraint.last = self
        constraint.uses += 1

    def end(self) -> None:
        """Take it out of the uses of its constraint."""
        constraint = self.constraint
        before = self.before
        after = self.after
        if before is None:
            constraint.first = after
        else:
            before.after = after
        if after is None:
            constraint.last = before
        else:
            after.before = before
        self.before = self.after = None
        constraint.uses -= 1


class Bundle(Event):
    """Activities with equal shares; as event, the end of the first of them."""

    def __init__(
        self,
        system: "System",
        penalty: float,
        limit: float,
        constraints: "list[Constraint]",
        weights: "list[float]",
    ) -> None:
        self.system: System = system
        self.penalty: float = penalty
        self.limit: float = limit
        self.constraints: list[Constraint] = constraints
        self.weights: list[float] = weights
        self.uses: list[BundleUse] = [
            BundleUse(self, constraint, weight) for constraint, weight in zip(constraints, weights)
        ]
        self.key: object = None
        self.kept: bool = False  # without members, for the next activity of its kind
        self.count: int = 0
        # The member, if it has never had another since it was empty; else a heap of its members.
        self.sole: Optional[Activity] = None
        self.goals: list[tuple[float, int, Activity]] = NO_GOALS
        self.rate: float = 0.0
        self.bottleneck: Optional[Constraint] = None  # the shared limit of the rate, if any
        self.progress: float = 0.0  # work of each member since the bundle began, at `updated`
        self.updated: float = 0.0  # date (s)
        self.queued: float = INFINITY  # date (s) of the event in the queue
        self.stamp: int = 0
        self.share: float = -1.0  # the rate being solved; negative while open

    def advance(self, now: float) -> None:
        """Bring the progress up to a date (s)."""
        self.progress += self.rate * (now - self.updated)
        self.updated = now

    def moves(self) -> bool:
        """Whether the share just solved is another rate; if not, it becomes the rate."""
        difference = self.share - self.rate
        if difference > 1e-12 * self.rate or difference < -1e-12 * self.rate:
            return True
        self.share = self.rate
        return False

    def line_up(self, activity: Activity) -> None:
        """Note the goal of another member."""
        if self.count == 0:
            self.sole = activity
            return
        sole = self.sole
        if sole is not None:
            self.sole = None
            self.goals = [(sole.goal, sole.turn, sole)]
        heappush(self.goals, (activity.goal, activity.turn, activity))

    def drop(self) -> None:
        """Let go of the uses, which refer to the bundle, when it is no longer needed."""
        self.kept = False
        if self.count == 0:
            self.uses = []

    def end(self) -> float:
        """The date (s) at which the first member ends at the present rate."""
        if self.count == 0 or self.rate <= 0.0:
            return INFINITY
        sole = self.sole
        left = (self.goals[0][0] if sole is None else sole.goal) - self.progress
        return self.updated + (left / self.rate if left > 0.0 else 0.0)

    def fire(self) -> None:
        """End the members that have reached their goals."""
        self.system.expire(self)


class Lowest:
    """The constraint of a region that reaches its capacity first, while rates rise together.

    The level at which a constraint reaches it never falls when bundles stop below it. So a few
    scans of all constraints are followed by a heap, in which levels are updated only at the top.
    """

    def __init__(self) -> None:
        self.region: list[Constraint] = NO_REGION
        self.light: list[Constraint] = NO_REGION  # those in the heap
        self.next: int = 0
        self.scans: int = 0
        self.heap: list[tuple[float, int]] = []

    def begin(self, region: "list[Constraint]") -> None:
        """Rates begin to rise in a region."""
        self.region = region
        self.scans = 0

    def level(self) -> float:
        """The lowest level at which a constraint is saturated; infinite if none is left."""
        if self.scans < SCANS:
            self.scans += 1
            self.next = 0
            level = INFINITY
            for constraint in self.region:
                if constraint.open > 0:
                    ratio = constraint.remaining / constraint.load
                    if ratio < level:
                        level = ratio
            if self.scans == SCANS:
                self.light = light = [one for one in self.region if one.open > 0]
                self.heap = [(light[i].remaining / light[i].load, i) for i in range(len(light))]
                heapify(self.heap)
        else:
            level = self._first()
        return level if level > 0.0 else 0.0

    def take(self, level: float) -> Optional[Constraint]:
        """One more constraint that is saturated at a level that `level` has returned, if any."""
        limit = level * (1.0 + 1e-12)
        if self.scans < SCANS:
            while self.next < len(self.region):
                constraint = self.region[self.next]
                self.next += 1
                if constraint.open > 0 and constraint.remaining <= limit * constraint.load:
                    return constraint
        elif self._first() <= limit:
            return self.light[heappop(self.heap)[1]]
        return None

    def _first(self) -> float:
        """Bring the top of the heap up to date, and return its level."""
        while len(self.heap) > 0:
            level, i = self.heap[0]
            constraint = self.light[i]
            if constraint.open == 0:
                heappop(self.heap)
                continue
            ratio = constraint.remaining / constraint.load
            if ratio <= level:
                return level
            heapreplace(self.heap, (ratio, i))
        return INFINITY


class System:
    """The rates of a simulation, and which of them must be solved again."""

    def __init__(self, queue: EventQueue) -> None:
        self.queue: EventQueue = queue
        self.bundles: dict[object, Bundle] = {}
        # By the id of their list of constraints. They stay when their last member leaves, for the
        # next message of the same pair of hosts.
        self.twins: dict[int, Bundle] = {}
        self.dirty: list[Constraint] = []
        self.fresh: list[Bundle] = []
        self.cooling: list[Constraint] = []
        self.lonely: list[Constraint] = []  # contended, with a single member, as last solved
        self.lowest: Lowest = Lowest()
        self.order: int = 0
        self.stamp: int = 0
        self.solved: int = 0  # bundles, over all solutions

    def pending(self) -> bool:
        """Whether rates may be out of date until `share` is called."""
        return len(self.fresh) > 0 or len(self.dirty) > 0

    # Activities begin and end.

    def add(self, activity: Activity) -> None:
        """Let an activity take its share from now on."""
        if activity.gone:
            # It comes again: lists of members may still have its earlier entry.
            activity.gone = False
            for constraint in activity.constraints:
                constraint.members = present(constraint)
        activity.system = self
        bound = activity.bound
        limit = bound
        contended = 0
        for constraint, weight in zip(activity.constraints, activity.weights):
            constraint.demand += demand_of(weight, bound, constraint)
            if constraint.count > 0 and (
                constraint.demand > constraint.capacity * (1.0 + SLACK)
            ):
                constraint.exceeded = True
                if not constraint.contended:
                    self._contend(constraint)
            constraint.members.append(activity)
            constraint.count += 1
            if constraint.contended:
                contended += 1
            elif limit * weight > constraint.capacity:
                limit = constraint.capacity / weight
        activity.limit = limit
        if contended == 0 and limit < INFINITY:
            activity.begun = self.queue.now
            self.queue.push(self.queue.now + activity.work / limit, activity)
        else:
            self._join(activity, activity.work, contended)

    def remove(self, activity: Activity) -> None:
        """Remove an activity and release its resources."""
        bundle = activity.bundle
        if bundle is not None:
            self._leave(activity, bundle)
        activity.system = None
        activity.gone = True
        for constraint, weight in zip(activity.constraints, activity.weights):
            constraint.count -= 1
            if constraint.count == 0:
                constraint.members.clear()
                constraint.demand = 0.0
                constraint.usage = 0.0
                if constraint.exceeded:
                    constraint.heat = constraint.heat + 1 if constraint.heat < HOT else HOT
                else:
                    constraint.heat = constraint.heat - 2 if constraint.heat > 2 else 0
                constraint.exceeded = False
                constraint.contended = constraint.heat == HOT
            else:
                if len(constraint.members) > 2 * constraint.count + ENDED:
                    constraint.members = present(constraint)
                constraint.demand -= demand_of(weight, activity.bound, constraint)
                if constraint.contended and not constraint.cooling and constraint.heat < HOT:
                    if constraint.demand <= constraint.capacity * (1.0 + SLACK):
                        constraint.cooling = True
                        self.cooling.append(constraint)

    def set_capacity(self, constraint: Constraint, capacity: float) -> None:
        """Change the capacity of a constraint."""
        before = constraint.capacity
        constraint.capacity = capacity
        constraint.demand = 0.0
        for member in present(constraint):
            for other, weight in zip(member.constraints, member.weights):
                if other is constraint:
                    constraint.demand += demand_of(weight, member.bound, constraint)
        if constraint.contended:
            self._touch(constraint)
        elif constraint.demand > min(before, capacity) * (1.0 + SLACK):
            self._contend(constraint)

    def set_bound(self, activity: Activity, bound: float) -> None:
        """Change the own rate limit of an activity, which may be under way."""
        if activity.system is not None:
            bundle = activity.bundle
            if bundle is None:
                left = activity.work - activity.limit * (self.queue.now - activity.begun)
            else:
                bundle.advance(self.queue.now)
                left = activity.goal - bundle.progress
            self.remove(activity)
            activity.work = left if left > 0.0 else 0.0
            activity.bound = bound
            self.add(activity)
        else:
            activity.bound = bound

    def _contend(self, constraint: Constraint) -> None:
        """From now on the constraint may limit its members: they are bundled anew."""
        constraint.contended = True
        constraint.usage = 0.0
        self._bundle_anew(constraint)

    def _bundle_anew(self, constraint: Constraint) -> None:
        """Put the members of a constraint into the bundles that now fit them."""
        now = self.queue.now
        for member in present(constraint):
            bundle = member.bundle
            if bundle is None:
                left = member.work - member.limit * (now - member.begun)
            else:
                bundle.advance(now)
                left = member.goal - bundle.progress
                self._leave(member, bundle)
            limit = member.bound
            contended = 0
            for other, weight in zip(member.constraints, member.weights):
                if other.contended:
                    contended += 1
                elif limit * weight > other.capacity:
                    limit = other.capacity / weight
            member.limit = limit
            self._join(member, left if left > 0.0 else 0.0, contended)

    def _join(self, activity: Activity, work: float, contended: int) -> None:
        bundle = self._bundle_for(activity, contended)
        bundle.advance(self.queue.now)
        activity.bundle = bundle
        activity.goal = bundle.progress + work
        self.order += 1
        activity.turn = self.order
        bundle.line_up(activity)
        bundle.count += 1
        limit = bundle.limit
        fits = bundle.rate == limit or bundle.count == 1 and limit < INFINITY
        if fits:
            for use in bundle.uses:
                constraint = use.constraint
                if constraint.dirty or (
                    constraint.usage + use.weight * limit > constraint.capacity * (1.0 + SLACK)
                ):
                    fits = False
                    break
        if not fits:
            self.fresh.append(bundle)
            for use in bundle.uses:
                self._touch(use.constraint)
            return
        bundle.rate = limit
        bundle.bottleneck = None
        for use in bundle.uses:
            use.constraint.usage += use.weight * limit
        self._schedule(bundle)

    def _bundle_for(self, activity: Activity, contended: int) -> Bundle:
        """The bundle of those like `activity`, or a new one."""
        if contended == len(activity.constraints):
            # If all its resources are contended, hardly any others are equal, except of its own
            # kind, with which it shares its very list of constraints.
            bundle = self.twins.get(id(activity.constraints))
            if (
                bundle is None
                or bundle.penalty != activity.penalty
                or bundle.limit != activity.limit
                or bundle.weights is not activity.weights
            ):
                if bundle is not None:
                    bundle.drop()
                if len(self.twins) >= TWINS:
                    for twin in self.twins.values():
                        twin.drop()
                    self.twins.clear()
                bundle = Bundle(
                    self, activity.penalty, activity.limit, activity.constraints, activity.weights
                )
                bundle.kept = True
                self.twins[id(activity.constraints)] = bundle
            if bundle.count == 0:
                for use in bundle.uses:
                    use.begin()
                bundle.updated = self.queue.now
            return bundle
        constraints: list[Constraint] = []
        weights: list[float] = []
        for constraint, weight in zip(activity.constraints, activity.weights):
            if constraint.contended:
                constraints.append(constraint)
                weights.append(weight)
        key: object = (activity.penalty, activity.limit, tuple(constraints), tuple(weights))
        found = self.bundles.get(key)
        if found is None:
            found = Bundle(self, activity.penalty, activity.limit, constraints, weights)
            found.key = key
            found.updated = self.queue.now
            self.bundles[key] = found
            for use in found.uses:
                use.begin()
        return found

    def _leave(self, activity: Activity, bundle: Bundle) -> None:
        """Take a member out of its bundle; its goal may stay behind, and is found void later."""
        activity.bundle = None
        bundle.count -= 1
        rate = bundle.rate
        empty = bundle.count == 0
        for use in bundle.uses:
            constraint = use.constraint
            if constraint.usage >= constraint.capacity * (1.0 - SLACK):
                self._touch(constraint)
            constraint.usage -= use.weight * rate
            if empty:
                use.end()
        if empty:
            bundle.sole = None
            bundle.goals = NO_GOALS
            if not bundle.kept:
                bundle.drop()
            bundle.rate = 0.0
            bundle.progress = 0.0
            if bundle.key is not None:
                del self.bundles[bundle.key]

    def _touch(self, constraint: Constraint) -> None:
        if not constraint.dirty:
            constraint.dirty = True
            self.dirty.append(constraint)

    # Bundles end their members.

    def expire(self, bundle: Bundle) -> None:
        """End the members of a bundle that have reached their goals by now."""
        now = self.queue.now
        if bundle.queued > now:
            return
        bundle.queued = INFINITY
        while bundle.count > 0:
            sole = bundle.sole
            if sole is not None:
                if bundle.end() > now:
                    break
                self.remove(sole)
                sole.finish()
                continue
            goal, _, activity = bundle.goals[0]
            if activity.bundle is not bundle or activity.goal != goal:
                heappop(bundle.goals)
                continue
            if bundle.end() > now:
                break
            heappop(bundle.goals)
            self.remove(activity)
            activity.finish()
        if bundle.count > 0:
            self._schedule(bundle)

    def _schedule(self, bundle: Bundle) -> None:
        """Schedule an event at the end of the first member.

        A later end needs no new event: the old event checks whether it is too early.
        """
        end = bundle.end()
        if end < bundle.queued:
            bundle.queued = end
            self.queue.push(end, bundle)

    # Rates are made fair.

    def share(self) -> None:
        """Make all rates fair again."""
        for constraint in self.cooling:
            constraint.cooling = False
            if constraint.contended and constraint.demand <= constraint.capacity * (1.0 + SLACK):
                constraint.contended = False
                self._bundle_anew(constraint)
        self.cooling = []
        if len(self.lonely) >= LONELY:
            for constraint in self.lonely:
                if constraint.contended and constraint.count == 1:
                    constraint.contended = False
                    constraint.exceeded = False
                    constraint.heat = 0
                    self._bundle_anew(constraint)
        now = self.queue.now
        joined = self.fresh
        for bundle in self.solve():
            bundle.advance(now)
            bundle.rate = bundle.share
            self._schedule(bundle)
        for bundle in joined:
            # The newcomer may be the first to end, though the rate stays.
            self._schedule(bundle)

    def solve(self) -> "list[Bundle]":
        """Solve the changed bundles; return the bundles whose rate must become `share`.

        At first, only the bundles of changed constraints are solved, with the capacity that the
        others leave. Then other bundles that have lost the reason for their rates are added, until
        there are none: the rates are then the fair ones.
        """
        self.stamp += 1
        bundles: list[Bundle] = []
        region: list[Constraint] = []
        for bundle in self.fresh:
            if bundle.count > 0:
                self._enter(bundle, bundles)
        for constraint in self.dirty:
            use = constraint.first
            while use is not None:
                self._enter(use.bundle, bundles)
                use = use.after
            constraint.dirty = False
        self.fresh = []
        self.dirty = []
        changed: list[Bundle] = []
        if len(bundles) == 0:
            return changed
        known = 0
        rounds = 0
        while True:
            for i in range(known, len(bundles)):
                for part in bundles[i].uses:
                    constraint = part.constraint
                    if constraint.stamp != self.stamp:
                        constraint.stamp = self.stamp
                        region.append(constraint)
            known = len(bundles)
            self._fill(bundles, region)
            changed = [bundle for bundle in bundles if bundle.moves()]
            self._challenge(changed, bundles, region)
            if len(bundles) == known:
                break
            rounds += 1
            if rounds > ROUNDS:
                self._widen(bundles, known, 1 << min(rounds - ROUNDS, 30))
        self._account(bundles, region)
        self.solved += len(bundles)
        return changed

    def _enter(self, bundle: Bundle, bundles: "list[Bundle]") -> None:
        if bundle.stamp != self.stamp:
            bundle.stamp = self.stamp
            bundles.append(bundle)

    def _fill(self, bundles: "list[Bundle]", region: "list[Constraint]") -> None:
        """Raise the common level of rate * penalty until each bundle meets its limit.

        The other bundles keep their share of the region.
        """
        for constraint in region:
            constraint.load = 0.0
            constraint.held = 0.0
            constraint.open = 0
            constraint.level = INFINITY
        lowest = INFINITY
        for bundle in bundles:
            bundle.share = -1.0
            inverse = bundle.count / bundle.penalty
            total = bundle.count * bundle.rate
            level = bundle.limit * bundle.penalty
            if level < lowest:
                lowest = level
            for use in bundle.uses:
                constraint = use.constraint
                constraint.load += use.weight * inverse
                constraint.held += use.weight * total
                constraint.open += 1
        for constraint in region:
            constraint.whole = constraint.open == constraint.uses
            constraint.remaining = constraint.capacity
            if not constraint.whole:
                constraint.remaining -= constraint.usage - constraint.held
        light = self.lowest
        light.begin(region)
        bounded: list[tuple[float, int]] = []
        upto = 0
        passes = 0
        while True:
            level = light.level()
            if lowest == INFINITY and level == INFINITY:
                break
            if lowest <= level:
                while lowest <= level and passes < PASSES:
                    passes += 1
                    lowest = self._fix_limited(bundles, lowest)
                if lowest > level:
                    continue
                if len(bounded) == 0:
                    bounded = [
                        (bundles[i].limit * bundles[i].penalty, i) for i in range(len(bundles))
                    ]
                    bounded.sort()
                while upto < len(bounded) and bounded[upto][0] <= level:
                    bundle = bundles[bounded[upto][1]]
                    if bundle.share < 0.0:
                        self._fix(bundle, bundle.limit, bounded[upto][0], None)
                    upto += 1
                lowest = bounded[upto][0] if upto < len(bounded) else INFINITY
            else:
                full = light.take(level)
                while full is not None:
                    full.level = level
                    other = full.first
                    while other is not None:
                        bundle = other.bundle
                        if bundle.stamp == self.stamp and bundle.share < 0.0:
                            self._fix(bundle, level / bundle.penalty, level, full)
                        other = other.after
                    full = light.take(level)

    def _fix_limited(self, bundles: "list[Bundle]", level: float) -> float:
        """Fix the bundles that meet their limits at a level; the lowest level of the others."""
        lowest = INFINITY
        for bundle in bundles:
            if bundle.share < 0.0:
                bound = bundle.limit * bundle.penalty
                if bound == level:
                    self._fix(bundle, bundle.limit, bound, None)
                elif bound < lowest:
                    lowest = bound
        return lowest

    def _fix(
        self, bundle: Bundle, share: float, level: float, bottleneck: Optional[Constraint]
    ) -> None:
        bundle.share = share
        bundle.bottleneck = bottleneck
        total = share * bundle.count
        inverse = bundle.count / bundle.penalty
        for use in bundle.uses:
            constraint = use.constraint
            constraint.remaining -= use.weight * total
            constraint.load -= use.weight * inverse
            constraint.open -= 1
            constraint.top = level

    def _challenge(
        self, changed: "list[Bundle]", bundles: "list[Bundle]", region: "list[Constraint]"
    ) -> None:
        """Add the bundles that cannot keep their rates beside those just solved.

        If no rate changed, and no bundle is limited, all keep the reasons of their rates.
        """
        for bundle in changed:
            for part in bundle.uses:
                part.constraint.moved = True
        for constraint in region:
            if not constraint.whole and (constraint.moved or constraint.level < INFINITY):
                slack = constraint.remaining > constraint.capacity * TIE
                use = constraint.first
                while use is not None:
                    bundle = use.bundle
                    use = use.after
                    if bundle.stamp == self.stamp:
                        continue
                    level = bundle.rate * bundle.penalty
                    if constraint.level < level * (1.0 - TIE) or (
                        bundle.bottleneck is constraint
                        and (slack or constraint.top > level * (1.0 + TIE))
                    ):
                        self._enter(bundle, bundles)
            constraint.moved = False

    def _widen(self, bundles: "list[Bundle]", known: int, steps: int) -> None:
        """Add the bundles that saturated constraints connect with the latest ones."""
        while steps > 0 and known < len(bundles):
            end = len(bundles)
            for i in range(known, end):
                for part in bundles[i].uses:
                    constraint = part.constraint
                    if constraint.usage >= constraint.capacity * (1.0 - SLACK):
                        use = constraint.first
                        while use is not None:
                            self._enter(use.bundle, bundles)
                            use = use.after
            known = end
            steps -= 1

    def _account(self, bundles: "list[Bundle]", region: "list[Constraint]") -> None:
        """Bring `usage` up to date with the shares."""
        self.lonely = []
        for constraint in region:
            if constraint.count == 1:
                self.lonely.append(constraint)
            if constraint.whole:
                constraint.usage = 0.0
            else:
                constraint.usage -= constraint.held
        for bundle in bundles:
            total = bundle.share * bundle.count
            for use in bundle.uses:
                use.constraint.usage += use.weight * total


def present(constraint: Constraint) -> "list[Activity]":
    """The members of a constraint that have not ended, in the order in which they came."""
    return [member for member in constraint.members if member.system is not None]


def demand_of(weight: float, bound: float, constraint: Constraint) -> float:
    """The largest use of a constraint by an activity; without a bound, more than its capacity."""
    if bound == INFINITY:
        return 2.0 * constraint.capacity
    return weight * bound
