"""Activities share constraints; activities that always have equal rates form a bundle.

A `Constraint` is a resource with a capacity (bytes/s of a link, flop/s of a core). An `Activity` is
an amount of work that uses some constraints, each with a weight. `kernel.sharing` computes the
rates.
"""

from heapq import heappush
from typing import Final, Optional

from pysmpi.kernel.events import INFINITY, Event, EventQueue

# The bundles of a constraint, or of a kind, that has never had any.
NO_BUNDLES: Final["list[Bundle]"] = []
# The members of a constraint that has never had two at the same time.
NO_MEMBERS: Final["list[Activity]"] = []
# The goals of a bundle with one member.
NO_GOALS: Final["list[tuple[float, int, Activity]]"] = []
# Bundles without members that may stay in the list of a constraint, besides a quarter of the rest.
# Without them, messages change these lists: 20 % more instructions in a ring, 10 % in NAS CG.
EMPTY: Final = 8


class Constraint:
    """A shared resource. `capacity` is in units of work a second."""

    def __init__(self, capacity: float, name: str = "") -> None:
        # The order of the attributes is their order in memory. Each message reads the first ones,
        # which fill two lines of a processor's cache.
        self.capacity: float = capacity
        self.demand: float = 0.0  # sum of weight * bound over the members
        self.usage: float = 0.0  # if contended: sum of weight * rate over the members
        # If it is left out although its members could saturate it: the rate up to which they do
        # not, even with further members whose weights have a sum of at most `spare_weight`.
        self.safe_rate: float = INFINITY
        self.count: int = 0  # number of members
        self.contended: bool = False  # whether it takes part in solutions
        self.exceeded: bool = False  # whether demand was above capacity since it was last idle
        self.relaxable: bool = False  # whether it is in the list of those that may cease to contend
        self.dirty: bool = False  # whether the rates of its bundles are out of date
        # Scratch of one solution: whether it solves all bundles, and whether a rate has changed.
        self.whole: bool = False
        self.moved: bool = False
        # The bundles that use it while it is contended. A bundle without members may stay in the
        # list: the next message of the same pair of hosts then finds it there.
        self.bundles: list[Bundle] = NO_BUNDLES
        self.uses: int = 0  # number of these bundles with members
        self.solution: int = 0  # number of the remembered solution of these bundles, if any
        self.remembered_usage: float = 0.0  # usage in this solution
        # The latest busy periods, nearly in a row, in which demand exceeded the capacity, up to
        # `HABIT`: then it is contended from the start of the next period.
        self.habit: int = 0
        # While it is not contended: the member, if there was only one since it was idle, as on most
        # links of a large machine; else a list of the members, in the order in which they came, in
        # which members that have ended may stay. `members_of` is right for all states.
        self.sole: Optional[Activity] = None
        self.members: list[Activity] = NO_MEMBERS
        self.spare_weight: float = 0.0
        # More scratch of one solution.
        self.held: float = 0.0  # sum of weight * rate, before the solution, of bundles in it
        self.stamp: int = 0  # number of the latest solution
        self.remaining: float = 0.0  # capacity that bundles with a share leave
        self.load: float = 0.0  # sum of weight / penalty over the members of the open bundles
        self.open: int = 0  # number of bundles without a share
        self.level: float = 0.0  # rate * penalty of the bundles that it limits
        self.top: float = 0.0  # the largest rate * penalty of the bundles of the solution
        self.ratio: float = 0.0  # the level at which it is saturated, as of its place in a heap
        self.index: int = 0  # in the region: the order of constraints with equal ratios
        self.name: str = name

    def tidy(self) -> None:
        """Remove the bundles without members from the list if they are too many."""
        if 4 * len(self.bundles) > 5 * self.uses + 4 * EMPTY:
            self.drop_empty()

    def drop_empty(self) -> None:
        """Remove all bundles without members from the list."""
        used: list[Bundle] = []
        for bundle in self.bundles:
            if bundle.count > 0:
                used.append(bundle)
            else:
                bundle.unlisted |= 1 << bundle.index_of(self)
        self.bundles = used


