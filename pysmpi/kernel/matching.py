"""Envelope matching of sends and receives.

One `Mailbox` per context and destination. Messages are matched by (source, tag) in the order of
their posting, with wildcards on the receiving side (MPI 4.1, section 3.5): a send matches the
earliest receive that accepts it, and a receive the earliest send that it accepts, so messages of
one source and tag never overtake each other.

Receives with a wildcard, and probes, choose among messages of several sources. They match the
first message that has arrived, not before its time of arrival (`Send.visible`). A receive that
names source and tag has no choice. It matches its message at once, which does not change any time.
"""

from heapq import heappop, heappush
from typing import Final, Optional

from mypy_extensions import i16, i32

from pysmpi.kernel.events import INFINITY
from pysmpi.kernel.requests import AbstractMailbox, Context, Envelope, KernelRequest, Receive, Send

ANY: Final = -1_000_000_007  # wildcard for a source or a tag; no rank or tag has this value
SOURCES: Final = (1 << 31) - 1


def key_of(source: int, tag: int) -> int:
    """One integer for a pair of source rank (below 2**29) and tag (32 bits, signed).

    Its low bits differ both from source to source and from tag to tag: a dictionary finds an
    integer by them, and would search long if all keys had the same.
    """
    return (tag << 31) + ((source + tag) & SOURCES)


# Posted receives, or unexpected sends, up to which a mailbox looks at each of them in turn. Without
# short lists, a ring and the messages of NAS CG take 10 % more instructions.
SHORT: Final = 8
# Kinds of patterns with wildcards, as bits.
ANY_TAG: Final = 1
ANY_SOURCE: Final = 2
ANY_MESSAGE: Final = 4

# Empty contents, which all mailboxes share: a million ranks have two mailboxes each.
NO_CHAINS: Final[dict[int, KernelRequest]] = {}
NO_PROBES: Final[list[Receive]] = []
NO_TIMES: Final[dict[int, float]] = {}


class Lane:
    """The unexpected sends that one pattern of source and tag accepts, earliest arrival first.

    A send stays in the lane if another receive takes it; `first` then skips it.
    """

    def __init__(self) -> None:
        self.sends: list[tuple[float, int, Send]] = []  # a heap

    def add(self, send: Send) -> None:
        """Add a send."""
        heappush(self.sends, (send.visible, send.order, send))

    def first(self, now: float) -> Optional[Send]:
        """The earliest send that is still unexpected, if it has arrived by `now` (s)."""
        while len(self.sends) > 0:
            send = self.sends[0][2]
            if send.unexpected:
                return send if send.visible <= now else None
            heappop(self.sends)
        return None


NO_LANES: Final[dict[int, Lane]] = {}


class Index:
    """The chains and lanes of a mailbox with many requests, and its probes."""

    def __init__(self) -> None:
        # By source and tag, the first of a chain of requests, linked by `next`; source and tag of
        # receives may be wildcards.
        self.receives: dict[int, KernelRequest] = NO_CHAINS
        self.sends: dict[int, KernelRequest] = NO_CHAINS
        # By pattern, for the kinds of receives that were posted while there were many sends.
        self.lanes: dict[int, Lane] = NO_LANES
        self.probes: list[Receive] = NO_PROBES
        # By source, the time (s) at which the last of its unexpected sends arrives.
        self.latest: dict[int, float] = NO_TIMES
        self.stale: i32 = 0  # number of matched sends that may still be in lanes
        self.kinds: i16 = 0  # kinds of lanes, as bits


NO_INDEX: Final = Index()  # of most mailboxes


