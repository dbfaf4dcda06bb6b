"""Constraints that are left out of solutions, because a crowded one limits all their bundles.

In an incast from nodes with many ranks, the link of the receiver limits all flows far below the
rates that would saturate the links of the senders. Without these, the flows of all senders have
equal constraints and form one bundle. A constraint that is left out has a safe rate: up to it, its
members do not saturate it. It takes part again before a member exceeds this rate.
"""

from typing import Final, Optional

from pysmpi.kernel.activities import Bundle, Constraint
from pysmpi.kernel.events import INFINITY

# Bundles of one constraint that make it crowded; also the smallest number of constraints that are
# left out together. In an incast of 4,000 flows from nodes with 64 ranks, a change solves 63
# bundles if no constraint is left out, and one bundle else.
CROWD: Final = 32
# Most bundles of a constraint that is left out. If there may be any number, the link of the
# receiver itself is left out again and again: a change in this incast takes 20 times as long.
FEW: Final = 4
NO_CONSTRAINTS: Final[list[Constraint]] = []


class LeftOut:
    """The candidates of the latest solution to be left out."""

    def __init__(self) -> None:
        self.candidates: list[Constraint] = NO_CONSTRAINTS
        self.solved: int = 0  # bundles solved with candidates since the latest were left out

    def clear(self) -> None:
        """Have no candidates."""
        self.candidates = NO_CONSTRAINTS

    def look(self, crowded: Optional[Constraint], solved: int) -> None:
        """Find the candidates in a solution of `solved` bundles with a crowded constraint."""
        if crowded is None:
            self.candidates = NO_CONSTRAINTS
        else:
            self.candidates = candidates_beside(crowded)
            if len(self.candidates) > 0:
                self.solved += solved

    def due(self) -> "list[Constraint]":
        """The candidates, once solving their bundles has taken as long as leaving them out."""
        candidates = self.candidates
        self.candidates = NO_CONSTRAINTS
        members = 0
        for constraint in candidates:
            members += constraint.count
        if self.solved < members:
            return NO_CONSTRAINTS
        self.solved = 0
        return candidates


def candidates_beside(crowded: Constraint) -> "list[Constraint]":
    """The constraints far from saturation whose bundles a crowded one limits; none if few."""
    candidates: list[Constraint] = []
    for bundle in crowded.bundles:
        if bundle.bottleneck is crowded:
            for constraint in bundle.constraints:
                if (
                    is_spare(constraint)
                    and constraint.uses <= FEW
                    and limits_all(crowded, constraint)
                ):
                    candidates.append(constraint)
    return candidates if len(candidates) >= CROWD else NO_CONSTRAINTS


def is_spare(constraint: Constraint) -> bool:
    """Whether a constraint is far from being saturated.

    The rates of its members can double before they reach the safe rate, which is half of the rate
    that saturates it.
    """
    return constraint.usage * 4.0 <= constraint.capacity


def limits_all(bottleneck: Constraint, constraint: Constraint) -> bool:
    """Whether one constraint is the bottleneck of all bundles of another."""
    for bundle in constraint.bundles:
        if bundle.bottleneck is not bottleneck and bundle.count > 0:
            return False
    return True


def set_safe_rate(constraint: Constraint) -> None:
    """Compute the safe rate of a contended constraint that is to be left out."""
    constraint.exceeded = False
    constraint.habit = 0
    if constraint.count > 1:
        total = 0.0
        for bundle in constraint.bundles:
            total += bundle.weights[bundle.index_of(constraint)] * bundle.count
        constraint.spare_weight = total
        constraint.safe_rate = constraint.capacity / (2.0 * total)


def stays_out(constraint: Constraint, rate: float) -> bool:
    """Whether members with a rate would not saturate a constraint that is left out.

    If so, bring its safe rate up to date.
    """
    if constraint.count == 1:
        constraint.safe_rate = INFINITY
        return True
    total = constraint.capacity / constraint.safe_rate - constraint.spare_weight
    if constraint.capacity < 2.0 * total * rate:
        return False
    constraint.spare_weight = total
    constraint.safe_rate = constraint.capacity / (2.0 * total)
    return True


def unsafe_constraints(bundle: Bundle) -> "list[Constraint]":
    """The constraints that are left out and that a bundle may saturate.

    Constraints that twice the rate would not saturate stay out, and set the safe rate of the
    bundle: it is looked at again only after its rate has doubled.
    """
    least = 2.0 * bundle.rate
    safe_rate = INFINITY
    unsafe: list[Constraint] = []
    for member in bundle.members():
        for constraint in member.constraints:
            if constraint.safe_rate < least and not stays_out(constraint, least):
                unsafe.append(constraint)
            elif constraint.safe_rate < safe_rate:
                safe_rate = constraint.safe_rate
    bundle.safe_rate = safe_rate
    return unsafe