class AbstractSystem:
    """The part of `kernel.sharing.System` that activities and bundles use."""

    def __init__(self, queue: EventQueue) -> None:
        self.queue: EventQueue = queue

    def remove(self, activity: "Activity") -> None:
        """Remove an activity and release its resources."""
        raise RuntimeError("a system must let activities end")

    def expire(self, bundle: "Bundle") -> None:
        """End the members of a bundle that have reached their goals by now."""
        raise RuntimeError("a system must end the members of bundles")


class ActivityKind:
    """The activities of one kind use the very same lists of constraints and weights.

    The kind refers to their bundles. A bundle stays when its last member leaves, for the next
    message of the same pair of hosts.
    """

    def __init__(self) -> None:
        self.bundle: Optional[Bundle] = None  # if all constraints are contended
        self.others: list[Bundle] = NO_BUNDLES  # if only some of them are
        self.dropped: bool = False  # whether the cache has dropped a bundle of the kind


class Activity(Event):
    """An amount of work that consumes constraints at a common rate.

    `penalty` is the inverse of its priority (for a flow: its round-trip weight), `bound` its own
    rate limit. `weights[i]` is the use of `constraints[i]` for one unit of rate. A subclass defines
    `finish`, which is called at the end. Activities with the very same list of constraints are of
    one kind even without a `kind`; the search for it takes longer.
    """

    def __init__(
        self,
        work: float,
        penalty: float,
        bound: float,
        constraints: "list[Constraint]",
        weights: "list[float]",
        kind: Optional[ActivityKind] = None,
    ) -> None:
        self.work: float = work
        self.penalty: float = penalty
        self.bound: float = bound
        self.limit: float = bound  # the rate without contention
        self.constraints: list[Constraint] = constraints
        self.weights: list[float] = weights
        self.kind: Optional[ActivityKind] = kind
        self.system: Optional[AbstractSystem] = None
        self.removed: bool = False  # whether it has been added and removed before
        self.number: int = 0  # order of addition, over the whole simulation
        self.free_since: float = 0.0  # time (s) since which it runs without contention
        self.bundle: Optional[Bundle] = None
        self.goal: float = 0.0  # the progress of its bundle at which it ends
        self.turn: int = 0  # order of joining the bundle, in the same count

    def finish(self) -> None:
        """The work is done, and the resources are released."""

    def fire(self) -> None:
        """End a free activity; if it has joined a bundle, it ends with the bundle."""
        system = self.system
        if system is not None and self.bundle is None:
            if self.free_since + self.work / self.limit > system.queue.now:
                return  # its bound has been lowered, so a later event ends it
            system.remove(self)
            self.finish()


