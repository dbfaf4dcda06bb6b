"""Collective calls: their order, operation, root, reduction operator, counts and datatypes."""

from __future__ import annotations

from typing import Any

from pysmpi import text
from pysmpi.checkers import array_orders, signatures
from pysmpi.checkers.base import Checker
from pysmpi.checkers.describing import call_text, op_name, place, places
from pysmpi.checkers.order import group_of
from pysmpi.checkers.problems.collectives import ArgumentsDiffer, CallsDiffer
from pysmpi.checkers.registry import checker
from pysmpi.checkers.signatures import Signature
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.buffers.spellings import Blocks
from pysmpi.mpi.calls import MpiCall, Role
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.collective.data import Allgather, Alltoall, Broadcast, Gather, Scatter
from pysmpi.mpi.collective.reductions import Prefix, Reduction
from pysmpi.mpi.operators.operators import Op
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, Place
from pysmpi.reports.waiting import describe_communicator

_SAME = {"barrier": "Barrier"}
EnteredCall = tuple[MpiCall, Contribution, Any]  # and the shape of its data

_RULE = (
    "MPI 4.1, section 6.14: the ranks of a communicator make the same collective calls in the "
    "same order"
)


class MadeCall:
    """One collective call of a communicator: the call of each rank that has made it."""

    __slots__ = ("calls", "operators", "name", "different", "left")

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: dict[int, MpiCall] = {}
        # Their names: a rank may free its operator before others make the call.
        self.operators: dict[int, str] = {}
        self.left: set[int] = set()  # the ranks that have returned from it
        self.different = False


class History:
    """The collective calls of one communicator, window or file.

    `entries` are those that not all of the `pids` have made, from number `first` on.
    """

    __slots__ = ("pids", "name", "entries", "first", "counts", "broken", "inter")

    def __init__(self, pids: tuple[int, ...], name: str, inter: bool) -> None:
        self.pids = pids
        self.name = name
        self.entries: list[MadeCall] = []
        self.first = 0
        self.counts: dict[int, int] = {}
        self.broken = False
        self.inter = inter