class Mailbox(AbstractMailbox):
    """The posted receives and unexpected sends of one destination in one context.

    Most mailboxes hold few requests at a time, in two short lists, in the order of posting. A
    mailbox with more requests is `indexed` until it is empty: its requests are then in chains, by
    source and tag.
    """

    def __init__(self) -> None:
        # First and last of the short lists, which `next` links.
        self.first_receive: Optional[KernelRequest] = None
        self.last_receive: Optional[KernelRequest] = None
        self.first_send: Optional[KernelRequest] = None
        self.last_send: Optional[KernelRequest] = None
        self.index: Index = NO_INDEX
        # Small integers next to each other take less memory.
        self.wild: i32 = 0  # number of receives with a wildcard
        self.unexpected: i32 = 0  # number of unexpected sends
        self.short_receives: i16 = 0  # lengths of the short lists
        self.short_sends: i16 = 0
        self.indexed: bool = False

    def empty(self) -> bool:
        """Whether the mailbox is empty."""
        index = self.index
        return not (index.receives or index.sends or self.first_receive or self.first_send)

    def _own_index(self) -> Index:
        """An index of its own, not the shared empty one."""
        if self.index is NO_INDEX:
            self.index = Index()
        return self.index

    def _simplify(self) -> None:
        """Return to short lists if the index is empty."""
        index = self.index
        if self.unexpected == 0 and len(index.receives) == 0:
            self.indexed = False
            if len(index.probes) == 0:
                self.index = NO_INDEX

    def _index(self) -> None:
        """Move the requests from the short lists into chains."""
        if self.indexed:
            return
        index = self._own_index()
        self.indexed = True
        if self.first_receive is not None:
            index.receives = chained(self.first_receive)
            self.first_receive = self.last_receive = None
            self.short_receives = 0
        if self.first_send is not None:
            index.sends = chained(self.first_send)
            self.first_send = self.last_send = None
            self.short_sends = 0

    def _add_receive(self, receive: Receive) -> None:
        """Post a receive."""
        if is_wild(receive):
            self.wild += 1
        if not self.indexed:
            if self.short_receives < SHORT:
                last = self.last_receive
                if last is None:
                    self.first_receive = receive
                else:
                    last.next = receive
                self.last_receive = receive
                self.short_receives += 1
                return
            self._index()
        index = self.index
        if len(index.receives) == 0:
            index.receives = {}
        append(index.receives, key_of(receive.source, receive.tag), receive)

    def _add_send(self, send: Send) -> None:
        """Add an unexpected send."""
        send.unexpected = True
        self.unexpected += 1
        if not self.indexed:
            if self.short_sends < SHORT:
                last = self.last_send
                if last is None:
                    self.first_send = send
                else:
                    last.next = send
                self.last_send = send
                self.short_sends += 1
                return
            self._index()
        index = self.index
        if len(index.sends) == 0:
            index.sends = {}
        append(index.sends, key_of(send.source, send.tag), send)
        if index.kinds != 0:
            self._add_to_lanes(send, index.kinds)

    def _unlink_receive(self, request: KernelRequest) -> bool:
        """Take a receive out of the short list; False if it is not there."""
        before: Optional[KernelRequest] = None
        receive = self.first_receive
        while receive is not None:
            if receive is request:
                if before is None:
                    self.first_receive = request.next
                else:
                    before.next = request.next
                if self.last_receive is request:
                    self.last_receive = before
                request.next = None
                self.short_receives -= 1
                return True
            before = receive
            receive = receive.next
        return False

    def _unlink_send(self, request: KernelRequest) -> bool:
        """Take a send out of the short list; False if it is not there."""
        before: Optional[KernelRequest] = None
        send = self.first_send
        while send is not None:
            if send is request:
                if before is None:
                    self.first_send = request.next
                else:
                    before.next = request.next
                if self.last_send is request:
                    self.last_send = before
                request.next = None
                self.short_sends -= 1
                return True
            before = send
            send = send.next
        return False

    def _first_for(self, send: Send) -> Optional[Receive]:
        """The earliest posted receive that accepts `send`."""
        receive: Optional[KernelRequest] = None
        if not self.indexed:
            receive = self.first_receive
            while receive is not None:
                assert isinstance(receive, Receive)
                if accepts(receive, send):
                    return receive
                receive = receive.next
            return None
        receive = self.index.receives.get(key_of(send.source, send.tag))
        if self.wild > 0:
            for pattern in (key_of(send.source, ANY), key_of(ANY, send.tag), key_of(ANY, ANY)):
                candidate = self.index.receives.get(pattern)
                if candidate is not None and (receive is None or candidate.order < receive.order):
                    receive = candidate
        if receive is None:
            return None
        assert isinstance(receive, Receive)
        return receive

    def _first_of(self, source: int, tag: int) -> Optional[Send]:
        """The earliest unexpected send with a source and a tag."""
        send: Optional[KernelRequest] = None
        if self.indexed:
            send = self.index.sends.get(key_of(source, tag))
            if send is None:
                return None
            assert isinstance(send, Send)
            return send
        send = self.first_send
        while send is not None:
            assert isinstance(send, Send)
            if send.source == source and send.tag == tag:
                return send
            send = send.next
        return None

    def _take_receive(self, receive: Receive) -> None:
        """Remove a receive that `_first_for` has returned."""
        if self.indexed:
            pop(self.index.receives, key_of(receive.source, receive.tag), receive)
        else:
            self._unlink_receive(receive)
        self._forget_receive(receive)

    def match_send(self, send: Send, now: float = INFINITY) -> Optional[Receive]:
        """Match the earliest posted receive that accepts `send`, or keep the send.

        If the send arrives after `now` (s), a receive with a wildcard matches it at its arrival:
        the send is then `awaited`, and the caller must call `offer` at the arrival.
        """
        receive = self._first_for(send)
        if receive is not None and send.visible >= now:
            # An earlier message of the same source that has not arrived goes first.
            wild = is_wild(receive)
            if (wild and send.visible > now) or (
                self.unexpected > 0 and self._precedes(send, receive, wild, now)
            ):
                receive = None
                send.awaited = True
        if receive is None:
            if self.unexpected > 0 and send.visible >= now:
                self._delay_arrival(send)
            self._add_send(send)
            return None
        self._take_receive(receive)
        return receive

    def _precedes(self, send: Send, receive: Receive, wild: bool, now: float) -> bool:
        """Whether `receive` accepts an earlier message of the same source that arrives later."""
        if not wild:
            return self._first_of(send.source, send.tag) is not None
        for earlier in self.unordered_sends():
            if (
                earlier.source == send.source
                and earlier.visible > now
                and accepts(receive, earlier)
            ):
                return True
        return False

    def _delay_arrival(self, send: Send) -> None:
        """Delay the arrival of a send to that of the earlier sends of its source."""
        index = self._own_index()
        if len(index.latest) == 0:
            index.latest = {}
            for earlier in self.unordered_sends():
                index.latest[earlier.source] = max(
                    earlier.visible, index.latest.get(earlier.source, 0.0)
                )
        send.visible = max(send.visible, index.latest.get(send.source, 0.0))
        index.latest[send.source] = send.visible

    def offer(self, send: Send) -> Optional[Receive]:
        """Match an unexpected send that has arrived with the earliest receive that accepts it."""
        receive = self._first_for(send)
        if receive is not None:
            self._take_receive(receive)
            self.cancel(send)
        return receive

    def coming(self, receive: Receive, now: float) -> "list[Send]":
        """The sends that `receive` accepts, that have not arrived and that are not awaited."""
        sends: list[Send] = []
        for send in self.unordered_sends():
            if accepts(receive, send) and send.visible > now and not send.awaited:
                sends.append(send)
        if len(sends) > 1:
            sends.sort(key=lambda send: send.order)
        return sends

    def unordered_sends(self) -> "list[Send]":
        """The unexpected sends; those of one source and tag in the order of posting."""
        sends: list[Send] = []
        request = self.first_send
        while request is not None:
            assert isinstance(request, Send)
            sends.append(request)
            request = request.next
        for head in self.index.sends.values():
            request = head
            while request is not None:
                assert isinstance(request, Send)
                sends.append(request)
                request = request.next
        return sends

    def match_receive(self, receive: Receive, now: float = INFINITY) -> Optional[Send]:
        """Match the earliest unexpected send that `receive` accepts, or keep the receive."""
        send: Optional[Send] = None
        if is_wild(receive):
            send = self.peek(receive, now)
        else:
            head = self._first_of(receive.source, receive.tag) if self.unexpected > 0 else None
            if head is not None:
                # An earlier receive with a wildcard may be waiting for it to arrive.
                if not head.awaited or head.visible <= now or self._first_for(head) is None:
                    send = head
        if send is not None:
            return self.take(send)
        self._add_receive(receive)
        return None

    def peek(self, receive: Receive, now: float = INFINITY) -> Optional[Send]:
        """The unexpected send that `receive` would match, if it has arrived by `now` (s)."""
        if is_wild(receive):
            if self.unexpected == 0:
                return None
            if not self.indexed:
                candidates = self.candidates(receive, now)
                return candidates[0] if len(candidates) > 0 else None
            kind: i16 = ANY_TAG
            if receive.source == ANY:
                kind = ANY_MESSAGE if receive.tag == ANY else ANY_SOURCE
            if self.index.kinds & kind == 0:
                self._open_lanes(kind)
            lane = self.index.lanes.get(key_of(receive.source, receive.tag))
            return None if lane is None else lane.first(now)
        head = self._first_of(receive.source, receive.tag)
        if head is None:
            return None
        return head if head.visible <= now else None

    def _open_lanes(self, kind: i16) -> None:
        """Add lanes for a kind of receives."""
        sends = self.waiting()
        index = self._own_index()
        if index.kinds == 0:
            index.lanes = {}
        index.kinds |= kind
        for send in sends:
            self._add_to_lanes(send, kind)

    def _add_to_lanes(self, send: Send, kinds: i16) -> None:
        if kinds & ANY_TAG != 0:
            self._lane_of(key_of(send.source, ANY)).add(send)
        if kinds & ANY_SOURCE != 0:
            self._lane_of(key_of(ANY, send.tag)).add(send)
        if kinds & ANY_MESSAGE != 0:
            self._lane_of(key_of(ANY, ANY)).add(send)

    def _lane_of(self, key: int) -> Lane:
        lane = self.index.lanes.get(key)
        if lane is None:
            lane = self.index.lanes[key] = Lane()
        return lane

    def candidates(self, receive: Receive, now: float = INFINITY) -> "list[Send]":
        """The sends that `receive` may match at `now` (s), one of each source, earliest first.

        MPI lets a receive with a wildcard match the first message of any source, so runs of one
        program may differ here.
        """
        firsts: dict[int, Send] = {}
        # The first send of a source and tag is enough, and a chain may be long.
        heads = list(self.index.sends.values()) if self.indexed else self.unordered_sends()
        for request in heads:
            assert isinstance(request, Send)
            if accepts(receive, request):
                first = firsts.get(request.source)
                if first is None or request.order < first.order:
                    firsts[request.source] = request
        arrived = [send for send in firsts.values() if send.visible <= now]
        if len(arrived) > 1:
            arrived.sort(key=lambda send: (send.visible, send.order))
        return arrived

    def posted(self) -> "list[Receive]":
        """The posted receives, in the order of posting."""
        receives: list[Receive] = []
        request = self.first_receive
        while request is not None:
            assert isinstance(request, Receive)
            receives.append(request)
            request = request.next
        for head in self.index.receives.values():
            request = head
            while request is not None:
                assert isinstance(request, Receive)
                receives.append(request)
                request = request.next
        receives.sort(key=lambda receive: receive.order)
        return receives

    def waiting(self) -> "list[Send]":
        """The unexpected sends, in the order of posting."""
        sends = self.unordered_sends()
        sends.sort(key=lambda send: send.order)
        return sends

    def watch(self, probe: Receive) -> None:
        """Keep a probe until there is a matching message."""
        index = self._own_index()
        if len(index.probes) == 0:
            index.probes = []
        index.probes.append(probe)

    def unwatch(self, probe: Receive) -> None:
        """Forget a probe."""
        self._own_index().probes = [
            waiting for waiting in self.index.probes if waiting is not probe
        ]

    def show(self, send: Send, now: float) -> None:
        """Complete the probes that accept a message."""
        index = self.index
        satisfied = [probe for probe in index.probes if accepts(probe, send)]
        index.probes = [probe for probe in index.probes if not accepts(probe, send)]
        for probe in satisfied:
            probe.message = send
            probe.complete(now)

    def take(self, send: Send) -> Send:
        """Remove an unexpected send, the first of its source and tag."""
        if self.indexed:
            pop(self.index.sends, key_of(send.source, send.tag), send)
        else:
            self._unlink_send(send)
        self._forget_send(send)
        return send

    def cancel(self, request: Envelope) -> bool:
        """Remove a request that has not been matched; False if it is not in the mailbox."""
        key = key_of(request.source, request.tag)
        if isinstance(request, Receive):
            if self.indexed:
                removed = unlink(self.index.receives, key, request)
            else:
                removed = self._unlink_receive(request)
            if removed:
                self._forget_receive(request)
            return removed
        assert isinstance(request, Send)
        if self.indexed:
            removed = unlink(self.index.sends, key, request)
        else:
            removed = self._unlink_send(request)
        if removed:
            self._forget_send(request)
        return removed

    def _forget_send(self, send: Send) -> None:
        send.unexpected = False
        self.unexpected -= 1
        index = self.index
        if index is NO_INDEX:
            return
        if index.kinds != 0:
            index.stale += 1
            if index.stale > 2 * self.unexpected:
                index.lanes = NO_LANES
                index.kinds = 0
                index.stale = 0
        if self.unexpected == 0:
            index.sends = NO_CHAINS
            index.latest = NO_TIMES
            self._simplify()

    def _forget_receive(self, receive: Receive) -> None:
        if is_wild(receive):
            self.wild -= 1
        if self.indexed and len(self.index.receives) == 0:
            self.index.receives = NO_CHAINS
            self._simplify()


