"""The memo of solutions: equal sets of bundles get the rates of their latest solution.

Programs repeat themselves: in a round of a collective operation, the same bundles are solved
together, and no others share their constraints. The memo holds their solution if each constraint
has at most two of them. The order of bundles then has no effect: a sum of two has one rounding.
"""

from typing import Optional

from pysmpi.kernel.activities import Bundle, Constraint


class Memo:
    """The latest solution of each bundle; bundles and constraints themselves hold the figures."""

    def __init__(self) -> None:
        self.solutions: int = 0  # number of solutions, each of which has its number
        self.outdated: int = 0  # solutions up to this number hold no longer

    def forget(self) -> None:
        """Drop all solutions: a capacity has changed."""
        self.outdated = self.solutions

    def remember(self, bundles: "list[Bundle]") -> None:
        """Hold the shares of bundles with which no others share constraints."""
        self.solutions += 1
        for bundle in bundles:
            bundle.solution = self.solutions
            bundle.solution_bundles = len(bundles)
            bundle.remembered_count = bundle.count
            bundle.remembered_share = bundle.share
            bundle.remembered_bottleneck = bundle.bottleneck

    def remember_usage(self, bundles: "list[Bundle]", region: "list[Constraint]") -> None:
        """Hold the constraints of the latest solution, and their usage."""
        uses = 0
        for bundle in bundles:
            uses += len(bundle.constraints)
        for bundle in bundles:
            bundle.solution_constraints = len(region)
            bundle.solution_uses = uses
        for constraint in region:
            constraint.solution = self.solutions
            constraint.remembered_usage = constraint.usage

    def recall(self, bundles: "list[Bundle]") -> bool:
        """Give bundles their shares of their latest solution; False if it was not one of all."""
        solution = bundles[0].solution
        if solution <= self.outdated or bundles[0].solution_bundles != len(bundles):
            return False
        for bundle in bundles:
            if bundle.solution != solution or bundle.remembered_count != bundle.count:
                return False
        for bundle in bundles:
            bundle.share = bundle.remembered_share
            bundle.bottleneck = bundle.remembered_bottleneck
        return True

    def repeated(
        self,
        fresh: "list[Bundle]",
        fitting: Optional[Bundle],
        dirty: "list[Constraint]",
        stamp: int,
    ) -> "list[Bundle]":
        """The bundles that are fresh, and `fitting`, whose rates become `remembered_share`.

        Empty if they have no solution in the memo, or other bundles share their constraints. In a
        large job, each pass over the bundles reads them from memory. This takes two passes, and a
        solution more. `stamp` is the number of a new solution.
        """
        first = fresh[0]
        solution = first.solution
        if solution <= self.outdated or len(dirty) != first.solution_constraints:
            return []
        bundles: list[Bundle] = []
        for bundle in fresh:
            if bundle.count > 0 and bundle.stamp != stamp:
                if not bundle.repeats(solution):
                    return []
                bundle.stamp = stamp
                bundles.append(bundle)
        if fitting is not None and fitting.count > 0 and fitting.stamp != stamp:
            if not fitting.repeats(solution):
                return []
            for constraint in fitting.constraints:
                if not constraint.dirty:
                    return []
            fitting.stamp = stamp
            bundles.append(fitting)
        if len(bundles) != first.solution_bundles:
            return []
        uses = 0
        for constraint in dirty:
            if constraint.solution != solution:
                return []
            uses += constraint.uses
        if uses != first.solution_uses:
            return []
        for constraint in dirty:
            constraint.dirty = False
            constraint.usage = constraint.remembered_usage
        return bundles
