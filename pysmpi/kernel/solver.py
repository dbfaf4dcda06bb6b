"""The solver: max-min fair rates of bundles, solved again only where they changed.

A set of rates is max-min fair exactly if each rate has a reason: its bound, or its bottleneck, a
saturated constraint on which no rate * penalty is larger. So the solver
solves the bundles of the changed constraints among the others, which keep their rates. It adds the
bundles that lose their reason, until all have one.

The cost of a solution does not depend on the size of the saturated region. Let k be the number of
bundles on changed constraints or with changed rates, each with up to m constraints, and d the
number of bundles on such a constraint. A round costs O(k m d), and O(k m log k) for the levels
after the first few. The number of rounds is at most `ROUNDS` plus the logarithm of the number of
constraints through which a change spreads. Cross-traffic passes on 5 % of a change, so a change is
below rounding after about ten constraints.
"""

from typing import Final, Optional

from pysmpi.kernel.activities import Bundle, Constraint
from pysmpi.kernel.events import INFINITY
from pysmpi.kernel.left_out import CROWD, LeftOut
from pysmpi.kernel.memo import Memo

# A constraint counts as saturated if its usage is this close to its capacity (relative): well above
# rounding, well below anything that a prediction could show. It decides results, not speed.
SLACK: Final = 1e-9
# Two levels this close (relative) are the same: the rounding of a few sums. It decides results.
TIE: Final = 1e-11
# Scans of a region for the next saturated constraint before a heap finds it. A heap after one scan
# takes 24 % more instructions in a halo exchange; without one, a region with n levels takes n**2.
SCANS: Final = 6
# Rounds of one solution after which it adds bundles at twice the distance each time: the number of
# rounds would else grow with the length of a chain of bundles whose rates change. A change that
# moves the rates along a chain of 300 links would take 45 times as long.
ROUNDS: Final = 8
NO_REGION: Final[list[Constraint]] = []


class Lowest:
    """The constraint of a region that reaches its capacity first, while rates rise together.

    The level at which a constraint is saturated never falls when bundles stop below it. So a few
    scans of all constraints are followed by a heap that updates levels only at its top.
    """

    def __init__(self) -> None:
        self.region: list[Constraint] = NO_REGION
        self.next: int = 0
        self.scans: int = 0
        self.heap: list[Constraint] = NO_REGION  # by `ratio`, then by `index`

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
                self._make_heap()
        else:
            level = self._first()
        return level if level > 0.0 else 0.0

    def take(self, level: float) -> Optional[Constraint]:
        """The next constraint that is saturated at a level that `level` has returned, if any."""
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

    def _make_heap(self) -> None:
        """Make the heap of the constraints with open bundles."""
        self.heap = heap = [constraint for constraint in self.region if constraint.open > 0]
        i = 0
        for constraint in heap:
            constraint.ratio = constraint.remaining / constraint.load
            constraint.index = i
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
        """Put a constraint into a hole of the heap, or below it, where it is in order."""
        heap = self.heap
        size = len(heap)
        while True:
            below = 2 * hole + 1
            if below >= size:
                break
            child = heap[below]
            if below + 1 < size:
                right = heap[below + 1]
                if before(right, child):
                    below += 1
                    child = right
            if before(constraint, child):
                break
            heap[hole] = child
            hole = below
        heap[hole] = constraint


def before(first: Constraint, second: Constraint) -> bool:
    """The order of constraints in a heap."""
    return first.ratio < second.ratio or (
        first.ratio == second.ratio and first.index < second.index
    )


class Solver:
    """Solves the rates of bundles."""

    def __init__(self, memo: Memo, left_out: LeftOut) -> None:
        self.memo: Memo = memo
        self.left_out: LeftOut = left_out
        self.lowest: Lowest = Lowest()
        self.stamp: int = 0  # number of the latest solution
        self.open: int = 0  # number of bundles that have no share yet
        self.partial: bool = False  # whether some constraints have bundles outside the solution
        self.solved: int = 0  # number of bundles, over all solutions

    def new_stamp(self) -> int:
        """The number of a new solution."""
        self.stamp += 1
        return self.stamp

    def solve(self, fresh: "list[Bundle]", dirty: "list[Constraint]") -> "list[Bundle]":
        """Solve the bundles that are fresh or on dirty constraints, which are then clean.

        Return the bundles whose rate must become `share`. The first round solves only the bundles
        of changed constraints, with the capacity that the others leave. Each further round adds the
        bundles that have lost the reason for their rates. When there are none, all rates are fair.
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
            if pairs and self.memo.recall(bundles):
                changed = [bundle for bundle in bundles if bundle.changes_rate()]
                self._account(bundles, dirty)
                return changed
        solved = 0
        rounds = 0
        while True:
            for i in range(solved, len(bundles)):
                for constraint in bundles[i].constraints:
                    if constraint.stamp != self.stamp:
                        constraint.stamp = self.stamp
                        region.append(constraint)
            solved = len(bundles)
            self._fill(bundles, region)
            if pairs:
                self.memo.remember(bundles)
            changed = [bundle for bundle in bundles if bundle.changes_rate()]
            if self.partial:
                self._challenge(changed, bundles, region)
            if len(bundles) == solved:
                break
            rounds += 1
            if rounds > ROUNDS:
                self._widen(bundles, solved, 1 << min(rounds - ROUNDS, 30))
        self._account(bundles, region)
        if pairs:
            self.memo.remember_usage(bundles, region)
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
        lowest_constraint = self.lowest
        lowest_constraint.begin(region)
        bounded: list[tuple[float, int]] = []
        next_bounded = 0
        while self.open > 0:
            level = lowest_constraint.level()
            if lowest == INFINITY and level == INFINITY:
                break
            if lowest <= level:
                if len(bounded) == 0:
                    bounded = [
                        (bundles[i].limit * bundles[i].penalty, i) for i in range(len(bundles))
                    ]
                    bounded.sort()
                while next_bounded < len(bounded) and bounded[next_bounded][0] <= level:
                    bundle = bundles[bounded[next_bounded][1]]
                    if bundle.share < 0.0:
                        self._fix(bundle, bundle.limit, bounded[next_bounded][0], None)
                    next_bounded += 1
                lowest = bounded[next_bounded][0] if next_bounded < len(bounded) else INFINITY
            else:
                full = lowest_constraint.take(level)
                while full is not None:
                    full.level = level
                    for bundle in full.bundles:
                        if bundle.stamp == self.stamp and bundle.share < 0.0:
                            self._fix(bundle, level / bundle.penalty, level, full)
                    full = lowest_constraint.take(level)

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

    def _widen(self, bundles: "list[Bundle]", first: int, steps: int) -> None:
        """Add the bundles within `steps` saturated constraints of the latest ones."""
        while steps > 0 and first < len(bundles):
            end = len(bundles)
            for i in range(first, end):
                for constraint in bundles[i].constraints:
                    if constraint.usage >= constraint.capacity * (1.0 - SLACK):
                        for bundle in constraint.bundles:
                            if bundle.count > 0:
                                self._enter(bundle, bundles)
            first = end
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
        self.left_out.look(crowded, len(bundles))
