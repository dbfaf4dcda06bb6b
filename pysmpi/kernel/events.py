"""The event queue: the next events in virtual time."""

from typing import Final, Optional

from mypy_extensions import i64


class Event:
    """Something with a date. `fire` is called when the clock reaches it."""

    def fire(self) -> None:
        raise RuntimeError("an event must define its action")


NO_EVENT: Final = Event()
INFINITY: Final = float("inf")
# Nodes of the heap above which later ones wait in buckets, and nodes for which these are not worth
# their while.
LARGE: Final = 2048
FEW: Final = 1024
BUCKETS: Final = 512
# Nodes whose dates determine the span of the buckets.
SAMPLE: Final = 64


class QueueEntry:
    """An event at a date (s); a node of the heap, or a follower of one.

    Entries are used again: most events are due soon, and so few entries exist at a time.
    """

    def __init__(self, event: Event) -> None:
        self.event: Event = event
        self.date: float = 0.0
        self.turn: i64 = 0  # of becoming a node of the heap
        self.child: Optional[QueueEntry] = None  # the first of the nodes below
        self.sibling: Optional[QueueEntry] = None  # the next node with the same parent
        self.after: Optional[QueueEntry] = None  # the next follower, at the same date


class EventQueue:
    """The clock, and events by date (s); equal dates in the order in which they were added.

    The nodes of a pairing heap (Fredman, Sedgewick, Sleator and Tarjan, Algorithmica 1, 1986) are
    ordered by date and turn. If many processes do the same at the same instant, as in parallel
    programs, the next event often has the date of the previous one. It then follows this one,
    outside of the heap.

    A heap of the events of a large job does not fit into the caches of a processor, and each event
    that is taken out touches several others. If there are more than `LARGE` nodes, the heap holds
    only those that are due next; the later ones wait in `buckets` of equal spans of time, and those
    beyond all buckets in one list. This does not change the order.
    """

    def __init__(self) -> None:
        self.now: float = 0.0
        self.root: Optional[QueueEntry] = None  # None only if there is no event at all
        self.latest: Optional[QueueEntry] = None  # the latest addition, if its node is still here
        self.turns: i64 = 0
        self.free: Optional[QueueEntry] = None  # entries without an event, through `after`
        self.nodes: int = 0  # of the heap
        self.limit: int = LARGE  # of them, above which nodes are dealt out anew
        # The first nodes of each bucket, through `sibling`. A node `x` buckets after the date
        # `start` is in the heap if `x` is below `edge`. Without buckets all are in the heap.
        self.buckets: list[Optional[QueueEntry]] = []
        self.start: float = 0.0
        self.rate: float = 0.0  # buckets a second
        self.edge: float = 0.0
        self.current: int = 0  # the latest bucket that was put into the heap
        self.beyond: Optional[QueueEntry] = None  # nodes later than all buckets, through `sibling`

    def push(self, date: float, event: Event) -> None:
        """Have `event` fire at `date`."""
        entry = self.free
        if entry is None:
            entry = QueueEntry(event)
        else:
            self.free = entry.after
            entry.after = None
            entry.event = event
        entry.date = date
        latest = self.latest
        self.latest = entry
        if latest is not None and latest.date == date:
            latest.after = entry
            return
        self.turns += 1
        entry.turn = self.turns
        if self.rate > 0.0 and (date - self.start) * self.rate >= self.edge:
            self._put_off(entry)
            return
        self._enter(entry)
        if self.nodes > self.limit:
            self._divide()

    def empty(self) -> bool:
        """Whether no event is left."""
        return self.root is None

    def next(self) -> float:
        """The date of the earliest event; there must be one."""
        root = self.root
        assert root is not None
        return root.date

    def pop(self) -> QueueEntry:
        """Take out the earliest event, with the followers of its entry; there must be one."""
        root = self.root
        assert root is not None
        latest = self.latest
        if latest is not None and latest.date == root.date:
            self.latest = None
        below = root.child
        root.child = None
        root.sibling = None
        self.nodes -= 1
        if below is not None:
            self.root = gathered(below)
        else:
            self.root = None
            if self.rate > 0.0:
                self._refill()
        return root

    def release(self, entry: QueueEntry) -> None:
        """Let an entry that was taken out be used again."""
        entry.event = NO_EVENT
        entry.after = self.free
        self.free = entry

    def put_back(self, entry: QueueEntry, turn: i64) -> None:
        """Return the remaining followers of a node that was taken out, and that had a turn."""
        entry.turn = turn
        self._enter(entry)

    def all(self) -> "list[tuple[float, Event]]":
        """The events and their dates, in their order."""
        return listed(ordered(self._nodes(INFINITY)))

    def at(self, date: float) -> "list[Event]":
        """The events of a date, in their order."""
        return [event for other, event in listed(ordered(self._nodes(date))) if other == date]

    def remove(self, date: float, event: Event) -> None:
        """Remove an event at `date`; all others keep their order."""
        events = self.all()
        events.remove((date, event))
        self.keep(events)

    def keep(self, events: "list[tuple[float, Event]]") -> None:
        """Have these events only, in this order; they are some of `all`."""
        self._clear()
        self.latest = None
        for date, event in events:
            self.push(date, event)

    # Buckets

    def _put_off(self, node: QueueEntry) -> None:
        """Put a node into its bucket, or beyond all of them."""
        place = (node.date - self.start) * self.rate
        if place < BUCKETS:
            i = int(place)
            node.sibling = self.buckets[i]
            self.buckets[i] = node
        else:
            node.sibling = self.beyond
            self.beyond = node

    def _divide(self) -> None:
        """Have buckets, of another span than before, for the nodes that are due later."""
        nodes = self._nodes(INFINITY)
        self._clear()
        for node in nodes:
            node.child = None
            node.sibling = self.beyond
            self.beyond = node
        self._spread(len(nodes))
        self.limit = max(LARGE, 2 * self.nodes, len(nodes) // 8)

    def _clear(self) -> None:
        """Have no nodes and no buckets."""
        self.root = self.beyond = None
        self.nodes = 0
        self.rate = 0.0
        self.buckets = []
        self.limit = LARGE

    def _spread(self, count: int) -> None:
        """Deal the `count` nodes that are beyond the buckets out to new ones; begin with the first.

        There is at least one. Most nodes are due soon and a few much later, so the buckets reach to
        four times the median of a sample.
        """
        node = self.beyond
        assert node is not None
        start = node.date
        sample: list[float] = []
        step = max(count // SAMPLE, 1)
        seen = 0
        while node is not None:
            if node.date < start:
                start = node.date
            if seen % step == 0:
                sample.append(node.date)
            seen += 1
            node = node.sibling
        sample.sort()
        reach = 4.0 * (sample[len(sample) // 2] - start)
        node = self.beyond
        self.beyond = None
        self.start = start
        if count <= FEW or not (0.0 < reach < INFINITY) or BUCKETS / reach == INFINITY:
            # They are few, or most of them are due at once.
            self._clear()
            while node is not None:
                following = node.sibling
                self._enter(node)
                node = following
            self.limit = max(LARGE, 2 * self.nodes)
            return
        self.limit = LARGE
        self.rate = BUCKETS / reach
        self.buckets = [None] * BUCKETS
        while node is not None:
            following = node.sibling
            self._put_off(node)
            node = following
        self.current = -1
        self._advance()

    def _refill(self) -> None:
        """The heap is empty: put the next nodes into it, if there are any."""
        self._advance()
        if self.root is None and self.beyond is not None:
            self._spread(self._late())
        elif self.root is None:
            self._clear()

    def _advance(self) -> None:
        """Put the next bucket with nodes into the heap, if there is one."""
        i = self.current + 1
        while i < BUCKETS:
            node = self.buckets[i]
            if node is not None:
                self.buckets[i] = None
                self.current = i
                self.edge = i + 1.0
                while node is not None:
                    following = node.sibling
                    self._enter(node)
                    node = following
                return
            i += 1
        self.current = BUCKETS

    def _enter(self, node: QueueEntry) -> None:
        """Put a node into the heap."""
        node.sibling = None
        root = self.root
        self.root = node if root is None else joined(root, node)
        self.nodes += 1

    def _late(self) -> int:
        """The number of nodes beyond all buckets."""
        count = 0
        node = self.beyond
        while node is not None:
            count += 1
            node = node.sibling
        return count

    def _nodes(self, until: float) -> "list[QueueEntry]":
        """The nodes up to a date (s), in any order."""
        found: list[QueueEntry] = []
        root = self.root
        if root is not None and root.date <= until:
            found.append(root)
        i = 0
        while i < len(found):
            child = found[i].child
            while child is not None:
                if child.date <= until:
                    found.append(child)
                child = child.sibling
            i += 1
        for bucket in [*self.buckets, self.beyond]:
            late = bucket
            while late is not None:
                if late.date <= until:
                    found.append(late)
                late = late.sibling
        return found


def ordered(nodes: "list[QueueEntry]") -> "list[QueueEntry]":
    """The same nodes, the earliest first."""
    return sorted(nodes, key=lambda node: (node.date, node.turn))


def listed(nodes: "list[QueueEntry]") -> "list[tuple[float, Event]]":
    """The events of nodes and of their followers, with their dates."""
    found: list[tuple[float, Event]] = []
    for node in nodes:
        entry: Optional[QueueEntry] = node
        while entry is not None:
            found.append((entry.date, entry.event))
            entry = entry.after
    return found


def joined(one: QueueEntry, other: QueueEntry) -> QueueEntry:
    """Put the later of two nodes below the earlier one, and return this."""
    if other.date < one.date or (other.date == one.date and other.turn < one.turn):
        one.sibling = other.child
        other.child = one
        return other
    other.sibling = one.child
    one.child = other
    return one


def gathered(first: QueueEntry) -> QueueEntry:
    """Join siblings to one node: in pairs from the first to the last, then the pairs backwards."""
    pairs: Optional[QueueEntry] = None
    one: Optional[QueueEntry] = first
    while one is not None:
        other = one.sibling
        if other is None:
            one.sibling = pairs
            pairs = one
            break
        following = other.sibling
        pair = joined(one, other)
        pair.sibling = pairs
        pairs = pair
        one = following
    assert pairs is not None
    found = pairs
    rest = pairs.sibling
    while rest is not None:
        following = rest.sibling
        found = joined(found, rest)
        rest = following
    return found
