"""Activities share constraints; those that always have equal rates form a bundle.

A `Constraint` is a resource with a capacity (bytes/s of a link, flop/s of a core). An `Activity` is
an amount of work that uses some constraints, each with a weight. `kernel.sharing` gives them their
rates.
"""

from heapq import heappush
from typing import Final, Optional

from pysmpi.kernel.events import INFINITY, Event, EventQueue

# The bundles of a constraint, or of a kind, that never had any.
NO_BUNDLES: Final["list[Bundle]"] = []
# The members of a constraint that never had two at the same time.
NO_MEMBERS: Final["list[Activity]"] = []
# The goals of a bundle with one member.
NO_GOALS: Final["list[tuple[float, int, Activity]]"] = []
# Bundles without members that stay in the list of a constraint, besides a quarter of the others.
EMPTY: Final = 8


class Constraint:
    """A shared resource. `capacity` is in units of work a second."""

    def __init__(self, capacity: float, name: str = "") -> None:
        # The order of the attributes is that in memory. Each message reads the first ones, which
        # are in two lines of a cache.
        self.capacity: float = capacity
        self.demand: float = 0.0  # sum of weight * bound over the members
        self.usage: float = 0.0  # sum of weight * rate over their members
        # If it is left out although its members could saturate it: the rate up to which they do
        # not, also if more members come, whose weights have a sum of at most `room`.
        self.safe: float = INFINITY
        self.count: int = 0  # of the members that have not ended
        self.contended: bool = False
        self.exceeded: bool = False  # whether demand was above capacity since it was last idle
        self.cooling: bool = False  # whether it may have ceased to be contended
        self.dirty: bool = False
        # Scratch of one solution: whether all its bundles are being solved, or a rate has changed.
        self.whole: bool = False
        self.moved: bool = False
        # The bundles that use it, once contended. Those without members may stay for their next
        # ones, so a message of the same pair of hosts does not change the list.
        self.bundles: list[Bundle] = NO_BUNDLES
        self.uses: int = 0  # of them with members
        self.solution: int = 0  # the latest remembered solution of them, and its usage
        self.known_usage: float = 0.0
        self.heat: int = 0  # how often `exceeded` was true recently, up to HOT
        # While it is not contended: the one that uses it, if there was no other since it was idle,
        # as on most links of a large machine; else those that use it, in the order in which they
        # came; some of the list may have ended. `present` finds them always.
        self.sole: Optional[Activity] = None
        self.members: list[Activity] = NO_MEMBERS
        self.room: float = 0.0
        # More scratch of one solution.
        self.held: float = 0.0  # earlier rates of the bundles
        self.stamp: int = 0
        self.remaining: float = 0.0
        self.load: float = 0.0
        self.open: int = 0
        self.level: float = 0.0  # rate * penalty of those that it limits
        self.top: float = 0.0  # the largest rate * penalty of those that were solved
        self.ratio: float = 0.0  # the level at which it is saturated, as a heap knows it
        self.place: int = 0  # in the region, among those with equal ratios
        self.name: str = name

    def tidy(self) -> None:
        """Take the bundles without members out of the list if they are too many."""
        if 4 * len(self.bundles) > 5 * self.uses + 4 * EMPTY:
            self.clear_out()

    def clear_out(self) -> None:
        """Take all bundles without members out of the list."""
        kept: list[Bundle] = []
        for bundle in self.bundles:
            if bundle.count > 0:
                kept.append(bundle)
            else:
                bundle.unlisted |= 1 << bundle.place_of(self)
        self.bundles = kept


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

    Their bundles are kept here: they stay when their last member leaves, for the next message of
    the same pair of hosts.
    """

    def __init__(self) -> None:
        self.bundle: Optional[Bundle] = None  # if all constraints are contended
        self.others: list[Bundle] = NO_BUNDLES  # if only some of them are
        self.dropped: bool = False  # whether `bundle` was once let go


class Activity(Event):
    """An amount of work that consumes constraints at a common rate.

    `penalty` is the inverse of its priority (for a flow: its round-trip weight), `bound` its own
    rate limit. `weights[i]` is the use of `constraints[i]` for one unit of rate. A subclass defines
    `finish`, which is called at the end. Without a `kind`, activities with the very same lists are
    of one kind, too; it takes longer to find this.
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
        self.limit: float = bound  # the rate that it has without contention
        self.constraints: list[Constraint] = constraints
        self.weights: list[float] = weights
        self.kind: Optional[ActivityKind] = kind
        self.system: Optional[AbstractSystem] = None
        self.gone: bool = False  # after it has been removed
        self.number: int = 0  # of being added, over the whole simulation
        self.begun: float = 0.0  # date (s) since when it is free
        self.bundle: Optional[Bundle] = None
        self.goal: float = 0.0  # the progress of its bundle at which it ends
        self.turn: int = 0  # of joining it, in the same count

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