def mailbox_of(envelope: Envelope) -> Mailbox:
    """The mailbox of the destination of an envelope, made if it is the first."""
    context = envelope.context
    owner = context.members[envelope.destination]
    if owner.boxed is context:
        box = owner.box
    else:
        boxes = context.mailboxes
        if len(boxes) == 0:
            boxes = context.mailboxes = [None] * len(context.members)
        box = boxes[envelope.destination]
        if box is None:
            box = boxes[envelope.destination] = Mailbox()
        owner.box = box
        owner.boxed = context
    assert isinstance(box, Mailbox)
    return box


def mailbox_at(context: Context, destination: int) -> Optional[Mailbox]:
    """The mailbox of a rank in a context, if it exists."""
    if len(context.mailboxes) == 0:
        return None
    box = context.mailboxes[destination]
    assert box is None or isinstance(box, Mailbox)
    return box


def mailboxes_of(context: Context) -> "dict[int, Mailbox]":
    """The mailboxes of a context by rank; a copy."""
    boxes: dict[int, Mailbox] = {}
    for destination, box in enumerate(context.mailboxes):
        if box is not None:
            assert isinstance(box, Mailbox)
            boxes[destination] = box
    return boxes


def is_wild(receive: Receive) -> bool:
    """Whether `receive` has a wildcard."""
    return receive.source == ANY or receive.tag == ANY


