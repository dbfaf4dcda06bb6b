"""The builder that an algorithm uses for its schedule: steps, and nested collectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pysmpi.collectives import buffers, registry
from pysmpi.collectives.call import Call
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.selection import AUTOMATIC, default
from pysmpi.kernel import schedule as steps
from pysmpi.kernel.schedule import AREA, NOTHING, SCRATCH, UNNAMED, Place, Schedule

__all__ = ["NOTHING", "Builder", "Place", "append", "build", "named_schedules"]

# Blocks that a core packs in the time of a wait.
BLOCKS_A_WAIT = 12.0


class Builder:
    """Appends steps to a schedule, for one rank of a call.

    `send`, `recv` and the other steps are those of the schedule, see there. The arguments of each
    step include the address of its bytes. `pysmpi.collectives.buffers` describes the places of a
    call's data.
    """

    __slots__ = (
        "_areas", "irecv", "isend", "now", "ready", "recv", "reduce", "schedule", "send",
        "sendrecv", "setup", "wait", "waitall",
    )  # fmt: skip

    def __init__(self, schedule: Schedule, call: Call, areas: list[int] | None = None) -> None:
        self.schedule = schedule
        self.now = call  # the call of the current steps
        self.ready = call.ready  # the node-level communicators that exist after them
        self.setup = True  # whether node-level communicators cost messages
        self._areas = areas  # the last allocated piece of scratch memory
        # Bound once: an algorithm has many of these steps.
        self.send = schedule.send
        self.recv = schedule.recv
        self.isend = schedule.isend
        self.irecv = schedule.irecv
        self.sendrecv = schedule.sendrecv
        self.wait = schedule.wait
        self.waitall = schedule.waitall
        self.reduce = schedule.reduce

    def share(self, peer: int, nbytes: int, at: Place = UNNAMED, tag: int = 0) -> None:
        """`Schedule.share`."""
        self.schedule.share(peer, nbytes, at, tag)

    def sleep(self, seconds: float) -> None:
        """`Schedule.sleep`."""
        self.schedule.sleep(seconds)

    def pack(self, blocks: int) -> None:
        """Pack many blocks into a message, or take them out of one.

        The bytes take no time here. A block takes a part of the time that the selection has for
        each wait, as on the machine of preset infiniband-edr (osu_alltoall of 1 byte on 64 ranks).
        """
        selection = self.now.selection
        if selection is not None and selection.step > 0.0:
            self.schedule.sleep(blocks * selection.step / BLOCKS_A_WAIT)

    def copy(self, nbytes: int, source: Place = UNNAMED, dest: Place = UNNAMED) -> None:
        """`Schedule.copy`."""
        self.schedule.copy(nbytes, source, dest)

    def move(self, nbytes: int, source: Place, dest: Place) -> None:
        """`Schedule.move`."""
        self.schedule.move(nbytes, source, dest)

    @property
    def slots(self) -> int:
        """The number of requests that the schedule has started so far."""
        return self.schedule.slots

    def scratch(self) -> int:
        """The address of a new piece of scratch memory, as large as need be."""
        areas = self._areas
        if areas is None:
            return SCRATCH  # not used
        areas[0] += AREA
        return areas[0]

    def part(self, call: Call) -> Builder:
        """A builder with its own schedule, which will be appended."""
        part = Builder(Schedule(self.schedule.places is not None), call, self._areas)
        part.setup = self.setup
        part.ready = self.ready
        return part

    def call(self, op: str, algorithm: str | None = None, **changes: Any) -> None:
        """Append another collective of the same communicator, through the selection.

        `changes` replaces fields of the call; `input` and `output` are the places of its data.
        `algorithm` overrides the selection.
        """
        inner = self.now.but(op=op, parts=(), ready=self.ready, **changes)
        self.perform(inner, algorithm)

    def call_on(
        self,
        ranks: Sequence[int],
        op: str,
        algorithm: str | None = None,
        level: str | None = None,
        **changes: Any,
    ) -> None:
        """Append a collective of the ranks in `ranks`, to which the calling rank belongs.

        `changes` uses ranks of the smaller group. `level` marks a communicator that belongs to the
        two-level structure ("leaders" or "node").
        """
        outer = self.now
        nodes, slots = outer.nodes, outer.slots
        inner = outer.but(
            op=op,
            rank=ranks.index(outer.rank),
            size=len(ranks),
            nodes=None if nodes is None else Nodes(nodes[r] for r in ranks),
            slots=None if slots is None else Nodes(slots[r] for r in ranks),
            level=outer.level if level is None else f"{outer.level}/{level}",
            parts=(),
            ready=self.ready,
            **changes,
        )
        part = self.part(inner)
        part.perform(inner, algorithm)
        self.ready = part.ready
        append(self.schedule, part.schedule, ranks)

    def on_node(self, op: str, algorithm: str | None = None, **changes: object) -> None:
        """Append a collective of the ranks of this node; local rank 0 is its root."""
        c = self.now
        local = c.layout.local[c.rank]
        if len(local) > 1:
            self.call_on(local, op, algorithm, "node", **{"root": 0, **changes})

    def on_leaders(self, op: str, algorithm: str | None = None, **changes: object) -> None:
        """Append a collective of the leaders of nodes, if this rank is one of them."""
        c = self.now
        if c.leads and len(c.layout.leaders) > 1:
            self.call_on(c.layout.leaders, op, algorithm, "leaders", **{"root": 0, **changes})

    def prepare_nodes(self) -> None:
        """Append the messages that find the two-level structure, the first time it is needed.

        MPI libraries build the communicators of a node and of the leaders when a communicator
        is first used with a node-aware algorithm, and exchange messages for it.
        """
        level = self.now.level
        if level not in self.ready and self.setup:
            self.ready = self.ready | {level}
            self.call("smp_setup")

    def perform(self, call: Call, name: str | None = None) -> None:
        """Append the steps of `call`, by algorithm or selector `name`, or by the selection."""
        outer, self.now = self.now, call
        chosen_by_selection = name is None
        if name is None:
            selection = call.selection or default()
            name = selection.start(call.op, call.nonblocking)
            if call.level and registry.split(name)[0] == "two_level":
                # The levels of two levels have no levels again.
                name = selection.selector
        algorithms = registry.algorithms_of(call.op)
        if name not in algorithms:
            name, parts = registry.split(name)
            while name not in algorithms:
                selector = registry.find_selector(name)
                if selector.sets_up(call):
                    self.prepare_nodes()
                    call = call.but(ready=self.ready)
                chosen = selector.choose(call)
                if name == AUTOMATIC and call.selection is not None:
                    call = call.but(selection=call.selection.inner())
                name, parts = registry.split(chosen)
                if chosen_by_selection and call.level and name == "two_level":
                    # A selection file may choose it at every level.
                    name, parts = "ompi5", ()
            self.now = call = call.but(parts=parts) if parts else call
        algorithm = algorithms[name]
        if algorithm.elsewhere and call.size & (call.size - 1):
            algorithm = algorithms[algorithm.elsewhere]
        if algorithm.build is not None:
            algorithm.build(self, call)
        elif algorithm.live is not None:
            for part in algorithm.live(call, AllArrived(self)):
                append(self.schedule, part.schedule, range(call.size))
        self.now = outer


LOOK = 1e-4  # seconds of a look for a message (SMPI's option smpi/iprobe)
REST = 1  # distance of the tags of a second part from those of the first


class AllArrived:
    """The view of a rank if all ranks have arrived: for schedules that are made before they run.

    It replaces `running.Lookout`.
    """

    __slots__ = ("builder", "group")

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.group = range(1, builder.now.size)

    def begin(self, call: Call) -> Builder:
        """Begin a part of the schedule."""
        return self.builder.part(call)

    def pause(self) -> Builder:
        """The time of one look."""
        part = self.builder.part(self.builder.now)
        part.sleep(LOOK)
        return part

    def seen(self, peer: int) -> bool:
        """All ranks have arrived."""
        return True

    def publish(self, group: Sequence[int]) -> None:
        """All ranks know the others."""

    def published(self, rank: int) -> Sequence[int]:
        """All but rank 0 are on one list."""
        return self.group

    def before(self, rank: int) -> int:
        """The rank before `rank` on its list."""
        return rank - 1

    def call(self, c: Call, op: str, name: str | None = None, **changes: Any) -> Iterator[Builder]:
        """Another collective of the same communicator; see `running.Lookout`."""
        part = self.builder.part(c)
        part.perform(c.but(op=op, parts=(), **changes), name)
        later(part.schedule)
        yield part


def later(schedule: Schedule) -> None:
    """Distinguish messages from those of an earlier part."""
    schedule.tags = [tag + REST for tag in schedule.tags]


def build(s: Schedule, call: Call, name: str | None = None) -> frozenset[str]:
    """Append the steps of `call` to `s`: by algorithm or selector `name`, or by the selection.

    A communicator of one rank takes no step. Returns the names of the node-level communicators that
    exist afterwards.
    """
    builder = Builder(s, call)
    if call.size > 1 or call.op.startswith("neighbor"):
        if call.op in MEETINGS and call.selection is not None and call.selection.meets:
            meet(builder, call)
        builder.perform(call, name)
        if call.selection is not None and call.selection.step > 0.0:
            pace(s, call.selection.step)
    return builder.ready


_RECEIVING = frozenset((steps.RECV, steps.WAIT, steps.WAITALL))


def pace(s: Schedule, seconds: float) -> None:
    """Let `seconds` pass after each wait of a schedule without places."""
    codes, peers, sizes, tags = s.codes, s.peers, s.sizes, s.tags
    s.codes, s.peers, s.sizes, s.tags = [], [], [], []
    for step in zip(codes, peers, sizes, tags, strict=True):
        for column, value in zip((s.codes, s.peers, s.sizes, s.tags), step, strict=True):
            column.append(value)
        if step[0] in _RECEIVING:
            s.sleep(seconds)


# The collectives that wait for all ranks with SimGrid's option smpi/barrier-collectives.
MEETINGS = frozenset(
    ("bcast", "gather", "gatherv", "scatter", "scatterv", "reduce", "scan", "exscan")
)


def meet(s: Builder, c: Call) -> None:
    """Wait for all ranks, by signals in shared memory, which take no time."""
    if c.nonblocking:
        return
    if c.rank:
        s.share(0, 0)
        s.recv(0, 0)
        return
    for peer in range(1, c.size):
        s.recv(peer, 0)
    for peer in range(1, c.size):
        s.share(peer, 0)


def named_schedules(
    calls: Sequence[Call], name: str | None = None, setup: bool = True
) -> list[Schedule]:
    """The schedules of all ranks, with the bytes of each step.

    They begin with the moves of data at the start of a call (`buffers.enter`). `setup`: whether to
    include the messages with which ranks find their nodes.
    """
    schedules = []
    for call in calls:
        builder = Builder(Schedule(named=True), call, [SCRATCH])
        builder.setup = setup
        inner = buffers.enter(builder, call)
        if call.size > 1 or call.op.startswith("neighbor"):
            builder.perform(inner, name)
        schedules.append(builder.schedule)
    return schedules


_PEER_CODES = frozenset((steps.SEND, steps.ISEND, steps.RECV, steps.IRECV, steps.SHARE))
_TIMED_CODES = frozenset((steps.SLEEP, steps.REDUCE, steps.COPY, steps.COMPUTE))


def append(s: Schedule, part: Schedule, ranks: Sequence[int]) -> None:
    """Append a schedule of the group `ranks` to `s`, with peers as ranks of the whole."""
    slot, amount = s.slots, len(s.amounts)
    for code, peer, size, tag in zip(part.codes, part.peers, part.sizes, part.tags, strict=True):
        if code in _PEER_CODES:
            peer = ranks[peer]
        elif code in _TIMED_CODES:
            peer += amount
        elif code != steps.MOVE:
            peer += slot
            size += slot
        s._step(code, peer, size, tag, None)
    if s.places is not None and part.places is not None:
        s.places[len(s.places) - len(part.places) :] = part.places
    s.slots += part.slots
    s.amounts.extend(part.amounts)