class CollectiveChecks(Checker):
    """Compares the collective calls of the ranks of every communicator."""

    def __init__(self) -> None:
        self.histories: dict[object, History] = {}
        self.inside: dict[int, MadeCall] = {}  # by id of the call
        self.contributions: dict[tuple[int, int, str], dict[int, EnteredCall]] = {}
        # The arrays of each rank that has entered a call, by the same keys.
        self.arrays: dict[tuple[int, int, str], dict[int, list[array_orders.ArrayInCall]]] = {}

    # The order of calls.

    def call_returned(self, call: MpiCall, result: object) -> None:
        """The rank goes on, although others may not have made the call."""
        entry = self.inside.pop(id(call), None)
        if entry is not None:
            entry.left.add(call.rank.pid)

    def call_made(self, call: MpiCall) -> None:
        """Compare a collective call with those of the others at its place in the order."""
        history = self._history(call)
        if history is None or history.broken:
            return
        pid = call.rank.pid
        number = history.counts.get(pid, 0)
        history.counts[pid] = number + 1
        index = number - history.first
        name = _SAME.get(call.name, call.name)
        if index == len(history.entries):
            history.entries.append(MadeCall(name))
        entry = history.entries[index]
        entry.calls[pid] = call
        for value in call.having(Role.OPERATOR).values():
            if isinstance(value, Op):
                entry.operators[pid] = op_name(value)
        self.inside[id(call)] = entry
        if entry.name != name:
            entry.different = history.broken = True
        elif len(entry.calls) > 1:
            self._compare(history, entry, call)
        if len(entry.calls) == len(history.pids) and index == 0 and not history.broken:
            history.entries.pop(0)
            history.first += 1

    def _history(self, call: MpiCall) -> History | None:
        group = group_of(call)
        if group is None:
            return None
        history = self.histories.get(group.key)
        if history is None:
            name = group.noun or describe_communicator(call.rank, group.communicator)
            history = History(group.pids, name, group.communicator.inter)
            self.histories[group.key] = history
        return history

    def _compare(self, history: History, entry: MadeCall, call: MpiCall) -> None:
        """Roots and reduction operators must agree."""
        first = next(iter(entry.calls.values()))
        if first.procedure is not call.procedure:
            return
        roles = call.procedure.roles
        for name, mine in call.arguments.items():
            role = roles[name]
            theirs = first.arguments[name]
            if role is Role.ROOT and not history.inter:
                if isinstance(mine, int) and isinstance(theirs, int) and mine != theirs:
                    self._differ(call, first, "roots", f"root={mine}", f"root={theirs}")
                    return
            elif role is Role.OPERATOR and isinstance(mine, Op) and isinstance(theirs, Op):
                one, other = (entry.operators[each.rank.pid] for each in (call, first))
                if one != other:
                    self._differ(call, first, "operators", f"op={one}", f"op={other}")
                    return

    def _differ(self, call: MpiCall, first: MpiCall, noun: str, mine: str, theirs: str) -> None:
        self.session.report(
            Finding(
                ArgumentsDiffer,
                f"{noun} differ in {call.name}: {mine} in rank {call.rank.pid}, "
                f"{theirs} in rank {first.rank.pid}",
                [place(call), place(first)],
                f"MPI 4.1, section {call.procedure.section or '6'}: the argument has the same "
                "value in every rank",
                f"pass the same {noun.removesuffix('s')} in every rank",
            )
        )

    # The data of calls.

    def collective_entered(self, contribution: Contribution, rank: Rank) -> None:
        """Compare counts and datatypes."""
        call = self.session.call_on(rank.process)
        if call is None or call.name[0].islower():
            return
        communicator = contribution.communicator
        if communicator.inter:
            return
        key = communicator.coll.number, contribution.number, contribution.label
        self._compare_orders(call, contribution, key)
        shape = _shape(contribution)
        if shape is None:
            return
        entered = self.contributions.setdefault(key, {})
        mine = (call, contribution, shape)
        for theirs in entered.values():
            problem = _mismatch(mine, theirs)
            if problem is not None:
                self._unequal(mine, theirs, problem)
                break
        entered[contribution.me] = mine
        if len(entered) == communicator.size:
            del self.contributions[key]

    def _compare_orders(
        self, call: MpiCall, contribution: Contribution, key: tuple[int, int, str]
    ) -> None:
        """Compare the orders of the elements of arrays that meet in a call."""
        size = contribution.communicator.size
        prepared = self.session.prepared_by(call, getattr(contribution, "request", None))
        entered = self.arrays.setdefault(key, {})
        mine = entered[contribution.me] = array_orders.arrays_of(prepared, size)
        for one in mine:
            for other in [other for arrays in entered.values() for other in arrays]:
                if array_orders.differ(one.order, other.order):
                    self.session.report(array_orders.finding(one, other))
                    break
        if len(entered) == size:
            del self.arrays[key]

    def _unequal(
        self, one_side: EnteredCall, other_side: EnteredCall, problem: tuple[Signature, Signature]
    ) -> None:
        call, other = one_side[0], other_side[0]
        prepared, other_prepared = (
            self.session.prepared_by(side[0], getattr(side[1], "request", None))
            for side in (one_side, other_side)
        )
        mine, theirs = problem
        types = set(mine) != set(theirs) and mine and theirs
        noun = "datatypes" if types else "counts"
        self.session.report(
            Finding(
                ArgumentsDiffer,
                f"{noun} differ in {prepared.name}: {signatures.text(mine)} in rank "
                f"{call.rank.pid}, {signatures.text(theirs)} in rank {other.rank.pid}",
                [*places(call, prepared), *places(other, other_prepared)],
                f"MPI 4.1, section {prepared.procedure.section or '6'}: the data sent between two "
                "ranks have the same type signature on both sides",
                "use the same count and the same datatype in every rank",
            )
        )

    # The end.

    def finish(self, simulation: Simulation) -> None:
        """Report calls that differ, and calls that not all ranks have made."""
        for history in self.histories.values():
            if history.broken:
                entry = next(entry for entry in history.entries if entry.different)
                self.session.report(_different(history, entry))
            elif history.entries:
                first = history.entries[0]
                # In a deadlock, calls in which ranks still wait are in its report.
                if self.session.clean or (self.session.deadlocked and first.left):
                    self.session.report(_missing(history, first))


