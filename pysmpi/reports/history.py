"""The collective calls of a communicator that not all of its ranks have made.

A rank may leave a call before others enter it: the root of a broadcast, a leaf of a gather. If the
others then make another call, both wait later, in calls that look right. The state of a call lives
until all ranks have left it, so the call at which the ranks part is still known then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pysmpi import text
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.collective.objects import Outbox
from pysmpi.mpi.groups.communicator import CollectiveState, Communicator
from pysmpi.python.frames import CallSite, shorten
from pysmpi.python.records import record
from pysmpi.reports.waiting import Wait, public

_MOST = 4  # groups of ranks in a line


@record
class Made:
    """A collective call of one rank. `call` is its name, `label` what it matches by."""

    pid: int
    label: str
    call: str
    site: CallSite | None = None
    waiting: bool = False
    root: int | None = None


@record
class FirstDifference:
    """The first collective call of a communicator in which its ranks differ.

    `ordinal` counts the calls that the program has made, from 1. `roots` is set if only the roots
    differ.
    """

    communicator: Communicator
    number: int
    ordinal: int
    made: Sequence[Made]
    roots: bool

    def lines(self, name: str, waits: Iterable[Wait]) -> list[str]:
        """The difference, and the calls in which the ranks are that have gone on."""
        before, rule = "", "make the same collective calls in the same order"
        if self.roots:
            before, rule = f"roots differ in {self.made[0].call}: ", "give the same root"
        lines = [
            f"{before}{_listed(self.made, self.roots)}, as call number {self.ordinal} of {name}: "
            f"every rank must {rule}"
        ]
        gone = {one.pid for one in self.made if not one.waiting}
        later: dict[str, list[int]] = {}
        for wait in waits:
            collective = wait.collective
            if (
                wait.pid in gone
                and collective is not None
                and (collective.communicator in (self.communicator, self.communicator.remote))
            ):
                place = "" if wait.site is None else f" at {_short(wait.site)}"
                ordinal = ordinal_of(collective.communicator, wait.pid, collective.number)
                later.setdefault(f"{called(wait)}{place}, call number {ordinal}", []).append(
                    wait.pid
                )
        for what, pids in list(later.items())[:_MOST]:
            pids = sorted(set(pids))
            verb = "is" if len(pids) == 1 else "are"
            lines.append(f"{text.ranks(pids)} {verb} now in {what}")
        return lines


def called(wait: Wait) -> str:
    """The collective call that a rank is in; in `Wait`, the one that it has started."""
    named = [piece.name for piece in wait.pieces if piece.name]
    return named[0] if named else wait.call


def ordinal_of(communicator: Communicator, pid: int, number: int) -> int:
    """The number, from 1, of a call among those that the program of a rank has made.

    The rank is in this call, or has not made it yet: some calls take several numbers.
    """
    for side in (communicator, communicator.remote):
        if pid in side.group:
            rank = side.rank_of(pid)
            begun = side.begun(rank)
            continued = begun - side.made_by(rank)
            if side.kind == "file":  # an access takes both of its numbers at once
                continued -= begun - 1 - number
            return number + 1 - continued
    return number + 1


def find_difference(communicator: Communicator, waits: Iterable[Wait]) -> FirstDifference | None:
    """The first collective call of a communicator in which its ranks differ, None if there is none.

    `waits` are those of all ranks.
    """
    waits = list(waits)
    rounds = _rounds(communicator, waits)
    for number in sorted(rounds):
        calls = sorted(rounds[number].values(), key=lambda one: one.pid)
        for one in calls:
            one.waiting |= _continues(one, communicator, number, waits)
        labels = {one.label for one in calls}
        roots = {one.root for one in calls}
        alike = len(roots) == 1 or None in roots or communicator.inter
        if len(labels) == 1 and alike:
            continue
        slowest = min(_members(communicator), key=lambda member: member[0].begun(member[1]))
        side, rank = slowest
        ordinal = ordinal_of(side, side.group[rank], number)
        return FirstDifference(communicator, number, max(ordinal, 1), calls, len(labels) == 1)
    return None


def _continues(one: Made, communicator: Communicator, number: int, waits: Iterable[Wait]) -> bool:
    """Whether a rank waits in a later part of the same call of the program.

    Lower-case calls consist of several: for the sizes of objects, for their bytes.
    """
    parts = 3 if one.call == "allreduce" else 2
    return one.call.islower() and any(
        wait.pid == one.pid
        and wait.collective is not None
        and wait.collective.communicator in (communicator, communicator.remote)
        and 0 < wait.collective.number - number < parts
        and (wait.call, wait.site) == (one.call, one.site)
        for wait in waits
    )


def _members(communicator: Communicator) -> list[tuple[Communicator, int]]:
    """The sides of a communicator with their ranks."""
    sides = [communicator, communicator.remote] if communicator.inter else [communicator]
    return [(side, rank) for side in sides for rank in range(side.size)]


def _rounds(communicator: Communicator, waits: Iterable[Wait]) -> dict[int, dict[int, Made]]:
    """The calls that not all ranks have left, by number and rank."""
    rounds: dict[int, dict[int, Made]] = {}
    for side in {id(one): one for one in (communicator, communicator.remote)}.values():
        for state in side.collective_states.values():
            if state.number >= 0:  # persistent calls match by themselves
                _add(rounds, side, state)
    for wait in waits:
        collective = wait.collective
        if collective is None or collective.number < 0:
            continue
        if collective.communicator in (communicator, communicator.remote):
            here = rounds.setdefault(collective.number, {})
            known = here.get(wait.pid)
            root = wait.arguments.get("root") if known is None else known.root
            here[wait.pid] = Made(
                wait.pid, collective.operation, called(wait), wait.site, True, root
            )
    return rounds


def sizes_of(communicator: Communicator, number: int, operation: str) -> dict[int, list[int]]:
    """The sizes (bytes) that ranks give in a call whose sizes must be equal, with the ranks."""
    result: dict[int, list[int]] = {}
    state = communicator.collective_states.get((number, operation))
    if state is None or communicator.inter or operation.removeprefix("i") not in _EVEN:
        return result
    for rank, value in state.values.items():
        if isinstance(value, Contribution):
            result.setdefault(value.call.nbytes, []).append(communicator.group[rank])
    return {nbytes: sorted(pids) for nbytes, pids in sorted(result.items())}


# Operations in which all ranks give the same size.
_EVEN = frozenset(
    "bcast gather scatter reduce allreduce allgather alltoall scan exscan "
    "reduce_scatter_block".split()
)


def _add(rounds: dict[int, dict[int, Made]], side: Communicator, state: CollectiveState) -> None:
    """Add the ranks that have entered a call."""
    for one, members in ((state, side), (state.remote, side.remote)):
        if one is None:
            continue
        known = one.made or {}
        for rank, value in one.values.items():
            call, site = known.get(rank, ("", None))
            root = None
            if isinstance(value, Contribution) and value.call.op in _ROOTED:
                root = value.call.root
            elif isinstance(value, Outbox):
                root = value.root
            pid = members.group[rank]
            name = call or public(one.operation)
            made = Made(pid, one.operation, name, site, False, root)
            rounds.setdefault(one.number, {})[pid] = made


_ROOTED = frozenset("bcast gather gatherv scatter scatterv reduce".split())


def _listed(made: Sequence[Made], roots: bool) -> str:
    """`rank 0 called Bcast at a.py:5, ranks 1-2 are in Allreduce at a.py:6`."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for one in made:
        key = one.call, one.site, one.waiting, one.root if roots else None
        groups.setdefault(key, []).append(one.pid)
    said = []
    for (call, site, waiting, root), pids in groups.items():
        verb = "called" if not waiting else "is in" if len(pids) == 1 else "are in"
        place = f" at {_short(site)}" if isinstance(site, CallSite) else ""
        given = "" if root is None else f"(root={root})"
        said.append(f"{text.ranks(pids)} {verb} {call}{given}{place}")
    if len(said) > _MOST:
        said[_MOST:] = [f"{len(said) - _MOST} more differ"]
    return ", ".join(said)


def _short(site: CallSite) -> str:
    return f"{shorten(site.file)}:{site.line}"
