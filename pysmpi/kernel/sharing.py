"""Weighted, bounded max-min fair sharing of resources, solved again only where it changed.

A `Constraint` is a resource with a capacity (bytes/s of a link, flop/s of a core). An `Activity` is
an amount of work that uses some constraints, each with a weight. The rates are max-min fair: on
every constraint sum(weight * rate) <= capacity, and each rate is either the activity's own bound,
or limited by a saturated constraint on which no other activity has a larger rate * penalty. This is
the fluid model of Casanova and Marchal that SimGrid solves under the name LMM.

Four methods make it fast for many activities:

- A constraint that cannot be saturated even if all its members run at their bounds is not
  contended, and is left out. So is a constraint with a single member, which only bounds this
  member. The lowest bound of an activity is its limit. An activity without a contended constraint
  is free: it runs at its limit, without a solution.
- A constraint is also left out if a crowded one limits all its members far below the rates that
  would saturate it, as in an incast from nodes with many ranks. It is taken in again before they
  reach these rates.
- Activities with equal penalty, limit and contended constraints always have equal rates: they form
  a `Bundle`, which is solved as one activity. A bundle records the work that each member has done
  since it began; a member ends when this work reaches its goal. A thousand messages to one host
  therefore cost as much as one.
- Only rates that change are solved again: see `kernel.solver`.
"""

from heapq import heappop
from typing import Final, Optional

from pysmpi.kernel.activities import (
    NO_GOALS,
    AbstractSystem,
    Activity,
    ActivityKind,
    Bundle,
    Constraint,
    demand_of,
    present,
)
from pysmpi.kernel.events import INFINITY, EventQueue
from pysmpi.kernel.solver import NO_REGION, SLACK, SPARE, Solver

# Bundles that are kept at first: those of pairs of hosts, and the others; `USUAL` for each slot, if
# that is more, as a message that makes its links contended needs two of the others. If more than
# one in `BUSY` has members then, the number doubles. It also doubles if as many were made again
# after they had been let go, up to `NEIGHBOURS` bundles for each slot: a large job that repeats its
# messages would otherwise make all its bundles again and again. A bundle takes some 300 bytes.
TWINS: Final = 1 << 15
USUAL: Final = 2
BUSY: Final = 8
NEIGHBOURS: Final = 8
# Those of them that one pair of hosts refers to, besides the one with all constraints.
OTHERS: Final = 8
# Busy periods with contention, nearly in a row, after which a constraint is taken to be contended
# from the start of the next. Programs repeat themselves, and a right guess saves bundling anew.
HOT: Final = 3
# Members of a constraint that may have ended before its list of members is made anew.
ENDED: Final = 8


