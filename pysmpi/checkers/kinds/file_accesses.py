"""Accesses of ranks to the same bytes of a file, without the order that MPI asks for."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from pysmpi.checkers.base import Checker
from pysmpi.checkers.clocks import Stamp
from pysmpi.checkers.describing import place
from pysmpi.checkers.memory import WatchedRegion
from pysmpi.checkers.problems.file_accesses import FileConflict
from pysmpi.checkers.registry import checker
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure, Role
from pysmpi.mpi.files.access import WATCHER, FileAccess
from pysmpi.mpi.files.files import File
from pysmpi.mpi.files.pointers import FileSide
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding

_COMPARED = 1_000_000  # pairs of accesses to one file with a range in common
_RULE = (
    "MPI 4.1, section 14.6.1: conflicting accesses need atomic mode and one Open, or Sync (Close) "
    "after the first, Sync (Open) before the second, and an order of these two calls"
)


class OpenSide:
    """One rank's part of an open file: the calls that make data visible, in their order."""

    __slots__ = ("counts", "file", "stamps")

    def __init__(self, file: object) -> None:
        self.file = file
        self.counts: list[int] = []  # by the rank's clock, of Open, Sync and Close
        self.stamps: list[Stamp] = []

    def visible(self, count: int) -> int | None:
        """The count of the first call after an access that ended at a count."""
        at = bisect_left(self.counts, count)
        return self.counts[at] if at < len(self.counts) else None

    def current(self, count: int) -> Stamp | None:
        """The clock at the last call before an access that began at a count."""
        at = bisect_right(self.counts, count)
        return self.stamps[at - 1] if at else None


class NotedAccess:
    """An access to a file: its call, and the clocks of its rank at its begin and end."""

    __slots__ = ("access", "atomic", "call", "clock", "ended", "high", "low", "pid", "region",
                 "side", "write")  # fmt: skip

    def __init__(self, call: MpiCall, side: OpenSide, access: FileAccess, clock: Stamp) -> None:
        self.call = call
        self.pid = call.rank.pid
        self.side = side
        self.access: FileAccess | None = access
        self.write = access.write
        self.atomic = access.side.file.atomic
        self.clock = clock
        self.ended: int | None = None
        self.low = self.high = 0
        self.region: WatchedRegion | None = None

    def settle(self) -> None:
        """Compute the bytes, and let go of the data."""
        access, self.access = self.access, None
        if access is not None and access.nbytes and not access.error and hasattr(access, "pieces"):
            pieces = access.pieces
            self.low, self.high = pieces.low, pieces.high
            if pieces.count > 1:
                order = np.argsort(pieces.offsets, kind="stable")
                starts = pieces.offsets[order]
                stops = np.maximum.accumulate(starts + pieces.lengths[order])
                self.region = WatchedRegion.of_intervals(starts, stops)

    def meets(self, other: NotedAccess) -> bool:
        """Whether the two, whose ranges overlap, have a byte in common."""
        if self.region is None and other.region is None:
            return True
        mine = self.region or WatchedRegion(self.low, self.high)
        return mine.overlaps(other.region or WatchedRegion(other.low, other.high))

    def precedes(self, other: NotedAccess) -> bool:
        """Whether another access is certain to follow, and to see this one."""
        if self.ended is None:
            return False
        same_file = self.side.file is other.side.file
        if self.pid == other.pid:
            over = self.ended < other.clock.count
            if same_file or not over:
                return over
        elif other.clock.get(self.pid) <= self.ended:
            return False
        if not self.write:
            return True  # what was read does not change afterwards
        visible, current = self.side.visible(self.ended), other.side.current(other.clock.count)
        if visible is None or current is None:
            return False
        return current.get(self.pid) > visible


