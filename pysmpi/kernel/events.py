"""The event queue: the next events in virtual time."""

from typing import Final, Optional

from mypy_extensions import i64


class Event:
    """Something that happens at a time. The engine calls `fire` when the clock reaches it."""

    def fire(self) -> None:
        raise RuntimeError("an event must define its action")


NO_EVENT: Final = Event()
INFINITY: Final = float("inf")
# If the heap has more than `LARGE` nodes, the later ones wait in this number of buckets. An event
# then takes 45 % less processor time with 60,000 events in the queue, and 15 % with 4,000: the heap
# stays in the caches. Four times as many buckets, or a quarter, give the same.
BUCKETS: Final = 512
LARGE: Final = 4 * BUCKETS


class QueueEntry:
    """An event and its time (s): a node of the heap, or a follower of a node.

    The queue reuses entries: most events are due soon, so few entries exist at a time.
    """

    def __init__(self, event: Event) -> None:
        self.event: Event = event
        self.time: float = 0.0
        self.turn: i64 = 0  # the number of the node in the order of insertion
        self.child: Optional[QueueEntry] = None  # the first of the nodes below
        self.sibling: Optional[QueueEntry] = None  # the next node with the same parent
        self.after: Optional[QueueEntry] = None  # the next follower, at the same time


class EventQueue:
    """The clock, and events by time (s); events of one time keep the order of their addition.

    The nodes of a pairing heap (Fredman, Sedgewick, Sleator and Tarjan, Algorithmica 1, 1986) are
    ordered by time and turn. If many processes do the same at the same instant, as in parallel
    programs, the next event often has the time of the previous one. The queue then links it to the
    previous one as a follower, outside of the heap.

    A heap of the events of a large job does not fit into the caches of a processor, and `pop`
    touches several nodes. If there are more than `LARGE` nodes, the heap holds only the nodes that
    are due next. The later ones wait in `buckets` of equal spans of time, and the nodes beyond all
    buckets wait in one list. This does not change the order.
    """

    def __init__(self) -> None:
        self.now: float = 0.0
        self.root: Optional[QueueEntry] = None  # None only if there is no event at all
        self.latest: Optional[QueueEntry] = (
            None  # the latest addition, unless its node has been taken out
        )
        self.turns: i64 = 0
        self.free: Optional[QueueEntry] = None  # unused entries, linked by `after`
        self.nodes: int = 0  # number of nodes in the heap
        self.limit: int = LARGE  # more nodes in the heap are distributed over new buckets
        # The first node of each bucket; `sibling` links the others. A node `x` buckets after the
        # time `start` is in the heap if `x` is below `edge`. Without buckets, all are in the heap.
        self.buckets: list[Optional[QueueEntry]] = []
        self.start: float = 0.0
        self.rate: float = 0.0  # buckets a second
        self.edge: float = 0.0
        self.current: int = 0  # index of the latest bucket whose nodes went into the heap
        self.beyond: Optional[QueueEntry] = (
            None  # nodes later than all buckets, linked by `sibling`
        )

    def push(self, time: float, event: Event) -> None:
        """Let `event` fire at `time` (s)."""
        entry = self.free
        if entry is None:
            entry = QueueEntry(event)
        else:
            self.free = entry.after
            entry.after = None
            entry.event = event
        entry.time = time
        latest = self.latest
        self.latest = entry
        if latest is not None and latest.time == time:
            latest.after = entry
            return
        self.turns += 1
        entry.turn = self.turns
        if self.rate > 0.0 and (time - self.start) * self.rate >= self.edge:
            self._put_into_bucket(entry)
            return
        self._insert(entry)
        if self.nodes > self.limit:
            self._distribute()

    def empty(self) -> bool:
        """Whether no event is left."""
        return self.root is None

    def next(self) -> float:
        """The time (s) of the earliest event; the queue must not be empty."""
        root = self.root
        assert root is not None
        return root.time

    def pop(self) -> QueueEntry:
        """Take out the earliest event with its followers; the queue must not be empty."""
        root = self.root
        assert root is not None
        latest = self.latest
        if latest is not None and latest.time == root.time:
            self.latest = None
        children = root.child
        root.child = None
        root.sibling = None
        self.nodes -= 1
        if children is not None:
            self.root = merge_siblings(children)
        else:
            self.root = None
            if self.rate > 0.0:
                self._refill()
        return root

    def release(self, entry: QueueEntry) -> None:
        """Reuse an entry that was taken out."""
        entry.event = NO_EVENT
        entry.after = self.free
        self.free = entry

    def put_back(self, entry: QueueEntry, turn: i64) -> None:
        """Return the followers that are left of a node that was taken out; `turn` was its turn."""
        entry.turn = turn
        self._insert(entry)

    def all(self) -> "list[tuple[float, Event]]":
        """All events with their times (s), in their order."""
        return events_of(ordered(self._nodes(INFINITY)))

    def at(self, time: float) -> "list[Event]":
        """The events at a time (s), in their order."""
        return [event for due, event in events_of(ordered(self._nodes(time))) if due == time]

    def remove(self, time: float, event: Event) -> None:
        """Remove an event at `time` (s); the other events keep their order."""
        events = self.all()
        events.remove((time, event))
        self.keep_only(events)

    def keep_only(self, events: "list[tuple[float, Event]]") -> None:
        """Drop all events but these, which are a part of `all`, in this order."""
        self._clear()
        self.latest = None
        for time, event in events:
            self.push(time, event)

    # Buckets

    def _put_into_bucket(self, node: QueueEntry) -> None:
        """Put a node into its bucket, or into the list beyond all buckets."""
        bucket = (node.time - self.start) * self.rate
        if bucket < BUCKETS:
            i = int(bucket)
            node.sibling = self.buckets[i]
            self.buckets[i] = node
        else:
            node.sibling = self.beyond
            self.beyond = node

    def _distribute(self) -> None:
        """Distribute all nodes over new buckets, of another span than before."""
        nodes = self._nodes(INFINITY)
        self._clear()
        for node in nodes:
            node.child = None
            node.sibling = self.beyond
            self.beyond = node
        self._fill_buckets(len(nodes))
        self.limit = max(LARGE, 2 * self.nodes, len(nodes) // 8)

    def _clear(self) -> None:
        """Remove all nodes and all buckets."""
        self.root = self.beyond = None
        self.nodes = 0
        self.rate = 0.0
        self.buckets = []
        self.limit = LARGE

    def _fill_buckets(self, count: int) -> None:
        """Distribute the `count` nodes beyond the buckets over new ones; the first go to the heap.

        There is at least one node. Most nodes are due soon and a few much later, so the buckets
        reach to four times the median of a sample.
        """
        node = self.beyond
        assert node is not None
        start = node.time
        sample: list[float] = []
        step = max(count // BUCKETS, 1)
        index = 0
        while node is not None:
            if node.time < start:
                start = node.time
            if index % step == 0:
                sample.append(node.time)
            index += 1
            node = node.sibling
        sample.sort()
        reach = 4.0 * (sample[len(sample) // 2] - start)
        node = self.beyond
        self.beyond = None
        self.start = start
        if count <= BUCKETS or not (0.0 < reach < INFINITY) or BUCKETS / reach == INFINITY:
            # Buckets do not pay for few nodes, and cannot split nodes of one time.
            self._clear()
            while node is not None:
                following = node.sibling
                self._insert(node)
                node = following
            self.limit = max(LARGE, 2 * self.nodes)
            return
        self.limit = LARGE
        self.rate = BUCKETS / reach
        self.buckets = [None] * BUCKETS
        while node is not None:
            following = node.sibling
            self._put_into_bucket(node)
            node = following
        self.current = -1
        self._advance()

    def _refill(self) -> None:
        """The heap is empty: put the next nodes into it, if any are left."""
        self._advance()
        if self.root is None and self.beyond is not None:
            self._fill_buckets(self._count_beyond())
        elif self.root is None:
            self._clear()

    def _advance(self) -> None:
        """Put the nodes of the next bucket that has any into the heap."""
        i = self.current + 1
        while i < BUCKETS:
            node = self.buckets[i]
            if node is not None:
                self.buckets[i] = None
                self.current = i
                self.edge = i + 1.0
                while node is not None:
                    following = node.sibling
                    self._insert(node)
                    node = following
                return
            i += 1
        self.current = BUCKETS

    def _insert(self, node: QueueEntry) -> None:
        """Put a node into the heap."""
        node.sibling = None
        root = self.root
        self.root = node if root is None else merge(root, node)
        self.nodes += 1

    def _count_beyond(self) -> int:
        """Count the nodes beyond all buckets."""
        count = 0
        node = self.beyond
        while node is not None:
            count += 1
            node = node.sibling
        return count

    def _nodes(self, until: float) -> "list[QueueEntry]":
        """The nodes up to a time (s), in any order."""
        nodes: list[QueueEntry] = []
        root = self.root
        if root is not None and root.time <= until:
            nodes.append(root)
        i = 0
        while i < len(nodes):
            child = nodes[i].child
            while child is not None:
                if child.time <= until:
                    nodes.append(child)
                child = child.sibling
            i += 1
        for bucket in [*self.buckets, self.beyond]:
            late = bucket
            while late is not None:
                if late.time <= until:
                    nodes.append(late)
                late = late.sibling
        return nodes


def ordered(nodes: "list[QueueEntry]") -> "list[QueueEntry]":
    """The same nodes, the earliest first."""
    return sorted(nodes, key=lambda node: (node.time, node.turn))


def events_of(nodes: "list[QueueEntry]") -> "list[tuple[float, Event]]":
    """The events of nodes and of their followers, with their times (s)."""
    events: list[tuple[float, Event]] = []
    for node in nodes:
        entry: Optional[QueueEntry] = node
        while entry is not None:
            events.append((entry.time, entry.event))
            entry = entry.after
    return events


def merge(first: QueueEntry, second: QueueEntry) -> QueueEntry:
    """Put the later of two nodes below the earlier one; return the earlier one."""
    if second.time < first.time or (second.time == first.time and second.turn < first.turn):
        first.sibling = second.child
        second.child = first
        return second
    second.sibling = first.child
    first.child = second
    return first


def merge_siblings(first: QueueEntry) -> QueueEntry:
    """Merge siblings into one node: first in pairs, then the pairs from the last to the first."""
    pairs: Optional[QueueEntry] = None
    node: Optional[QueueEntry] = first
    while node is not None:
        second = node.sibling
        if second is None:
            node.sibling = pairs
            pairs = node
            break
        following = second.sibling
        pair = merge(node, second)
        pair.sibling = pairs
        pairs = pair
        node = following
    assert pairs is not None
    merged = pairs
    rest = pairs.sibling
    while rest is not None:
        following = rest.sibling
        merged = merge(merged, rest)
        rest = following
    return merged