class Bundle(Event):
    """Activities with equal rates; as event, the end of the first of them."""

    def __init__(
        self,
        system: AbstractSystem,
        penalty: float,
        limit: float,
        constraints: "list[Constraint]",
        weights: "list[float]",
    ) -> None:
        # Each message reads the first attributes.
        self.count: int = 0
        self.stamp: int = 0  # number of the latest solution
        self.rate: float = 0.0
        self.constraints: list[Constraint] = constraints
        self.weights: list[float] = weights
        self.limit: float = limit
        self.penalty: float = penalty
        # Bit i is set if the bundle is not in the list of constraint i.
        self.unlisted: int = (1 << len(constraints)) - 1
        # The member, if it has had only one since it was empty; else a heap of the members.
        self.sole: Optional[Activity] = None
        self.goals: list[tuple[float, int, Activity]] = NO_GOALS
        self.progress: float = 0.0  # work of a member since the bundle began, at `updated`
        self.updated: float = 0.0  # time (s)
        self.queued: float = INFINITY  # time (s) of its event in the queue
        self.bottleneck: Optional[Constraint] = None  # the constraint that limits its rate, if any
        # The rate up to which its members saturate no constraint that is left out.
        self.safe_rate: float = INFINITY
        self.cached: bool = False  # whether it stays, without members, for the next activity
        self.share: float = -1.0  # the rate in the present solution; negative while open
        # The latest solution of `Memo` with this bundle: its number, the members that the bundle
        # had, its share and bottleneck; the bundles, the constraints, and the uses of constraints
        # by bundles in the whole solution.
        self.solution: int = 0
        self.remembered_count: int = 0
        self.remembered_share: float = 0.0
        self.remembered_bottleneck: Optional[Constraint] = None
        self.solution_bundles: int = 0
        self.solution_constraints: int = 0
        self.solution_uses: int = 0
        self.system: AbstractSystem = system
        self.key: object = None

    def begin(self, now: float) -> None:
        """The first member joins at the time `now` (s)."""
        if self.unlisted != 0:
            self._enter_lists()
        for constraint in self.constraints:
            constraint.uses += 1
        self.updated = now
        self.safe_rate = INFINITY

    def _enter_lists(self) -> None:
        """Add the bundle to the lists of its constraints that lack it."""
        for i, constraint in enumerate(self.constraints):
            if self.unlisted >> i & 1:
                bundles = constraint.bundles
                if len(bundles) == 0:
                    constraint.bundles = [self]
                else:
                    constraint.tidy()
                    constraint.bundles.append(self)
        self.unlisted = 0

    def leave_lists(self) -> None:
        """Remove the bundle from the lists of its constraints: it gets no more members."""
        for i, constraint in enumerate(self.constraints):
            if not self.unlisted >> i & 1:
                constraint.drop_empty()

    def index_of(self, constraint: Constraint) -> int:
        """The index of `constraint` in `self.constraints`."""
        i = 0
        while self.constraints[i] is not constraint:
            i += 1
        return i

    def members(self) -> "list[Activity]":
        """The members: the goals whose activities have not left."""
        sole = self.sole
        if sole is not None:
            return [sole]
        members: list[Activity] = []
        for _, turn, activity in self.goals:
            if activity.bundle is self and activity.turn == turn:
                members.append(activity)
        return members

    def suits(self, activity: Activity, contended: int) -> bool:
        """Whether an activity of its kind, with `contended` contended constraints, may join.

        Activities of one kind have the same weights.
        """
        constraints = self.constraints
        if (
            len(constraints) != contended
            or activity.limit != self.limit
            or activity.penalty != self.penalty
        ):
            return False
        i = 0
        for constraint in activity.constraints:
            if constraint.contended:
                if constraints[i] is not constraint:
                    return False
                i += 1
        return True

    def advance(self, now: float) -> None:
        """Bring the progress up to the time `now` (s)."""
        self.progress += self.rate * (now - self.updated)
        self.updated = now

    def repeats(self, solution: int) -> bool:
        """Whether a remembered solution holds for its members, and changes their rate safely."""
        difference = self.remembered_share - self.rate
        return (
            self.solution == solution
            and self.remembered_count == self.count
            and self.remembered_share <= self.safe_rate
            and (difference > 1e-12 * self.rate or difference < -1e-12 * self.rate)
        )

    def changes_rate(self) -> bool:
        """Whether the share changes the rate; if it does not, the share becomes the exact rate."""
        difference = self.share - self.rate
        if difference > 1e-12 * self.rate or difference < -1e-12 * self.rate:
            return True
        self.share = self.rate
        return False

    def add_goal(self, activity: Activity) -> None:
        """Add the goal of another member."""
        if self.count == 0:
            self.sole = activity
            return
        sole = self.sole
        if sole is not None:
            self.sole = None
            self.goals = [(sole.goal, sole.turn, sole)]
        heappush(self.goals, (activity.goal, activity.turn, activity))

    def end(self) -> float:
        """The time (s) at which the first member ends at the present rate."""
        if self.count == 0 or self.rate <= 0.0:
            return INFINITY
        sole = self.sole
        work = (self.goals[0][0] if sole is None else sole.goal) - self.progress
        return self.updated + (work / self.rate if work > 0.0 else 0.0)

    def fire(self) -> None:
        """End the members that have reached their goals."""
        self.system.expire(self)


def members_of(constraint: Constraint) -> "list[Activity]":
    """The members of a constraint, in the order in which they came."""
    if not constraint.contended:
        sole = constraint.sole
        if sole is not None:
            return [sole]
        return [member for member in constraint.members if member.system is not None]
    members: list[Activity] = []
    for bundle in constraint.bundles:
        if bundle.count > 0:
            members.extend(bundle.members())
    members.sort(key=lambda member: member.number)
    return members


def demand_of(weight: float, bound: float, constraint: Constraint) -> float:
    """The largest use of a constraint by an activity: without a bound, twice the capacity."""
    if bound == INFINITY:
        return 2.0 * constraint.capacity
    return weight * bound
