"""The cache of bundles: a bundle stays when its last member leaves, for the next like it.

Programs repeat their messages. A bundle that stays is still in the lists of its constraints, so the
next message of the same pair of hosts neither makes a bundle nor changes these lists.
"""

from typing import Final

from pysmpi.kernel.activities import AbstractSystem, Activity, ActivityKind, Bundle, Constraint

# The cache drops its bundles without members when it holds this many. If more than one bundle in
# `BUSY` has members then, the number doubles instead. It also doubles if as many bundles were made
# again after they had been dropped, up to `NEIGHBOURS` bundles for each slot: a large job that
# repeats its messages would otherwise make all its bundles again and again. A bundle takes some 300
# bytes. In a halo exchange with more bundles than `MOST`, a cache that never grows takes 14 % more
# instructions, and one that does not count the bundles that are made again 5 %.
MOST: Final = 1 << 15
BUSY: Final = 8
NEIGHBOURS: Final = 8
# Bundles with a part of the constraints to which one kind refers. Without them, messages in a
# random order take more instructions: 4 % among 192 pairs of hosts, 3 % among all pairs of 48.
PARTIAL: Final = 8


class BundleCache:
    """The bundles of one system.

    `whole` are the kinds with a bundle of all their constraints: if all constraints are contended,
    hardly any activities but those of one kind have the same. `partial` are the bundles of a part
    of the constraints, by penalty, limit, constraints and weights.
    """

    def __init__(self, system: AbstractSystem, slots: int) -> None:
        self.system: AbstractSystem = system
        self.whole: list[ActivityKind] = []
        self.partial: dict[object, Bundle] = {}
        self.most_whole: int = MOST
        self.most_partial: int = self.most_whole
        # Bundles that were made again since the cache last dropped some.
        self.remade_whole: int = 0
        self.remade_partial: int = 0
        self.affordable: int = NEIGHBOURS * slots
        # The kinds of activities that name none, by the id of their list of constraints.
        self.unnamed: dict[int, ActivityKind] = {}

    def bundle_for(self, activity: Activity, contended: int) -> Bundle:
        """The bundle for an activity with `contended` contended constraints, or a new one."""
        if contended == len(activity.constraints):
            bundle = self._whole_bundle(activity)
        else:
            bundle = self._partial_bundle(activity, contended)
        if bundle.count == 0:
            bundle.begin(self.system.queue.now)
        return bundle

    def forget(self, bundle: Bundle) -> None:
        """A bundle that the cache has dropped has no members any more."""
        if bundle.key is not None:
            del self.partial[bundle.key]

    def _partial_bundle(self, activity: Activity, contended: int) -> Bundle:
        """The bundle of the activities that share the contended constraints of an activity."""
        kind = activity.kind
        again = False
        if kind is not None:
            for bundle in kind.others:
                if not bundle.cached:
                    again = True
                elif bundle.system is self.system and bundle.suits(activity, contended):
                    return bundle
        constraints: list[Constraint] = []
        weights: list[float] = []
        for constraint, weight in zip(activity.constraints, activity.weights):
            if constraint.contended:
                constraints.append(constraint)
                weights.append(weight)
        key: object = (activity.penalty, activity.limit, tuple(constraints), tuple(weights))
        partial = self.partial.get(key)
        if partial is None:
            if len(self.partial) >= self.most_partial:
                self._drop_partial()
            if again:
                self.remade_partial += 1
            partial = Bundle(self.system, activity.penalty, activity.limit, constraints, weights)
            partial.key = key
            partial.cached = True
            self.partial[key] = partial
        if kind is not None:
            if len(kind.others) == 0 or len(kind.others) >= PARTIAL:
                kind.others = []
            elif again:
                kind.others = [bundle for bundle in kind.others if bundle.cached]
            kind.others.append(partial)
        return partial

    def _whole_bundle(self, activity: Activity) -> Bundle:
        """The bundle of the kind of an activity."""
        kind = activity.kind
        if kind is None:
            kind = self._kind_of(activity)
        bundle = kind.bundle
        if bundle is not None and bundle.system is not self.system:
            bundle = None  # it belongs to an earlier simulation with the same transport
        if (
            bundle is None
            or bundle.penalty != activity.penalty
            or bundle.limit != activity.limit
            or bundle.weights is not activity.weights
        ):
            if bundle is not None:
                drop(bundle)
            else:
                if len(self.whole) >= self.most_whole:
                    self._drop_whole()
                if kind.dropped:
                    self.remade_whole += 1
                self.whole.append(kind)
            bundle = Bundle(
                self.system,
                activity.penalty,
                activity.limit,
                activity.constraints,
                activity.weights,
            )
            bundle.cached = True
            kind.bundle = bundle
        return bundle

    def _kind_of(self, activity: Activity) -> ActivityKind:
        """The kind of an activity that names none."""
        kind = self.unnamed.get(id(activity.constraints))
        if kind is None:
            kind = ActivityKind()
            self.unnamed[id(activity.constraints)] = kind
        return kind

    def _drop_whole(self) -> None:
        """Drop the bundles of all kinds, or allow more of them if the job needs many."""
        again = self.remade_whole if self.most_whole < self.affordable else 0
        self.remade_whole = 0
        used = 0
        for kind in self.whole:
            bundle = kind.bundle
            if bundle is not None and bundle.count > 0:
                used += 1
        if (used + again) * BUSY > self.most_whole:
            self.most_whole *= 2
            return
        for kind in self.whole:
            bundle = kind.bundle
            kind.bundle = None
            kind.dropped = True
            if bundle is not None:
                drop(bundle)
        self.whole.clear()
        self.unnamed.clear()

    def _drop_partial(self) -> None:
        """Drop the bundles of a part of the constraints, or allow more of them."""
        again = self.remade_partial if self.most_partial < self.affordable else 0
        self.remade_partial = 0
        used: dict[object, Bundle] = {}
        for key, bundle in self.partial.items():
            if bundle.count > 0:
                used[key] = bundle
        if (len(used) + again) * BUSY > self.most_partial:
            self.most_partial *= 2
            return
        for bundle in self.partial.values():
            drop(bundle)
        self.partial = used


def drop(bundle: Bundle) -> None:
    """Let a bundle go as soon as it has no members."""
    bundle.cached = False
    if bundle.count == 0:
        bundle.leave_lists()