def _different(history: History, entry: MadeCall) -> Finding:
    groups: dict[str, list[MpiCall]] = {}
    for call in entry.calls.values():
        groups.setdefault(_SAME.get(call.name, call.name), []).append(call)
    ordered = sorted(groups.values(), key=len)
    places = []
    for calls in ordered:
        sites: dict[object, list[MpiCall]] = {}
        for call in calls:
            sites.setdefault((call.site, call.library), []).append(call)
        for same in sites.values():
            pids = sorted(call.rank.pid for call in same)
            places.append(Place(pids, call_text(same[0]), same[0].site, "", same[0].library))
    said = " and ".join(
        f"{calls[0].name} in {text.ranks(call.rank.pid for call in calls)}" for calls in ordered
    )
    names = [calls[0].name for calls in ordered[:2]]
    why = ""
    if names[0].lower() == names[1].lower():
        why = ": the lower-case call communicates an object, the upper-case call a buffer"
    elif {names[0].lower(), names[1].lower()} & {f"i{name.lower()}" for name in names}:
        why = ": a blocking call does not match a non-blocking one (6.12)"
    return Finding(
        CallsDiffer,
        f"collective call {history.first + history.entries.index(entry) + 1} of "
        f"{history.name} is {said}",
        places,
        _RULE + why,
        "make the same collective call at this place in every rank",
    )


def _missing(history: History, entry: MadeCall) -> Finding:
    absent = [pid for pid in history.pids if pid not in entry.calls]
    sites: dict[object, list[MpiCall]] = {}
    for call in entry.calls.values():
        sites.setdefault((call.site, call.library), []).append(call)
    places = [
        Place(
            sorted(call.rank.pid for call in calls),
            call_text(calls[0]),
            calls[0].site,
            "",
            calls[0].library,
        )
        for calls in sites.values()
    ]
    return Finding(
        CallsDiffer,
        f"{text.ranks(absent)} never {'makes' if len(absent) == 1 else 'make'} the call "
        f"{entry.name} of {history.name} that {text.ranks(entry.calls)} "
        f"{'makes' if len(entry.calls) == 1 else 'make'}",
        places,
        _RULE,
        f"call {entry.name} in every rank of the communicator, or in none",
    )


# The data that a rank sends to and takes from each other rank: functions of that rank.


class DataShape:
    """The signatures of a rank's data in a collective call.

    `common` is the same in all ranks; `sends` and `takes` have the blocks for and from other ranks:
    a `Blocks`, a signature for all, or None.
    """

    __slots__ = ("common", "sends", "takes", "root", "me")

    def __init__(
        self, me: int, root: int, common: Signature | None = None, sends: object = None,
        takes: object = None,
    ) -> None:  # fmt: skip
        self.me = me
        self.root = root
        self.common = common
        self.sends = sends
        self.takes = takes


def _shape(contribution: Contribution) -> DataShape | None:
    call = contribution.call
    me, root = contribution.me, call.root
    if isinstance(contribution, Broadcast):
        return DataShape(me, root, signatures.of_message(contribution.message))
    if isinstance(contribution, Reduction):
        return DataShape(me, root, signatures.of_type(contribution.record, contribution.count))
    if isinstance(contribution, Prefix):
        return DataShape(me, root, signatures.of_message(contribution.target))
    if isinstance(contribution, Gather):
        sent = signatures.of_message(contribution.message)
        return DataShape(me, root, None, sent, contribution.blocks)
    if isinstance(contribution, Scatter):
        received = signatures.of_message(contribution.message)
        return DataShape(me, root, None, contribution.blocks, received)
    if isinstance(contribution, Allgather):
        sent = signatures.of_message(contribution.message)
        return DataShape(me, -1, None, sent, contribution.blocks)
    if isinstance(contribution, Alltoall) and not call.op.startswith("neighbor"):
        outgoing = contribution.outgoing or contribution.incoming
        return DataShape(me, -1, None, outgoing, contribution.incoming)
    return None


def _part_of(data: Any, peer: int) -> Signature | None:
    return signatures.of_block(data, peer) if isinstance(data, Blocks) else data


def _mismatch(
    mine: tuple[MpiCall, Contribution, DataShape], theirs: tuple[MpiCall, Contribution, DataShape]
) -> tuple[Signature, Signature] | None:
    one, other = mine[2], theirs[2]
    if one.root != other.root:
        return None
    if one.common is not None and other.common is not None:
        if not signatures.equal(one.common, other.common):
            return one.common, other.common
        return None
    for sender, receiver in ((one, other), (other, one)):
        if sender.root >= 0:
            gathers = isinstance(mine[1], Gather)
            if (receiver if gathers else sender).me != sender.root:
                continue
        sent = _part_of(sender.sends, receiver.me)
        received = _part_of(receiver.takes, sender.me)
        if sent is None or received is None or signatures.equal(sent, received):
            continue
        return (sent, received) if sender is one else (received, sent)
    return None


checker("collectives", "collective calls that do not match in order, operation or arguments")(
    CollectiveChecks
)
