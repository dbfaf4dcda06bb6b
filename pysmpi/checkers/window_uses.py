"""Uses of the memory of a window, and of local buffers that one-sided calls own."""

from __future__ import annotations

from pysmpi.checkers.clocks import Clock, Stamp
from pysmpi.checkers.describing import place
from pysmpi.checkers.memory import WatchedRegion, overlap, regions_of
from pysmpi.mpi.buffers.spellings import reduction
from pysmpi.mpi.calls import MpiCall
from pysmpi.mpi.rma.arguments import one_sided
from pysmpi.mpi.rma.window import WindowSide
from pysmpi.python.frames import CallSite
from pysmpi.reports.findings import Place

PUTS = frozenset(("Put", "Rput"))
GETS = frozenset(("Get", "Rget"))
_ACCUMULATES = frozenset(
    "Accumulate Raccumulate Get_accumulate Rget_accumulate Fetch_and_op Compare_and_swap".split()
)
COMMUNICATE = PUTS | GETS | _ACCUMULATES


class WindowUse:
    """One access to the memory of a window.

    `pieces` is the memory at the target. `clock` is that of the origin at the call, `done` the
    origin's own count at the call that completed it; None until then. `toward` is the target of the
    one-sided call that it belongs to, -1 if it belongs to none.
    """

    __slots__ = (
        "pid", "call", "site", "kind", "op", "pieces", "clock", "done", "target", "what", "toward",
    )  # fmt: skip

    def __init__(
        self, pid: int, call: MpiCall | None, site: CallSite | None, kind: str,
        pieces: list[WatchedRegion], clock: Stamp, target: int, op: str = "", what: str = "",
    ) -> None:  # fmt: skip
        self.pid = pid
        self.call = call
        self.site = site
        self.kind = kind  # "read", "write" or "update"
        self.op = op
        self.pieces = pieces
        self.clock = clock
        self.done: int | None = None
        self.target = target
        self.what = what
        self.toward = -1

    def before(self, clock: Clock | Stamp) -> bool:
        """Whether it was complete before an event with this clock."""
        return self.done is not None and clock.get(self.pid) >= self.done

    def place(self, note: str) -> Place:
        """Its line in the program."""
        if self.call is not None:
            return place(self.call, note)
        return Place([self.pid], self.what, self.site, note)


class LocalBuffers:
    """The memory of its rank that a one-sided call owns until it is complete at the origin."""

    __slots__ = ("call", "target", "key", "reads", "writes")

    def __init__(
        self, call: MpiCall, target: int, key: int, reads: list[WatchedRegion],
        writes: list[WatchedRegion],
    ) -> None:  # fmt: skip
        self.call = call
        self.target = target
        self.key = key
        self.reads = reads
        self.writes = writes

    def meets(self, reads: list[WatchedRegion], writes: list[WatchedRegion]) -> bool:
        """Whether an access to other memory conflicts with it."""
        return (
            overlap(writes, self.writes)
            or overlap(writes, self.reads)
            or overlap(reads, self.writes)
        )


class SideState:
    """The epochs of one process at one window, and its accesses that are not complete."""

    __slots__ = ("fence", "used", "inner", "opened", "pending", "fenced_before", "buffers")

    def __init__(self) -> None:
        self.fence: MpiCall | None = None  # that may have opened an epoch
        self.fenced_before = False  # whether it also closed one
        self.used: MpiCall | None = None  # the first access since
        self.inner: MpiCall | None = None  # another kind of epoch since
        self.opened: dict[tuple[str, int], MpiCall] = {}
        self.pending: list[WindowUse] = []
        self.buffers: list[LocalBuffers] = []


def access_memory(
    call: MpiCall, other: WindowSide
) -> tuple[list[WatchedRegion], list[WatchedRegion], list[WatchedRegion]]:
    """The memory at the target, and the memory that the call reads and writes at the origin."""
    arguments = call.arguments
    rank = int(arguments["target_rank"])
    if "target_disp" in arguments:  # one element
        data = reduction(arguments["origin"], False, rank)
        result = reduction(arguments["result"], True, rank)
        region = other.locate(call.values[0], int(arguments["target_disp"]), 1, data.datatype)
        reads = regions_of(data)
        if "compare" in arguments:
            reads += regions_of(reduction(arguments["compare"], False, rank))
        return regions_of(region), reads, regions_of(result)
    data, where = one_sided(arguments["origin"], False, rank, arguments["target"])
    region = other.locate(call.values[0], where.displacement, where.count, where.datatype)
    if call.name in GETS:
        return regions_of(region), [], regions_of(data)
    if "result" in arguments:
        result = reduction(arguments["result"], True, rank)
        return regions_of(region), regions_of(data), regions_of(result)
    return regions_of(region), regions_of(data), []


def conflict(one: WindowUse, other: WindowUse) -> bool:
    """Whether two kinds of access may not happen in any order."""
    if one.kind == other.kind == "read":
        return False
    if one.kind == other.kind == "update":
        alike = one.op == other.op or "NO_OP" in (one.op, other.op)
        return not alike
    return True
