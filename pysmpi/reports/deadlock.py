"""Deadlocks: no event is left, and ranks still wait.

`find_deadlock` makes the report from the waits of all ranks: the lines, the odd one out, the reason
by MPI's rules, and a cycle of waiting ranks.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from pysmpi import diagnostics, text
from pysmpi.errors import PysmpiError
from pysmpi.mpi.base.constants import ERR_PENDING
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.point_to_point.partitioned import Partitioned
from pysmpi.python.frames import CallSite, shorten
from pysmpi.python.records import record
from pysmpi.ranks.instruments import Instrument
from pysmpi.reports.causes import Causes
from pysmpi.reports.unstarted import partitions
from pysmpi.reports.waiting import Piece, Wait, WaitFinder

if TYPE_CHECKING:
    from pysmpi.ranks.simulation import Simulation

# A rank's call of `sys.exit`, and its line.
Exit = tuple[str, CallSite | None]

_PIECES = 3  # shown operations of one waiting call


class DeadlockError(PysmpiError, MPIException):
    """Raised in every waiting rank, under `--on-deadlock raise`.

    As an MPI error it has the class `ERR_PENDING`: the started operations will never complete.
    """

    exit_status = 3

    def __init__(self, deadlock: DeadlockReport) -> None:
        MPIException.__init__(self, ERR_PENDING)
        self.deadlock = deadlock

    def __str__(self) -> str:
        return str(self.deadlock)

    def __reduce__(self) -> Any:
        return RuntimeError, (str(self),)


@record
class WaitingGroup:
    """Ranks that wait in the same call at the same line. `odd` marks the odd one out."""

    pids: list[int]
    what: str
    site: CallSite | None
    waits: list[Wait] = field(default_factory=list)
    odd: bool = False
    verb: str = ""  # instead of "wait in"


@record
class DeadlockReport:
    """A deadlock: its date (s), the groups of waiting ranks, and the parts of the report.

    `why` has the reasons by MPI's rules, one in each line; `cycle` is a cycle of (rank, call) in
    which each waits for the next, or empty. `finished` are the ranks that have ended; `exits` has
    the argument and the line of `sys.exit` for those that called it.
    """

    seconds: float
    groups: list[WaitingGroup]
    finished: list[int]
    why: list[str]
    cycle: list[tuple[int, str]]
    outlook: str
    command: str = ""
    exits: Mapping[int, Exit] = field(default_factory=dict)

    code = diagnostics.Deadlock.code
    title = diagnostics.Deadlock.title

    def exception(self) -> DeadlockError:
        """The error to raise in a rank that waits."""
        return DeadlockError(self)

    def __str__(self) -> str:
        waiting = len({pid for group in self.groups for pid in group.pids})
        lines = [
            f"{self.code} {self.title} at t={text.seconds(self.seconds)} (simulated): "
            f"{text.count(waiting, 'rank')} {'waits' if waiting == 1 else 'wait'}, "
            "none can go on"
        ]
        lines += table(self.groups, self.finished, self.exits)
        for i, reason in enumerate(self.why):
            lines.append(("  why: " if i == 0 else "       ") + reason)
        if self.cycle:
            steps = [
                f"{pid} -> {following} ({call})"
                for (pid, call), (following, _) in zip(
                    self.cycle, self.cycle[1:] + self.cycle[:1], strict=True
                )
            ]
            if len(steps) > 8:
                steps[7:] = [f"... {len(steps) - 7} more"]
            lines.append("  cycle: " + "   ".join(steps))
        lines.append(f"  real MPI: {self.outlook}   help: pysmpi explain {self.code}")
        if self.command:
            lines.append(f"  again: {self.command}")
        return "\n".join(lines)


class LivelockReport(DeadlockReport):
    """All running ranks only test, without success."""

    code = diagnostics.Livelock.code
    title = diagnostics.Livelock.title


def table(
    groups: Sequence[WaitingGroup], finished: Sequence[int], exits: Mapping[int, Exit] | None = None
) -> list[str]:
    """A line for each group of ranks, for those that left at one place, and for the finished."""
    rows = []
    for group in groups:
        verb = group.verb or ("waits in" if len(group.pids) == 1 else "wait in")
        place = "" if group.verb else "after the end of the program"
        if group.site is not None:
            place = _place(group.site)
        mark = "<- odd one out" if group.odd else ""
        rows.append((text.ranks(group.pids), f"{verb} {group.what}".rstrip(), place, mark))
    left: dict[Exit, list[int]] = {}
    for pid, exit in (exits or {}).items():
        left.setdefault(exit, []).append(pid)
    for (call, site), pids in left.items():
        place = "" if site is None else _place(site)
        rows.append((text.ranks(pids), f"ended by {call}", place, ""))
    finished = [pid for pid in finished if pid not in (exits or {})]
    if finished:
        verb = "has" if len(finished) == 1 else "have"
        rows.append((text.ranks(finished), f"{verb} finished", "", ""))
    widths = [min(72, max((len(row[i]) for row in rows), default=0)) for i in range(3)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0])).rstrip()
        for row in rows
    ]


def _place(site: CallSite) -> str:
    place = f"{shorten(site.file)}:{site.line}"
    return place if site.function == "<module>" else f"{place} in {site.function}"


def _exits(simulation: Simulation, pids: Iterable[int]) -> dict[int, Exit]:
    """The ranks that called `sys.exit`, with the argument and the line."""
    result: dict[int, Exit] = {}
    for pid in pids:
        exit = simulation.outcomes[pid].exit
        if exit is not None:
            code, site = exit
            what = "" if code is None else textwrap.shorten(repr(code), 40, placeholder="...")
            result[pid] = f"sys.exit({what})", site
    return result


def find_deadlock(simulation: Simulation) -> DeadlockReport:
    """The outcome of a simulation in which no event is left."""
    universe = simulation.universe
    finder = WaitFinder(simulation)
    polling = simulation.polling
    waiting = simulation.waiting()
    waits = [wait for rank in waiting for wait in finder.waits(rank)]
    tests = [wait for wait in waits if wait.pid in polling and not wait.thread]
    beats = [wait for wait in waits if wait.beats and wait.thread]
    for wait in beats:
        wait.pieces.clear()  # the end of a sleep
    if tests or beats:
        waits = [wait for wait in waits if wait not in tests and wait not in beats]
    alive = {rank.pid for rank in waiting}
    finished = [rank.pid for rank in universe.ranks if rank.pid not in alive]
    causes = Causes(finder, waits, set(finished))
    groups = group_waits(waits, bool(finished or tests or beats))
    reasons = causes.reasons([group.waits[0] for group in sorted(groups, key=_size)])
    outlook = causes.outlook()
    if tests:
        for group in group_waits(tests):
            group.verb = "tests in" if len(group.pids) == 1 else "test in"
            group.odd = False
            groups.insert(0, group)
        most = simulation.watch.most
        for wait in tests:
            for operation in () if wait.made is None else wait.made.operations:
                if isinstance(operation, Partitioned):
                    reasons = list(dict.fromkeys([*partitions(operation), *reasons]))
        if not simulation.beating:
            reasons.insert(0, f"{most:,} tests in a row have failed, and no other event happens")
        outlook = "tests for ever."
    for group in group_waits(beats):
        group.verb = "beats in" if len(group.pids) == 1 else "beat in"
        group.odd = False
        groups.append(group)
    if simulation.beating:
        reasons.insert(0, f"{simulation.vain}; nothing else is left that could happen")
    kind = LivelockReport if tests else DeadlockReport
    return kind(
        simulation.engine.now,
        groups,
        finished,
        reasons,
        [] if tests else causes.cycle(),
        outlook,
        simulation.command,
        _exits(simulation, finished),
    )


class Deadlocks(Instrument):
    """Reports the deadlock of a run, or raises it in the ranks (`--on-deadlock`)."""

    def __init__(self, on_deadlock: str) -> None:
        self.on_deadlock = on_deadlock
        self.report: DeadlockReport | None = None

    def deadlock_reached(self, simulation: Simulation) -> bool:
        """No rank can go on."""
        report = find_deadlock(simulation)
        if self.on_deadlock == "raise":
            return simulation.break_deadlock(report)
        self.report = report
        return False

    def finish(self, result: Any) -> None:
        result.deadlock = self.report


def _size(group: WaitingGroup) -> int:
    return len(group.pids)


def group_waits(waits: Iterable[Wait], others: bool = False) -> list[WaitingGroup]:
    """Waiting ranks by their call, the larger groups first, the odd one out marked.

    `others` is true if there are ranks that do not wait.
    """
    found: dict[tuple[Any, ...], list[Wait]] = {}
    for wait in waits:
        key = (
            wait.call,
            wait.site,
            wait.comm,
            wait.thread > 0,
            bool(wait.joins),
            type(wait.ended_by),
            tuple(wait.arguments),
            tuple(
                (piece.name, piece.site, piece.prepared, *piece.arguments)
                for piece in wait.pieces[:_PIECES]
            ),
            min(len(wait.pieces), _PIECES + 1),
        )
        found.setdefault(key, []).append(wait)
    groups = [
        WaitingGroup(
            sorted({wait.pid for wait in members}), describe(members), members[0].site, members
        )
        for members in found.values()
    ]
    for group in groups:
        first = group.waits[0]
        if first.joins:
            group.verb = "at its end," if len(group.pids) == 1 else "at their end,"
            group.verb += " waits for" if len(group.pids) == 1 else " wait for"
    groups.sort(key=lambda group: (-len(group.pids), group.pids[0]))
    if len(groups) > 1:
        last, total = groups[-1], sum(len(group.pids) for group in groups)
        alone = len(last.pids) < len(groups[-2].pids)
        last.odd = alone and 2 * len(last.pids) < total and not others
    return groups


def describe(members: Sequence[Wait]) -> str:
    """The call of waiting ranks, such as `Recv(source=0, tag=7)`; members differ in values only."""
    first = members[0]
    comm = "" if first.comm in ("", "WORLD") else f" on {first.comm}"
    if first.spins:
        return first.call
    if first.joins:
        return f"{_thread(members, [wait.joins for wait in members])}"
    names = [wait.thread_name for wait in members]
    thread = f" in {_thread(members, names)}" if first.thread else ""
    direct = len(first.pieces) == 1 and first.pieces[0].name == first.call
    if direct:
        inner = _piece_arguments([wait.pieces[0] for wait in members], members)
        return f"{first.call}({inner}){comm}{thread}"
    inner = ", ".join(
        f"{name}={_merge([wait.arguments[name] for wait in members], members, first.communicator)}"
        for name in first.arguments
    )
    named = [i for i, piece in enumerate(first.pieces[:_PIECES]) if piece.name]
    parts = [
        f"{first.pieces[i].name}"
        f"({_piece_arguments([wait.pieces[i] for wait in members], members)})"
        f"{_started(first.pieces[i])}"
        for i in named
    ]
    if len(first.pieces) > _PIECES:
        parts.append("...")
    what = f"{first.call}({inner}){comm}{thread}"
    return f"{what} for {', '.join(parts)}" if parts else what


def _thread(members: Sequence[Wait], names: Sequence[str]) -> str:
    """One name of a thread of each of some ranks."""
    labels = sorted(set(names))
    if not labels[0]:
        return "a thread"
    return "thread " + (labels[0] if len(labels) == 1 else f"{labels[0]} .. {labels[-1]}")


def _started(piece: Piece) -> str:
    """The line that started an operation, if that is not the line that waits."""
    if piece.site is None:
        return ""
    started = f"{shorten(piece.site.file)}:{piece.site.line}"
    if piece.prepared is None:
        return f" of {started}"
    return f" of {shorten(piece.prepared.file)}:{piece.prepared.line}, started at {started}"


def _piece_arguments(pieces: Sequence[Piece], members: Sequence[Wait]) -> str:
    first = pieces[0]
    parts = [
        f"{name}={_merge([piece.arguments[name] for piece in pieces], members, first.communicator)}"
        for name in first.arguments
    ]
    sizes = {piece.nbytes for piece in pieces}
    if len(sizes) == 1 and first.nbytes is not None:
        parts.append(text.count(first.nbytes, "byte"))
    return ", ".join(parts)


def _merge(
    values: Sequence[Any], members: Sequence[Wait], communicator: Communicator | None
) -> str:
    """The common value, a formula of the rank, or several of the values."""
    if all(value == values[0] for value in values):
        return str(values[0])
    if communicator is not None and all(isinstance(value, int) for value in values):
        ranks = [
            communicator.rank_of(wait.pid) for wait in members if wait.pid in communicator.group
        ]
        if len(ranks) == len(values):
            size = communicator.remote.size
            shifts = {(value - rank) % size for value, rank in zip(values, ranks, strict=True)}
            if len(shifts) == 1 and all(0 <= value < size for value in values):
                shift = shifts.pop()
                if shift == 0:
                    return "rank"
                return f"rank+{shift}" if 2 * shift <= size else f"rank-{size - shift}"
    shown = sorted({str(value) for value in values}, key=lambda item: (len(item), item))
    return "/".join(shown) if len(shown) <= 3 else f"{shown[0]}..{shown[-1]}"
