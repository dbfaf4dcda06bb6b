"""The solver: max-min fair rates of bundles, solved again only where they changed.

A set of rates is max-min fair exactly if each rate has a reason: its bound, or its bottleneck, a
saturated constraint on which no rate * penalty is larger. So the bundles of the changed constraints
are solved among the others, which keep their rates; the others that lose their reason then take
part, until all have one.

The cost of a solution does not depend on the size of the saturated region. Let k be the number of
bundles on changed constraints or with changed rates, each with up to m constraints, and d the
number of bundles on such a constraint. A round costs O(k m d), and O(k m log k) for the levels
after the first few. The number of rounds is at most `ROUNDS` plus the logarithm of the number of
constraints through which a change spreads. Cross-traffic passes on 5 % of a change, so a change is
below rounding after about ten constraints.

Programs repeat themselves: in a round of a collective operation, the same bundles are solved
together, and no others share their constraints. Their solution is remembered if each constraint has
at most two of them. The order of bundles then has no effect: a sum of two has one rounding.
"""

from typing import Final, Optional

from pysmpi.kernel.activities import Bundle, Constraint
from pysmpi.kernel.events import INFINITY

# Relative slack under which a constraint counts as saturated: well above rounding,
# well below anything that a prediction could show.
SLACK: Final = 1e-9
# Relative difference under which two levels are the same: the rounding of a few sums.
TIE: Final = 1e-11
# Scans of a region for the next saturated constraint, after which a heap is quicker.
SCANS: Final = 6
# Different limits in one solution after which the bundles are sorted by their limits.
PASSES: Final = 8
# Rounds of one solution after which it reaches out farther each time; their number would else grow
# with the length of a chain of bundles whose rates change.
ROUNDS: Final = 8
# Bundles of one constraint that make it crowded; and the number of constraints of theirs that are
# far from being saturated, in one solution, from which on these are left out.
CROWD: Final = 32
# Bundles of such a constraint, at most, and the capacity over its usage, at least.
FEW: Final = 4
SPARE: Final = 4.0
NO_REGION: Final[list[Constraint]] = []


class Lowest:
    """The constraint of a region that reaches its capacity first, while rates rise together.

    The level at which a constraint reaches it never falls when bundles stop below it. So a few
    scans of all constraints are followed by a heap, in which levels are updated only at the top.
    """

    def __init__(self) -> None:
        self.region: list[Constraint] = NO_REGION
        self.next: int = 0
        self.scans: int = 0
        self.heap: list[Constraint] = NO_REGION  # by `ratio`, then by `place`

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
                self._line_up()
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
            return self._pop()
        return None

    def _line_up(self) -> None:
        """Make the heap of the constraints that are left."""
        self.heap = heap = [one for one in self.region if one.open > 0]
        i = 0
        for constraint in heap:
            constraint.ratio = constraint.remaining / constraint.load
            constraint.place = i
            i += 1
        i >>= 1
        while i > 0:
            i -= 1
            self._sink(i, heap[i])

    def _first(self) -> float:
        """Bring the top of the heap up to date, and return its level."""
        heap = self.heap
        while len(heap) > 0:
            constraint = heap[0]
            if constraint.open == 0:
                self._pop()
                continue
            level = constraint.ratio
            ratio = constraint.remaining / constraint.load
            if ratio <= level:
                return level
            constraint.ratio = ratio
            self._sink(0, constraint)
        return INFINITY

    def _pop(self) -> Constraint:
        """Take the top off the heap."""
        heap = self.heap
        last = heap.pop()
        if len(heap) == 0:
            return last
        top = heap[0]
        self._sink(0, last)
        return top

    def _sink(self, hole: int, constraint: Constraint) -> None:
        """Put a constraint in a hole of the heap, or below it if those there come before it."""
        heap = self.heap
        size = len(heap)
        while True:
            below = 2 * hole + 1
            if below >= size:
                break
            child = heap[below]
            if below + 1 < size:
                other = heap[below + 1]
                if before(other, child):
                    below += 1
                    child = other
            if before(constraint, child):
                break
            heap[hole] = child
            hole = below
        heap[hole] = constraint


def before(one: Constraint, other: Constraint) -> bool:
    """The order of constraints in a heap."""
    return one.ratio < other.ratio or (one.ratio == other.ratio and one.place < other.place)


