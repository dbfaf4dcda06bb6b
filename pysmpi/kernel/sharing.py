"""Weighted, bounded max-min fair sharing of resources, solved again only where it changed.

A `Constraint` is a resource with a capacity (bytes/s of a link, flop/s of a core). An `Activity` is
an amount of work that uses some constraints, each with a weight. The rates are max-min fair: on
every constraint sum(weight * rate) <= capacity, and each rate is either the activity's own bound,
or limited by a saturated constraint on which no other activity has a larger rate * penalty. This is
the fluid model of Casanova and Marchal that SimGrid solves under the name LMM.

These methods make it fast for many activities:

- A constraint that cannot be saturated even if all its members run at their bounds is not
  contended, and takes no part in solutions. Nor does a constraint with a single member, which only
  bounds this member. The lowest bound of an activity is its limit. An activity without a contended
  constraint is free: it runs at its limit, without a solution.
- A constraint is also left out if a crowded one limits all its members far below the rates that
  would saturate it: see `kernel.left_out`.
- Activities with equal penalty, limit and contended constraints always have equal rates: they form
  a `Bundle`, which is solved as one activity. A bundle records the work that each member has done
  since it began; a member ends when this work reaches its goal. A thousand messages to one host
  therefore cost as much as one. `kernel.bundle_cache` holds the bundles.
- Only rates that change are solved again: see `kernel.solver`. `kernel.memo` remembers solutions.
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
    members_of,
)
from pysmpi.kernel.bundle_cache import BundleCache
from pysmpi.kernel.events import INFINITY, EventQueue
from pysmpi.kernel.left_out import LeftOut, is_spare, set_safe_rate, unsafe_constraints
from pysmpi.kernel.memo import Memo
from pysmpi.kernel.solver import SLACK, Solver

# Busy periods with contention, nearly in a row, after which a constraint is contended from the
# start of the next period. Programs repeat themselves, and the guess saves bundling the members
# anew: 89 % of the instructions of a pairwise alltoall, 67 % of NAS CG, 26 % of a ring. After one
# period instead of three, these programs take 3 to 8 % less, but rounding changes times by a part
# in 10**16.
HABIT: Final = 3


class System(AbstractSystem):
    """The rates of a simulation of `slots` processors, and which of them must be solved again."""

    def __init__(self, queue: EventQueue, slots: int = 0) -> None:
        super().__init__(queue)
        self.cache: BundleCache = BundleCache(self, slots)
        self.left_out: LeftOut = LeftOut()
        self.memo: Memo = Memo()
        self.solver: Solver = Solver(self.memo, self.left_out)
        self.dirty: list[Constraint] = []  # the usage of these has changed
        self.fresh: list[Bundle] = []  # the members of these have changed
        # The latest bundle whose rate was right as soon as an activity joined it, the number of
        # such bundles at the same time, and this time (s).
        self.fitting: Optional[Bundle] = None
        self.fits: int = 0
        self.fit_time: float = -1.0
        self.relaxable: list[Constraint] = []  # may have ceased to be contended
        self.order: int = 0  # number of the latest addition of an activity, or joining of a bundle

    def pending(self) -> bool:
        """Whether rates may be out of date until `share` is called."""
        return len(self.fresh) > 0 or len(self.dirty) > 0

    # Activities begin and end.

    def add(self, activity: Activity) -> None:
        """Start to give an activity its share."""
        if activity.removed:
            # It comes again: lists of members may still have its earlier entry.
            activity.removed = False
            for constraint in activity.constraints:
                if not constraint.contended and constraint.sole is None:
                    constraint.members = members_of(constraint)
        activity.system = self
        self.order += 1
        activity.number = self.order
        bound = activity.bound
        limit = bound
        safe_rate = INFINITY
        contended = 0
        for constraint, weight in zip(activity.constraints, activity.weights):
            constraint.demand += demand_of(weight, bound, constraint)
            if constraint.safe_rate < INFINITY:
                constraint.spare_weight -= weight
                if constraint.spare_weight < 0.0:
                    self._contend(constraint)
                elif constraint.safe_rate < safe_rate:
                    safe_rate = constraint.safe_rate
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
        if contended == 0 and limit < INFINITY and safe_rate == INFINITY:
            activity.free_since = self.queue.now
            self.queue.push(self.queue.now + activity.work / limit, activity)
        else:
            self._join(activity, activity.work, contended, safe_rate)

    def remove(self, activity: Activity) -> None:
        """Remove an activity and release its resources."""
        bundle = activity.bundle
        if bundle is not None:
            self._leave(activity, bundle)
        activity.system = None
        activity.removed = True
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
                    constraint.habit = constraint.habit + 1 if constraint.habit < HABIT else HABIT
                else:
                    constraint.habit = constraint.habit - 2 if constraint.habit > 2 else 0
                constraint.exceeded = False
                constraint.contended = constraint.habit == HABIT
                constraint.safe_rate = INFINITY
            else:
                constraint.demand -= demand_of(weight, activity.bound, constraint)
                if not constraint.contended:
                    if constraint.safe_rate < INFINITY:
                        constraint.spare_weight += weight
                    if len(constraint.members) > 2 * constraint.count:
                        constraint.members = members_of(constraint)  # without those that have ended
                elif not constraint.relaxable and constraint.habit < HABIT:
                    if constraint.demand <= constraint.capacity * (1.0 + SLACK):
                        constraint.relaxable = True
                        self.relaxable.append(constraint)

    def set_capacity(self, constraint: Constraint, capacity: float) -> None:
        """Change the capacity of a constraint."""
        before = constraint.capacity
        constraint.capacity = capacity
        self.memo.forget()
        constraint.demand = 0.0
        for member in members_of(constraint):
            for used, weight in zip(member.constraints, member.weights):
                if used is constraint:
                    constraint.demand += demand_of(weight, member.bound, constraint)
        if constraint.contended:
            self._touch(constraint)
        elif constraint.safe_rate < INFINITY or (
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
            work = activity.work - activity.limit * (self.queue.now - activity.free_since)
        else:
            bundle.advance(self.queue.now)
            work = activity.goal - bundle.progress
        self.remove(activity)
        activity.work = work if work > 0.0 else 0.0
        return True

    def _contend(self, constraint: Constraint) -> None:
        """The constraint may limit its members: bundle them anew."""
        members = members_of(constraint)
        constraint.sole = None
        constraint.members.clear()
        constraint.contended = True
        constraint.safe_rate = INFINITY
        constraint.usage = 0.0
        self._bundle_anew(members)

    def _relax(self, constraint: Constraint) -> None:
        """The constraint no longer limits its members: bundle them anew."""
        members = members_of(constraint)
        constraint.members = members
        constraint.contended = False
        self._bundle_anew(members)

    def _bundle_anew(self, members: "list[Activity]") -> None:
        """Put the members of a constraint into the bundles that now fit them."""
        now = self.queue.now
        for member in members:
            bundle = member.bundle
            if bundle is None:
                work = member.work - member.limit * (now - member.free_since)
            else:
                bundle.advance(now)
                work = member.goal - bundle.progress
                self._leave(member, bundle)
            limit = member.bound
            safe_rate = INFINITY
            contended = 0
            for constraint, weight in zip(member.constraints, member.weights):
                if constraint.contended:
                    contended += 1
                    continue
                if limit * weight > constraint.capacity:
                    limit = constraint.capacity / weight
                if constraint.safe_rate < safe_rate:
                    safe_rate = constraint.safe_rate
            member.limit = limit
            self._join(member, work if work > 0.0 else 0.0, contended, safe_rate)

    # Bundles and their members.

    def _join(self, activity: Activity, work: float, contended: int, safe_rate: float) -> None:
        """Put an activity into its bundle; if the limit is its fair rate, nothing is solved."""
        bundle = self.cache.bundle_for(activity, contended)
        bundle.advance(self.queue.now)
        activity.bundle = bundle
        activity.goal = bundle.progress + work
        self.order += 1
        activity.turn = self.order
        bundle.add_goal(activity)
        bundle.count += 1
        if safe_rate < bundle.safe_rate:
            bundle.safe_rate = safe_rate
        limit = bundle.limit
        fits = bundle.rate == limit or bundle.count == 1 and limit < INFINITY
        if limit > bundle.safe_rate:
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
        if self.queue.now != self.fit_time:
            self.fit_time = self.queue.now
            self.fits = 0
        self.fits += 1
        self.fitting = bundle
        self._schedule(bundle)

    def _leave(self, activity: Activity, bundle: Bundle) -> None:
        """Take a member out of its bundle; its goal may stay, and is skipped when it is due."""
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
            if not bundle.cached:
                self.cache.forget(bundle)

    def _touch(self, constraint: Constraint) -> None:
        """The rates on a constraint are out of date."""
        if not constraint.dirty:
            constraint.dirty = True
            self.dirty.append(constraint)

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
        if len(self.relaxable) > 0:
            for constraint in self.relaxable:
                constraint.relaxable = False
                if constraint.contended and (
                    constraint.demand <= constraint.capacity * (1.0 + SLACK)
                ):
                    self._relax(constraint)
            self.relaxable = []
        if len(self.left_out.candidates) > 0:
            for constraint in self.left_out.due():
                if constraint.contended and is_spare(constraint):
                    set_safe_rate(constraint)
                    self._relax(constraint)
        while self.pending():
            self._share()

    def _share(self) -> None:
        """Make rates fair, except those that saturate a constraint that was left out."""
        now = self.queue.now
        if self._repeat():
            return
        joined = self.fresh
        unsafe: list[Bundle] = []
        for bundle in self.solve():
            bundle.advance(now)
            bundle.rate = bundle.share
            if bundle.rate > bundle.safe_rate:
                unsafe.append(bundle)
            self._schedule(bundle)
        for bundle in joined:
            # A new member may be the first to end, though the rate stays.
            if bundle.rate > bundle.safe_rate:
                unsafe.append(bundle)
            self._schedule(bundle)
        for bundle in unsafe:
            if bundle.count > 0 and bundle.rate > bundle.safe_rate:
                for constraint in unsafe_constraints(bundle):
                    if not constraint.contended:
                        self._contend(constraint)

    def _repeat(self) -> bool:
        """Give the bundles that were joined just now the rates of the memo; False if it cannot."""
        fits = self.fits if self.fit_time == self.queue.now else 0
        self.fits = 0
        if fits > 1 or len(self.fresh) == 0:
            return False
        fitting = self.fitting if fits == 1 else None
        bundles = self.memo.repeated(self.fresh, fitting, self.dirty, self.solver.new_stamp())
        if len(bundles) == 0:
            return False
        self.left_out.clear()
        now = self.queue.now
        self.fresh = []
        self.dirty = []
        for bundle in bundles:
            bundle.advance(now)
            bundle.rate = bundle.share = bundle.remembered_share
            bundle.bottleneck = bundle.remembered_bottleneck
            self._schedule(bundle)
        return True

    def solve(self) -> "list[Bundle]":
        """Solve the changed bundles; return the bundles whose rate must become `share`."""
        fresh = self.fresh
        dirty = self.dirty
        self.fresh = []
        self.dirty = []
        return self.solver.solve(fresh, dirty)
