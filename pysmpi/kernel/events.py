"""The event queue: the next events in virtual time."""

from typing import Final, Optional

from mypy_extensions import i64


class Event:
    """Something with a date. `fire` is called when the clock reaches it."""

    def fire(self) -> None:
        raise RuntimeError("an event must define its action")


NO_EVENT: Final = Event()
INFINITY: Final = float("inf")


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
    """

    def __init__(self) -> None:
        self.now: float = 0.0
        self.root: Optional[QueueEntry] = None
        self.latest: Optional[QueueEntry] = None  # the latest addition, if its node is in the heap
        self.turns: i64 = 0
        self.free: Optional[QueueEntry] = None  # entries without an event, through `after`

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
        root = self.root
        self.root = entry if root is None else joined(root, entry)

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
        self.root = None if below is None else gathered(below)
        return root

    def release(self, entry: QueueEntry) -> None:
        """Let an entry that was taken out be used again."""
        entry.event = NO_EVENT
        entry.after = self.free
        self.free = entry

    def put_back(self, entry: QueueEntry, turn: i64) -> None:
        """Return the remaining followers of a node that was taken out, and that had a turn."""
        entry.turn = turn
        root = self.root
        self.root = entry if root is None else joined(root, entry)

    def all(self) -> "list[tuple[float, Event]]":
        """The events and their dates, in their order."""
        return listed(self._nodes(INFINITY))

    def at(self, date: float) -> "list[Event]":
        """The events of a date, in their order."""
        return [event for other, event in listed(self._nodes(date)) if other == date]

    def remove(self, date: float, event: Event) -> None:
        """Remove an event at `date`; all others keep their order."""
        events = self.all()
        events.remove((date, event))
        self.root = None
        self.latest = None
        for other, kept in events:
            self.push(other, kept)

    def _nodes(self, until: float) -> "list[QueueEntry]":
        """The nodes of the heap up to a date (s), in their order."""
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
        found.sort(key=lambda node: (node.date, node.turn))
        return found


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