class System(AbstractSystem):
    """The rates of a simulation of `slots` processors, and which of them must be solved again."""

    def __init__(self, queue: EventQueue, slots: int = 0) -> None:
        super().__init__(queue)
        self.bundles: dict[object, Bundle] = {}
        self.kinds: dict[int, ActivityKind] = {}  # by the id of the list of constraints
        self.kept: list[ActivityKind] = []  # those with a bundle
        self.most_kept: int = max(TWINS, USUAL * slots)
        self.most_bundles: int = self.most_kept
        # Bundles that were made again since some were let go last, and the most of them to keep.
        self.remade: int = 0
        self.remade_others: int = 0
        self.affordable: int = NEIGHBOURS * slots
        self.dirty: list[Constraint] = []
        self.fresh: list[Bundle] = []
        # Of the bundles that were joined at the present date at once with the right rate: the
        # latest one, and their number.
        self.fitting: Optional[Bundle] = None
        self.fits: int = 0
        self.fitted: float = -1.0  # this date
        self.cooling: list[Constraint] = []
        self.solver: Solver = Solver()
        self.order: int = 0

    def pending(self) -> bool:
        """Whether rates may be out of date until `share` is called."""
        return len(self.fresh) > 0 or len(self.dirty) > 0

    # Activities begin and end.

    def add(self, activity: Activity) -> None:
        """Start to give an activity its share."""
        if activity.gone:
            # It comes again: lists of members may still have its earlier entry.
            activity.gone = False
            for constraint in activity.constraints:
                if not constraint.contended and constraint.sole is None:
                    constraint.members = present(constraint)
        activity.system = self
        self.order += 1
        activity.number = self.order
        bound = activity.bound
        limit = bound
        safe = INFINITY
        contended = 0
        for constraint, weight in zip(activity.constraints, activity.weights):
            constraint.demand += demand_of(weight, bound, constraint)
            if constraint.safe < INFINITY:
                constraint.room -= weight
                if constraint.room < 0.0:
                    self._contend(constraint)
                elif constraint.safe < safe:
                    safe = constraint.safe
            elif constraint.count > 0 and (constraint.demand > constraint.capacity * (1.0 + SLACK)):
                constraint.exceeded = True
                if not constraint.contended:
                    self._contend(constraint)
            constraint.count += 1
            if constraint.contended:
                contended += 1
                continue
            if constraint.count == 1:
                constraint.sole = activity
            else:
                sole = constraint.sole
                if sole is not None:
                    constraint.sole = None
                    constraint.members = [sole, activity]
                else:
                    constraint.members.append(activity)
            if limit * weight > constraint.capacity:
                limit = constraint.capacity / weight
        activity.limit = limit
        if contended == 0 and limit < INFINITY and safe == INFINITY:
            activity.begun = self.queue.now
            self.queue.push(self.queue.now + activity.work / limit, activity)
        else:
            self._join(activity, activity.work, contended, safe)

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
                if not constraint.contended:
                    constraint.sole = None
                    if len(constraint.members) > 0:
                        constraint.members.clear()
                constraint.demand = 0.0
                constraint.usage = 0.0
                if constraint.exceeded:
                    constraint.heat = constraint.heat + 1 if constraint.heat < HOT else HOT
                else:
                    constraint.heat = constraint.heat - 2 if constraint.heat > 2 else 0
                constraint.exceeded = False
                constraint.contended = constraint.heat == HOT
                constraint.safe = INFINITY
            else:
                constraint.demand -= demand_of(weight, activity.bound, constraint)
                if not constraint.contended:
                    if constraint.safe < INFINITY:
                        constraint.room += weight
                    if len(constraint.members) > 2 * constraint.count + ENDED:
                        constraint.members = present(constraint)
                elif not constraint.cooling and constraint.heat < HOT:
                    if constraint.demand <= constraint.capacity * (1.0 + SLACK):
                        constraint.cooling = True
                        self.cooling.append(constraint)

    def set_capacity(self, constraint: Constraint, capacity: float) -> None:
        """Change the capacity of a constraint."""
        before = constraint.capacity
        constraint.capacity = capacity
        self.solver.forget()
        constraint.demand = 0.0
        for member in present(constraint):
            for other, weight in zip(member.constraints, member.weights):
                if other is constraint:
                    constraint.demand += demand_of(weight, member.bound, constraint)
        if constraint.contended:
            self._touch(constraint)
        elif constraint.safe < INFINITY or (
            constraint.demand > min(before, capacity) * (1.0 + SLACK)
        ):
            self._contend(constraint)

    def set_bound(self, activity: Activity, bound: float) -> None:
        """Change the own rate limit of an activity, which may be under way."""
        under_way = self._interrupt(activity)
        activity.bound = bound
        if under_way:
            self.add(activity)

    def set_use(
        self,
        activity: Activity,
        penalty: float,
        bound: float,
        constraints: list[Constraint],
        weights: list[float],
        kind: Optional[ActivityKind],
    ) -> None:
        """Change the resources of an activity, which may be under way, and its share of them."""
        under_way = self._interrupt(activity)
        activity.penalty = penalty
        activity.bound = bound
        activity.constraints = constraints
        activity.weights = weights
        activity.kind = kind
        if under_way:
            self.add(activity)

    def _interrupt(self, activity: Activity) -> bool:
        """Remove an activity that is under way, with the work that is left; False if it is not."""
        if activity.system is None:
            return False
        bundle = activity.bundle
        if bundle is None:
            left = activity.work - activity.limit * (self.queue.now - activity.begun)
        else:
            bundle.advance(self.queue.now)
            left = activity.goal - bundle.progress
        self.remove(activity)
        activity.work = left if left > 0.0 else 0.0
        return True

    def _contend(self, constraint: Constraint) -> None:
        """The constraint may limit its members: bundle them anew."""
        members = present(constraint)
        constraint.sole = None
        constraint.members.clear()
        constraint.contended = True
        constraint.safe = INFINITY
        constraint.usage = 0.0
        self._bundle_anew(members)

    def _relax(self, constraint: Constraint) -> None:
        """The constraint no longer limits its members: bundle them anew."""
        members = present(constraint)
        constraint.members = members
        constraint.contended = False
        self._bundle_anew(members)

    def _bundle_anew(self, members: "list[Activity]") -> None:
        """Put the members of a constraint into the bundles that now fit them."""
        now = self.queue.now
        for member in members:
            bundle = member.bundle
            if bundle is None:
                left = member.work - member.limit * (now - member.begun)
            else:
                bundle.advance(now)
                left = member.goal - bundle.progress
                self._leave(member, bundle)
            limit = member.bound
            safe = INFINITY
            contended = 0
            for other, weight in zip(member.constraints, member.weights):
                if other.contended:
                    contended += 1
                    continue
                if limit * weight > other.capacity:
                    limit = other.capacity / weight
                if other.safe < safe:
                    safe = other.safe
            member.limit = limit
            self._join(member, left if left > 0.0 else 0.0, contended, safe)

    def _join(self, activity: Activity, work: float, contended: int, safe: float) -> None:
        bundle = self._bundle_for(activity, contended)
        bundle.advance(self.queue.now)
        activity.bundle = bundle
        activity.goal = bundle.progress + work
        self.order += 1
        activity.turn = self.order
        bundle.line_up(activity)
        bundle.count += 1
        if safe < bundle.safe:
            bundle.safe = safe
        limit = bundle.limit
        fits = bundle.rate == limit or bundle.count == 1 and limit < INFINITY
        if limit > bundle.safe:
            fits = False
        if fits:
            for constraint, weight in zip(bundle.constraints, bundle.weights):
                if constraint.dirty or (
                    constraint.usage + weight * limit > constraint.capacity * (1.0 + SLACK)
                ):
                    fits = False
                    break
        if not fits:
            self.fresh.append(bundle)
            for constraint in bundle.constraints:
                self._touch(constraint)
            return
        bundle.rate = limit
        bundle.bottleneck = None
        for constraint, weight in zip(bundle.constraints, bundle.weights):
            constraint.usage += weight * limit
        if self.queue.now != self.fitted:
            self.fitted = self.queue.now
            self.fits = 0
        self.fits += 1
        self.fitting = bundle
        self._schedule(bundle)

    def _bundle_for(self, activity: Activity, contended: int) -> Bundle:
        """The bundle of those like `activity`, or a new one."""
        if contended == len(activity.constraints):
            # If all its resources are contended, hardly any others are equal, except of its kind.
            bundle = self._twins(activity)
        else:
            bundle = self._others(activity, contended)
        if bundle.count == 0:
            bundle.begin(self.queue.now)
        return bundle

    def _others(self, activity: Activity, contended: int) -> Bundle:
        """The bundle of those with some equal constraints that are contended, or a new one."""
        kind = activity.kind
        again = False
        if kind is not None:
            for other in kind.others:
                if not other.kept:
                    again = True
                elif other.system is self and other.suits(activity, contended):
                    return other
        constraints: list[Constraint] = []
        weights: list[float] = []
        for constraint, weight in zip(activity.constraints, activity.weights):
            if constraint.contended:
                constraints.append(constraint)
                weights.append(weight)
        key: object = (activity.penalty, activity.limit, tuple(constraints), tuple(weights))
        found = self.bundles.get(key)
        if found is None:
            if len(self.bundles) >= self.most_bundles:
                self._drop_others()
            if again:
                self.remade_others += 1
            found = Bundle(self, activity.penalty, activity.limit, constraints, weights)
            found.key = key
            found.kept = True
            self.bundles[key] = found
        if kind is not None:
            if len(kind.others) == 0 or len(kind.others) >= OTHERS:
                kind.others = []
            elif again:
                kind.others = [other for other in kind.others if other.kept]
            kind.others.append(found)
        return found

    def _twins(self, activity: Activity) -> Bundle:
        """The bundle of the kind of an activity, or a new one."""
        kind = activity.kind
        if kind is None:
            kind = self._kind_of(activity)
        bundle = kind.bundle
        if bundle is not None and bundle.system is not self:
            bundle = None  # it is of an earlier simulation with the same transport
        if (
            bundle is None
            or bundle.penalty != activity.penalty
            or bundle.limit != activity.limit
            or bundle.weights is not activity.weights
        ):
            if bundle is not None:
                self._drop(bundle)
            else:
                if len(self.kept) >= self.most_kept:
                    self._drop_all()
                if kind.dropped:
                    self.remade += 1
                self.kept.append(kind)
            bundle = Bundle(
                self, activity.penalty, activity.limit, activity.constraints, activity.weights
            )
            bundle.kept = True
            kind.bundle = bundle
        return bundle

    def _kind_of(self, activity: Activity) -> ActivityKind:
        """The kind of an activity that does not name one."""
        kind = self.kinds.get(id(activity.constraints))
        if kind is None:
            kind = ActivityKind()
            self.kinds[id(activity.constraints)] = kind
        return kind

    def _drop_all(self) -> None:
        """Let go of the bundles of all kinds, or allow more of them if many are needed."""
        again = self.remade if self.most_kept < self.affordable else 0
        self.remade = 0
        used = 0
        for kind in self.kept:
            bundle = kind.bundle
            if bundle is not None and bundle.count > 0:
                used += 1
        if (used + again) * BUSY > self.most_kept:
            self.most_kept *= 2
            return
        for kind in self.kept:
            bundle = kind.bundle
            kind.bundle = None
            kind.dropped = True
            if bundle is not None:
                self._drop(bundle)
        self.kept.clear()
        self.kinds.clear()

    def _drop_others(self) -> None:
        """Let go of the bundles with a key, or allow more of them if many are needed."""
        again = self.remade_others if self.most_bundles < self.affordable else 0
        self.remade_others = 0
        used: dict[object, Bundle] = {}
        for key, bundle in self.bundles.items():
            if bundle.count > 0:
                used[key] = bundle
        if (len(used) + again) * BUSY > self.most_bundles:
            self.most_bundles *= 2
            return
        for bundle in self.bundles.values():
            self._drop(bundle)
        self.bundles = used

    def _drop(self, bundle: Bundle) -> None:
        """Let go of a bundle as soon as it has no members."""
        bundle.kept = False
        if bundle.count == 0:
            bundle.leave_lists()

    def _leave(self, activity: Activity, bundle: Bundle) -> None:
        """Take a member out of its bundle; its goal may stay behind, and is found void later."""
        activity.bundle = None
        bundle.count -= 1
        rate = bundle.rate
        empty = bundle.count == 0
        for constraint, weight in zip(bundle.constraints, bundle.weights):
            if constraint.usage >= constraint.capacity * (1.0 - SLACK):
                self._touch(constraint)
            constraint.usage -= weight * rate
            if empty:
                constraint.uses -= 1
        if empty:
            bundle.sole = None
            bundle.goals = NO_GOALS
            bundle.rate = 0.0
            bundle.progress = 0.0
            bundle.bottleneck = None
            if not bundle.kept and bundle.key is not None:
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
            _, turn, activity = bundle.goals[0]
            if activity.bundle is not bundle or activity.turn != turn:
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
        if len(self.cooling) > 0:
            for constraint in self.cooling:
                constraint.cooling = False
                if constraint.contended and (
                    constraint.demand <= constraint.capacity * (1.0 + SLACK)
                ):
                    self._relax(constraint)
            self.cooling = []
        if len(self.solver.slight) > 0:
            self._leave_out_slight()
        while self.pending():
            self._share()

    def _share(self) -> None:
        """Make rates fair, but for those that saturate a constraint that was left out."""
        now = self.queue.now
        if self._repeat():
            return
        joined = self.fresh
        unsafe: list[Bundle] = []
        for bundle in self.solve():
            bundle.advance(now)
            bundle.rate = bundle.share
            if bundle.rate > bundle.safe:
                unsafe.append(bundle)
            self._schedule(bundle)
        for bundle in joined:
            # The newcomer may be the first to end, though the rate stays.
            if bundle.rate > bundle.safe:
                unsafe.append(bundle)
            self._schedule(bundle)
        for bundle in unsafe:
            if bundle.count > 0 and bundle.rate > bundle.safe:
                self._take_in(bundle)

    def _repeat(self) -> bool:
        """Give the bundles that were joined just now the rates of their solution before, if any."""
        fits = self.fits if self.fitted == self.queue.now else 0
        self.fits = 0
        if fits > 1 or len(self.fresh) == 0:
            return False
        fitting = self.fitting if fits == 1 else None
        bundles = self.solver.repeated(self.fresh, fitting, self.dirty)
        if len(bundles) == 0:
            return False
        now = self.queue.now
        self.fresh = []
        self.dirty = []
        for bundle in bundles:
            bundle.advance(now)
            bundle.rate = bundle.share = bundle.known_share
            bundle.bottleneck = bundle.known_bottleneck
            self._schedule(bundle)
        return True

    def _leave_out_slight(self) -> None:
        """Leave out the slight constraints, if solving their bundles has taken as long as this."""
        solver = self.solver
        slight = solver.slight
        members = 0
        for constraint in slight:
            members += constraint.count
        if solver.spent >= members:
            solver.spent = 0
            for constraint in slight:
                if constraint.contended and constraint.usage * SPARE <= constraint.capacity:
                    self._leave_out(constraint)
        solver.slight = NO_REGION

    def _leave_out(self, constraint: Constraint) -> None:
        """Leave out a constraint that is far from being saturated: another limits its members."""
        constraint.exceeded = False
        constraint.heat = 0
        if constraint.count > 1:
            total = 0.0
            for bundle in constraint.bundles:
                total += bundle.weights[bundle.place_of(constraint)] * bundle.count
            constraint.room = total
            constraint.safe = constraint.capacity / (2.0 * total)
        self._relax(constraint)

    def _take_in(self, bundle: Bundle) -> None:
        """The rate of a bundle is no longer safe: take in constraints of it that were left out.

        Those that twice the rate would not saturate stay left out, so a bundle that keeps them is
        looked at again only after its rate has doubled.
        """
        least = 2.0 * bundle.rate
        safe = INFINITY
        found: list[Constraint] = []
        for member in bundle.members():
            for constraint in member.constraints:
                if constraint.safe < least and not stays_out(constraint, least):
                    found.append(constraint)
                elif constraint.safe < safe:
                    safe = constraint.safe
        bundle.safe = safe
        for constraint in found:
            if not constraint.contended:
                self._contend(constraint)

    def solve(self) -> "list[Bundle]":
        """Solve the changed bundles; return the bundles whose rate must become `share`."""
        fresh = self.fresh
        dirty = self.dirty
        self.fresh = []
        self.dirty = []
        return self.solver.solve(fresh, dirty)


def stays_out(constraint: Constraint, rate: float) -> bool:
    """Whether a constraint that is left out is not saturated if its members have a rate.

    If so, the rate up to which it is safe is brought up to date.
    """
    if constraint.count == 1:
        constraint.safe = INFINITY
        return True
    total = constraint.capacity / constraint.safe - constraint.room
    if constraint.capacity < 2.0 * total * rate:
        return False
    constraint.room = total
    constraint.safe = constraint.capacity / (2.0 * total)
    return True