def accepts(receive: Receive, send: Send) -> bool:
    """Whether the envelope of `send` fits `receive`."""
    return (receive.source == ANY or receive.source == send.source) and (
        receive.tag == ANY or receive.tag == send.tag
    )


def append(chains: "dict[int, KernelRequest]", key: int, request: KernelRequest) -> None:
    """Append to a chain; its head refers to its last member, so this takes no search."""
    head = chains.get(key)
    request.next = None
    if head is None:
        request.last = request
        chains[key] = request
    else:
        last = head.last
        assert last is not None
        last.next = request
        head.last = request


def pop(chains: "dict[int, KernelRequest]", key: int, head: KernelRequest) -> None:
    """Remove the head of a chain."""
    following = head.next
    if following is None:
        del chains[key]
    else:
        following.last = head.last
        chains[key] = following
        head.next = None
    head.last = None


def unlink(chains: "dict[int, KernelRequest]", key: int, request: KernelRequest) -> bool:
    """Remove a request from a chain; False if it is not in the chain."""
    head = chains.get(key)
    if head is None:
        return False
    if head is request:
        pop(chains, key, head)
        return True
    before = head
    while before.next is not None:
        if before.next is request:
            before.next = request.next
            if head.last is request:
                head.last = before
            request.next = None
            return True
        before = before.next
    return False


def chained(first: KernelRequest) -> "dict[int, KernelRequest]":
    """The requests of a list, as chains."""
    chains: dict[int, KernelRequest] = {}
    request: Optional[KernelRequest] = first
    while request is not None:
        following = request.next
        assert isinstance(request, Envelope)
        append(chains, key_of(request.source, request.tag), request)
        request = following
    return chains


def hopeless(receive: Receive) -> bool:
    """Whether no message can come, because its source has failed.

    A receive from any source has no hope until its rank has acknowledged the failures.
    """
    lost = receive.context.lost
    if lost is None:
        return False
    if receive.source == ANY:
        return receive.destination in lost.wary
    return receive.source in lost.sources and mailbox_of(receive).peek(receive) is None


def undeliverable(send: Send) -> bool:
    """Whether the destination of a message has failed."""
    lost = send.context.lost
    return lost is not None and send.destination in lost.destinations