class Solver:
    """Solves the rates of bundles, and remembers its latest solution."""

    def __init__(self) -> None:
        # Constraints that could be left out: a crowded one limits all of their bundles.
        self.slight: list[Constraint] = NO_REGION
        self.spent: int = 0  # bundles solved while there were some, since they were left out
        self.lowest: Lowest = Lowest()
        self.stamp: int = 0
        self.open: int = 0  # bundles that have no share yet
        self.partial: bool = False  # whether some constraints have other bundles, too
        self.solved: int = 0  # bundles, over all solutions
        self.solutions: int = 0  # that were remembered
        self.forgotten: int = 0  # of them; they hold no longer

    def forget(self) -> None:
        """Solve anew what was remembered: a capacity has changed."""
        self.forgotten = self.solutions

    def solve(self, fresh: "list[Bundle]", dirty: "list[Constraint]") -> "list[Bundle]":
        """Solve the bundles that are fresh or on dirty constraints, which are then clean.

        Return the bundles whose rate must become `share`. At first, only the bundles of changed
        constraints are solved, with the capacity that the others leave. Then other bundles that
        have lost the reason for their rates are added, until there are none: the rates are then the
        fair ones.
        """
        self.stamp += 1
        bundles: list[Bundle] = []
        region: list[Constraint] = []
        for bundle in fresh:
            if bundle.count > 0:
                self._enter(bundle, bundles)
        uses = 0
        pairs = True
        for constraint in dirty:
            if constraint.uses > 2:
                pairs = False
            uses += constraint.uses
            constraint.tidy()
            for bundle in constraint.bundles:
                if bundle.count > 0:
                    self._enter(bundle, bundles)
            constraint.dirty = False
            constraint.whole = True
        if len(bundles) == 0:
            return bundles
        if pairs:
            for bundle in bundles:
                uses -= len(bundle.constraints)
            pairs = uses == 0  # all their constraints have changed, and no others use them
            if pairs and self._recall(bundles):
                changed = [bundle for bundle in bundles if bundle.moves()]
                self._account(bundles, dirty)
                return changed
        known = 0
        rounds = 0
        while True:
            for i in range(known, len(bundles)):
                for constraint in bundles[i].constraints:
                    if constraint.stamp != self.stamp:
                        constraint.stamp = self.stamp
                        region.append(constraint)
            known = len(bundles)
            self._fill(bundles, region)
            if pairs:
                self._remember(bundles)
            changed = [bundle for bundle in bundles if bundle.moves()]
            if self.partial:
                self._challenge(changed, bundles, region)
            if len(bundles) == known:
                break
            rounds += 1
            if rounds > ROUNDS:
                self._widen(bundles, known, 1 << min(rounds - ROUNDS, 30))
        self._account(bundles, region)
        if pairs:
            self._remember_usage(bundles, region)
        self.solved += len(bundles)
        return changed

    def repeated(
        self, fresh: "list[Bundle]", fitting: Optional[Bundle], dirty: "list[Constraint]"
    ) -> "list[Bundle]":
        """The bundles that are fresh, and `fitting`, whose rates become `known_share`.

        Empty if they have no remembered solution, or other bundles share their constraints. In a
        large job each pass over the bundles reads them from memory; this takes two passes.
        """
        first = fresh[0]
        solution = first.solution
        if solution <= self.forgotten or len(dirty) != first.area:
            return []
        self.stamp += 1
        bundles: list[Bundle] = []
        for bundle in fresh:
            if bundle.count > 0 and bundle.stamp != self.stamp:
                if not bundle.recurs(solution):
                    return []
                self._enter(bundle, bundles)
        if fitting is not None and fitting.count > 0 and fitting.stamp != self.stamp:
            if not fitting.recurs(solution):
                return []
            for constraint in fitting.constraints:
                if not constraint.dirty:
                    return []
            self._enter(fitting, bundles)
        if len(bundles) != first.size:
            return []
        links = 0
        for constraint in dirty:
            if constraint.solution != solution:
                return []
            links += constraint.uses
        if links != first.links:
            return []
        for constraint in dirty:
            constraint.dirty = False
            constraint.usage = constraint.known_usage
        self.slight = NO_REGION
        return bundles

    def _remember_usage(self, bundles: "list[Bundle]", region: "list[Constraint]") -> None:
        """Remember the constraints of the solution just remembered, and their usage."""
        links = 0
        for bundle in bundles:
            links += len(bundle.constraints)
        for bundle in bundles:
            bundle.area = len(region)
            bundle.links = links
        for constraint in region:
            constraint.solution = self.solutions
            constraint.known_usage = constraint.usage

    def _recall(self, bundles: "list[Bundle]") -> bool:
        """Give bundles their shares of the latest solution, if it was theirs."""
        solution = bundles[0].solution
        if solution <= self.forgotten or bundles[0].size != len(bundles):
            return False
        for bundle in bundles:
            if bundle.solution != solution or bundle.crowd != bundle.count:
                return False
        for bundle in bundles:
            bundle.share = bundle.known_share
            bundle.bottleneck = bundle.known_bottleneck
        return True

    def _remember(self, bundles: "list[Bundle]") -> None:
        """Remember the shares of bundles with which no others share constraints."""
        self.solutions += 1
        for bundle in bundles:
            bundle.solution = self.solutions
            bundle.size = len(bundles)
            bundle.crowd = bundle.count
            bundle.known_share = bundle.share
            bundle.known_bottleneck = bundle.bottleneck

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
            for constraint, weight in zip(bundle.constraints, bundle.weights):
                constraint.load += weight * inverse
                constraint.held += weight * total
                constraint.open += 1
        self.open = len(bundles)
        self.partial = False
        for constraint in region:
            constraint.whole = constraint.open == constraint.uses
            constraint.remaining = constraint.capacity
            if not constraint.whole:
                self.partial = True
                constraint.remaining -= constraint.usage - constraint.held
        light = self.lowest
        light.begin(region)
        bounded: list[tuple[float, int]] = []
        upto = 0
        passes = 0
        while self.open > 0:
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
                    for bundle in full.bundles:
                        if bundle.stamp == self.stamp and bundle.share < 0.0:
                            self._fix(bundle, level / bundle.penalty, level, full)
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
        self.open -= 1
        bundle.share = share
        bundle.bottleneck = bottleneck
        total = share * bundle.count
        inverse = bundle.count / bundle.penalty
        for constraint, weight in zip(bundle.constraints, bundle.weights):
            constraint.remaining -= weight * total
            constraint.load -= weight * inverse
            constraint.open -= 1
            constraint.top = level

    def _challenge(
        self, changed: "list[Bundle]", bundles: "list[Bundle]", region: "list[Constraint]"
    ) -> None:
        """Add the bundles that cannot keep their rates beside those just solved.

        If no rate changed, and no bundle is limited, all keep the reasons of their rates.
        """
        for bundle in changed:
            for constraint in bundle.constraints:
                constraint.moved = True
        for constraint in region:
            if not constraint.whole and (constraint.moved or constraint.level < INFINITY):
                slack = constraint.remaining > constraint.capacity * TIE
                for bundle in constraint.bundles:
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
                for constraint in bundles[i].constraints:
                    if constraint.usage >= constraint.capacity * (1.0 - SLACK):
                        for bundle in constraint.bundles:
                            if bundle.count > 0:
                                self._enter(bundle, bundles)
            known = end
            steps -= 1

    def _account(self, bundles: "list[Bundle]", region: "list[Constraint]") -> None:
        """Bring `usage` up to date with the shares."""
        crowded: Optional[Constraint] = None
        for constraint in region:
            if constraint.uses >= CROWD and constraint.level < INFINITY:
                crowded = constraint
            if constraint.whole:
                constraint.usage = 0.0
            else:
                constraint.usage -= constraint.held
        for bundle in bundles:
            total = bundle.share * bundle.count
            for constraint, weight in zip(bundle.constraints, bundle.weights):
                constraint.usage += weight * total
        if crowded is None:
            self.slight = NO_REGION
        else:
            self.slight = slight(crowded)
            if len(self.slight) > 0:
                self.spent += len(bundles)


def slight(crowded: Constraint) -> "list[Constraint]":
    """The constraints far from being saturated whose bundles a crowded one limits; none if few."""
    found: list[Constraint] = []
    for bundle in crowded.bundles:
        if bundle.bottleneck is crowded:
            for constraint in bundle.constraints:
                if (
                    constraint.usage * SPARE <= constraint.capacity
                    and constraint.uses <= FEW
                    and limited(constraint, crowded)
                ):
                    found.append(constraint)
    return found if len(found) >= CROWD else NO_REGION


def limited(constraint: Constraint, by: Constraint) -> bool:
    """Whether another constraint limits all bundles of a constraint."""
    for bundle in constraint.bundles:
        if bundle.bottleneck is not by and bundle.count > 0:
            return False
    return True
