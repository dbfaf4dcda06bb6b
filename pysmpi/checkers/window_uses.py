"""Uses of the memory of a window, and of local buffers that one-sided calls own."""

from __future__ import annotations

from typing import NamedTuple

from pysmpi.checkers.clocks import Clock, Stamp
from pysmpi.checkers.describing import op_name, places
from pysmpi.checkers.memory import WatchedRegion, overlap
from pysmpi.checkers.signatures import basic_name
from pysmpi.mpi.base.constants import PROC_NULL
from pysmpi.mpi.buffers.spellings import MessageRegion, reduction
from pysmpi.mpi.calls import MpiCall
from pysmpi.mpi.datatypes.layouts import leaves
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.mpi.rma.arguments import one_sided
from pysmpi.mpi.rma.calls import is_no_op
from pysmpi.mpi.rma.window import WindowSide
from pysmpi.python.frames import CallSite
from pysmpi.reports.findings import Place

PUTS = frozenset(("Put", "Rput"))
GETS = frozenset(("Get", "Rget"))
_ACCUMULATES = frozenset(
    "Accumulate Raccumulate Get_accumulate Rget_accumulate Fetch_and_op Compare_and_swap".split()
)
COMMUNICATE = PUTS | GETS | _ACCUMULATES
# Calls that tell the origin what others have written; a lock of the program may be made of them.
FETCHES = frozenset(
    ("Fetch_and_op", "Compare_and_swap", "Get_accumulate", "Rget_accumulate")
)  # fmt: skip
_REPLACING = {"swap", "REPLACE"}


class WindowUse:
    """One access to the memory of a window.

    `pieces` is the memory at the target. `clock` is that of the origin at the call, `done` the
    origin's own count at the call that completed it; None until then. `toward` is the target of the
    one-sided call that it belongs to, -1 if it belongs to none. `prepared` is the call that made a
    persistent request. `types` are the basic datatypes of an update, with their sizes (bytes).
    """

    __slots__ = (
        "pid", "call", "site", "kind", "op", "pieces", "clock", "done", "target", "what", "toward",
        "prepared", "types",
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
        self.prepared = call
        self.types: dict[str, int] = {}

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.kind == "read" or self.op == "NO_OP"

    def before(self, clock: Clock | Stamp) -> bool:
        """Whether it was complete before an event with this clock."""
        return self.done is not None and clock.get(self.pid) >= self.done

    def places(self) -> list[Place]:
        """Its lines in the program."""
        if self.call is not None and self.prepared is not None:
            return places(self.call, self.prepared)
        return [Place([self.pid], self.what, self.site, "")]


class LocalBuffers:
    """The memory of its rank that a one-sided call owns until it is complete at the origin.

    `handle` is its request, if the call returns one; `use` is its access to the window.
    """

    __slots__ = ("call", "target", "use", "reads", "writes", "handle")

    def __init__(
        self, call: MpiCall, target: int, use: WindowUse, reads: list[WatchedRegion],
        writes: list[WatchedRegion],
    ) -> None:  # fmt: skip
        self.call = call
        self.target = target
        self.use = use
        self.handle: Request | None = None
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


class AccessMessages(NamedTuple):
    """The memory of a one-sided call: at the target, and what it reads and writes at the origin."""

    target: MessageRegion
    reads: list[MessageRegion]
    writes: list[MessageRegion]


def access_messages(call: MpiCall) -> AccessMessages | None:
    """The memory of a one-sided call; None if it reaches no process, or its arguments are wrong."""
    try:
        arguments = call.arguments
        rank = int(arguments["target_rank"])
        side = call.values[0]._impl
        if rank == PROC_NULL or side is None:
            return None
        return _messages(call, rank, side.window.sides[rank])
    except Exception:  # the call itself will refuse the arguments
        return None


def _messages(call: MpiCall, rank: int, other: WindowSide) -> AccessMessages:
    arguments = call.arguments
    window = call.values[0]
    ignored = is_no_op(arguments.get("op"))  # then the origin
    if "target_disp" in arguments:  # one element
        result = reduction(arguments["result"], True, rank)
        region = other.locate(window, int(arguments["target_disp"]), 1, result.datatype)
        names = ("origin", "compare") if "compare" in arguments else ("origin",)
        reads = [] if ignored else [reduction(arguments[name], False, rank) for name in names]
        return AccessMessages(region, reads, [result])
    fetches = call.name in GETS
    data, where = one_sided(arguments["origin"], fetches, rank, arguments["target"], ignored)
    region = other.locate(window, where.displacement, where.count, where.datatype)
    if fetches:
        return AccessMessages(region, [], [data])
    results = [reduction(arguments["result"], True, rank)] if "result" in arguments else []
    return AccessMessages(region, [] if ignored else [data], results)


def written_by(call: MpiCall) -> list[MessageRegion]:
    """The memory that a one-sided call writes to, at the origin and at the target."""
    messages = access_messages(call)
    if messages is None:
        return []
    fetches = call.name in GETS or is_no_op(call.arguments.get("op"))
    return [*messages.writes, *([] if fetches else [messages.target])]


def accumulated(call: MpiCall) -> tuple[str, str]:
    """The kind of an access, and its operator if it accumulates."""
    if call.name in PUTS:
        return "write", ""
    if call.name in GETS:
        return "read", ""
    return "update", "swap" if call.name == "Compare_and_swap" else op_name(call.arguments["op"])


def conflict(one: WindowUse, other: WindowUse) -> bool:
    """Whether two kinds of access may not happen in any order."""
    if one.reads and other.reads:
        return False
    if one.kind == other.kind == "update":
        operators = {one.op, other.op} - {"NO_OP"}
        return (len(operators) > 1 and operators != _REPLACING) or _elements_differ(one, other)
    return True


def _elements_differ(one: WindowUse, other: WindowUse) -> bool:
    """Whether two updates are not of the same elements: other datatypes, or shifted ones."""
    if one.types.keys().isdisjoint(other.types):
        return True
    if len(one.types) > 1 or one.types != other.types:
        return False
    (size,) = one.types.values()
    return any((a.low - b.low) % size for a in one.pieces for b in other.pieces if a.overlaps(b))


def basic_types(message: MessageRegion) -> dict[str, int]:
    """The basic datatypes of a message, with their sizes (bytes)."""
    record = message.datatype._impl
    if record is None:
        return {}
    basic = [record] if record.unit else leaves(record.layout.signature)
    return {basic_name(each): each.layout.size for each in basic}