class Bundle(Event):
    """Activities with equal shares; as event, the end of the first of them."""

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
        self.stamp: int = 0  # of the latest solution
        self.rate: float = 0.0
        self.constraints: list[Constraint] = constraints
        self.weights: list[float] = weights
        self.limit: float = limit
        self.penalty: float = penalty
        # Bit i is set if the bundle is not in the list of constraint i.
        self.unlisted: int = (1 << len(constraints)) - 1
        # The member, if it has never had another since it was empty; else a heap of its members.
        self.sole: Optional[Activity] = None
        self.goals: list[tuple[float, int, Activity]] = NO_GOALS
        self.progress: float = 0.0  # work of each member since the bundle began, at `updated`
        self.updated: float = 0.0  # date (s)
        self.queued: float = INFINITY  # date (s) of the event in the queue
        self.bottleneck: Optional[Constraint] = None  # the shared limit of the rate, if any
        # The rate up to which its members saturate no constraint that is left out.
        self.safe: float = INFINITY
        self.kept: bool = False  # without members, for the next activity of its kind
        self.share: float = -1.0  # the rate being solved; negative while open
        # Its latest solution among bundles with which no others share constraints: the number of
        # this solution, the members of this one, and the numbers of bundles, of constraints, and of
        # constraints of each bundle.
        self.solution: int = 0
        self.crowd: int = 0
        self.known_share: float = 0.0
        self.known_bottleneck: Optional[Constraint] = None
        self.size: int = 0
        self.area: int = 0
        self.links: int = 0
        self.system: AbstractSystem = system
        self.key: object = None

    def begin(self, now: float) -> None:
        """Be used again: the first member joins at a date (s)."""
        if self.unlisted != 0:
            self._enter_lists()
        for constraint in self.constraints:
            constraint.uses += 1
        self.updated = now
        self.safe = INFINITY

    def _enter_lists(self) -> None:
        """Enter the lists of constraints in which it is missing."""
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
        """Leave the lists of constraints: it has no members, and gets none any more."""
        for i, constraint in enumerate(self.constraints):
            if not self.unlisted >> i & 1:
                constraint.clear_out()

    def place_of(self, constraint: Constraint) -> int:
        """The place of a constraint of it among its constraints."""
        i = 0
        while self.constraints[i] is not constraint:
            i += 1
        return i

    def members(self) -> "list[Activity]":
        """The members; goals of those that have left may stay behind."""
        sole = self.sole
        if sole is not None:
            return [sole]
        found: list[Activity] = []
        for _, turn, activity in self.goals:
            if activity.bundle is self and activity.turn == turn:
                found.append(activity)
        return found

    def suits(self, activity: Activity, contended: int) -> bool:
        """Whether an activity of its kind, with so many contended constraints, is like its members.

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
        """Bring the progress up to a date (s)."""
        self.progress += self.rate * (now - self.updated)
        self.updated = now

    def recurs(self, solution: int) -> bool:
        """Whether a remembered solution holds for its members, and gives them another safe rate."""
        difference = self.known_share - self.rate
        return (
            self.solution == solution
            and self.crowd == self.count
            and self.known_share <= self.safe
            and (difference > 1e-12 * self.rate or difference < -1e-12 * self.rate)
        )

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


def present(constraint: Constraint) -> "list[Activity]":
    """The members of a constraint that have not ended, in the order in which they came."""
    if not constraint.contended:
        sole = constraint.sole
        if sole is not None:
            return [sole]
        return [member for member in constraint.members if member.system is not None]
    found: list[Activity] = []
    for bundle in constraint.bundles:
        if bundle.count > 0:
            found.extend(bundle.members())
    found.sort(key=lambda member: member.number)
    return found


def demand_of(weight: float, bound: float, constraint: Constraint) -> float:
    """The largest use of a constraint by an activity; without a bound, more than its capacity."""
    if bound == INFINITY:
        return 2.0 * constraint.capacity
    return weight * bound