class FileChecks(Checker):
    """Notes each access to a file, and compares them once the run is over."""

    needs_clocks: ClassVar[bool] = True

    def __init__(self) -> None:
        self.sides: dict[FileSide, OpenSide] = {}
        self.of_files: dict[str, list[NotedAccess]] = {}
        self.pending: dict[int, NotedAccess] = {}  # by id of the access
        self.awaited: dict[int, list[NotedAccess]] = {}  # by id of the call

    def concerns(self, event: str, procedure: Procedure) -> bool:
        """Calls of files, and those with requests."""
        return procedure.kind is CallKind.FILE or Role.REQUEST in procedure.places

    def begin(self, simulation: Simulation) -> None:
        """Hear of the accesses of the run."""
        WATCHER.put(simulation.universe, self._begun)

    def _side(self, side: FileSide) -> OpenSide:
        noted = self.sides.get(side)
        if noted is None:
            noted = self.sides[side] = OpenSide(side.file)
        return noted

    def _visit(self, side: OpenSide, pid: int) -> None:
        stamp = self.session.clocks.stamp(pid)
        side.counts.append(stamp.count)
        side.stamps.append(stamp)

    def _begun(self, access: FileAccess) -> None:
        call = self.session.call_on(access.rank.process)
        if call is None or access.nbytes == 0:
            return
        side = access.side
        noted = NotedAccess(
            call, self._side(side), access, self.session.clocks.stamp(call.rank.pid)
        )
        self.of_files.setdefault(os.path.realpath(side.file.storage.path), []).append(noted)
        self.pending[id(access)] = noted

    def call_made(self, call: MpiCall) -> None:
        """Note the accesses that a call may complete, and the calls that make data visible."""
        if call.operations:
            accesses = [self.pending[id(one)] for one in call.operations if id(one) in self.pending]
            if accesses:
                self.awaited[id(call)] = accesses
        if call.kind is CallKind.FILE and call.name in ("Sync", "Close"):
            side = _side_of(call)
            if side is not None:
                self._visit(self._side(side), call.rank.pid)

    def call_returned(self, call: MpiCall, result: object) -> None:
        """Note the accesses that are complete."""
        noted = self.awaited.pop(id(call), [])
        if call.kind is CallKind.FILE:
            if call.name == "Open" and isinstance(result, File):
                side = result._impl
                if isinstance(side, FileSide):
                    self._visit(self._side(side), call.rank.pid)
            elif call.name[0] != "I" and not call.name.endswith("_begin"):
                side = _side_of(call)
                if side is not None:
                    split = side.split[1] if side.split is not None else None
                    noted += [
                        one for one in self.pending.values()
                        if one.access is not None and one.access.side is side
                        and one.access is not split and one.call.name[0] != "I"
                    ]  # fmt: skip
        count = self.session.clocks.now(call.rank.pid).count
        for one in noted:
            access = one.access
            if access is not None and access.request is not None and access.request.done:
                one.ended = count
                self.pending.pop(id(access), None)
                one.settle()

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """Forget the call."""
        self.awaited.pop(id(call), None)

    def finish(self, simulation: Simulation) -> None:
        """Compare the accesses to each file."""
        for one in self.pending.values():
            one.settle()
        for path, accesses in self.of_files.items():
            reported: set[tuple[object, object]] = set()
            for first, second in _pairs(accesses):
                key = first.call.site, second.call.site
                if key not in reported and _conflict(first, second):
                    reported.add(key)
                    self.session.report(_finding(path, first, second))


def _side_of(call: MpiCall) -> FileSide | None:
    side = getattr(call.values[0], "_impl", None) if call.values else None
    return side if isinstance(side, FileSide) else None


def _pairs(accesses: Iterable[NotedAccess]) -> Iterator[tuple[NotedAccess, NotedAccess]]:
    """The accesses whose ranges overlap, of which one at least writes."""
    active: dict[bool, list[NotedAccess]] = {False: [], True: []}  # by whether they write
    count = 0
    for one in sorted((one for one in accesses if one.low < one.high), key=_low):
        for kind in (True, False) if one.write else (True,):
            left = active[kind] = [other for other in active[kind] if other.high > one.low]
            for other in left:
                count += 1
                if count > _COMPARED:
                    return
                yield other, one
        active[one.write].append(one)


def _low(noted: NotedAccess) -> int:
    return noted.low


def _conflict(one: NotedAccess, other: NotedAccess) -> bool:
    """Whether two accesses reach the same bytes and have no order."""
    if one.side.file is other.side.file and one.atomic and other.atomic:
        return False
    return not one.precedes(other) and not other.precedes(one) and one.meets(other)


def _finding(path: str, one: NotedAccess, other: NotedAccess) -> Finding:
    if (other.pid, other.clock.count) < (one.pid, one.clock.count):
        one, other = other, one
    low, high = max(one.low, other.low), min(one.high, other.high)
    separate = one.side.file is not other.side.file
    cure = "access different bytes, or call Sync, Barrier and Sync between the two"
    if not separate:
        cure += ", or Set_atomicity(True) before them"
    return Finding(
        FileConflict,
        f"{one.call.name} and {other.call.name} reach the same bytes of {os.path.basename(path)} "
        f"(between {low:,} and {high:,}), without an order",
        [place(each.call, "writes them" if each.write else "reads them") for each in (one, other)],
        _RULE,
        cure,
        more=["the two handles are of different calls of Open"] if separate else [],
    )


checker("files", "accesses of ranks to the same bytes of a file that have no order")(FileChecks)
