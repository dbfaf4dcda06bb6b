"""Envelope matching: which receive takes which send.

One `Mailbox` per context and destination. Messages are matched by (source, tag) in the order in
which they were posted, with wildcards on the receiving side (MPI 4.1, section 3.5): a send takes
the earliest receive that accepts it, a receive the earliest send that it accepts, so messages of
one source and tag never overtake each other.
"""

from typing import Final, Optional

from pysmpi.kernel.requests import Envelope, Receive, Request, Send

ANY: Final = -1_000_000_007  # wildcard for a source or a tag; no rank or tag has this value


def key_of(source: int, tag: int) -> int:
    """One integer for a pair of source rank (below 2**29) and tag (32 bits, signed)."""
    return (source << 33) + tag


# What a mailbox has where it has nothing: a million ranks have two mailboxes each.
NO_CHAINS: Final[dict[int, Request]] = {}
NO_RECEIVES: Final[list[Receive]] = []


class Mailbox:
    """The posted receives and unexpected sends of one destination in one context."""

    def __init__(self) -> None:
        # First of a chain of requests (through `next`) with the same source and tag.
        self.receives: dict[int, Request] = NO_CHAINS
        self.sends: dict[int, Request] = NO_CHAINS
        self.wild: list[Receive] = NO_RECEIVES
        self.probes: list[Receive] = NO_RECEIVES

    def empty(self) -> bool:
        """Whether nothing waits here."""
        return not self.receives and not self.sends and not self.wild

    def match_send(self, send: Send) -> Optional[Receive]:
        """Take the earliest posted receive that accepts `send`, or keep the send."""
        key = key_of(send.source, send.tag)
        exact = self.receives.get(key)
        if self.wild:
            for i in range(len(self.wild)):
                wild = self.wild[i]
                if exact is not None and exact.order < wild.order:
                    break
                if accepts(wild, send):
                    del self.wild[i]
                    return wild
        if exact is None:
            if len(self.sends) == 0:
                self.sends = {}
            append(self.sends, key, send)
            return None
        self._take_receive(key, exact)
        assert isinstance(exact, Receive)
        return exact

    def match_receive(self, receive: Receive) -> Optional[Send]:
        """Take the earliest unexpected send that `receive` accepts, or keep the receive."""
        if is_wild(receive):
            candidates = self.candidates(receive)
            if not candidates:
                if len(self.wild) == 0:
                    self.wild = []
                self.wild.append(receive)
                return None
            return self.take(candidates[0])
        key = key_of(receive.source, receive.tag)
        head = self.sends.get(key)
        if head is None:
            if len(self.receives) == 0:
                self.receives = {}
            append(self.receives, key, receive)
            return None
        self._take_send(key, head)
        assert isinstance(head, Send)
        return head

    def candidates(self, receive: Receive) -> "list[Send]":
        """The sends that `receive` may take, one a source, earliest first.

        MPI lets a wildcard receive take the first message of any source: this is where runs
        of one program may differ.
        """
        firsts: dict[int, Send] = {}
        for request in self.sends.values():
            assert isinstance(request, Send)
            if accepts(receive, request):
                other = firsts.get(request.source)
                if other is None or request.order < other.order:
                    firsts[request.source] = request
        found = list(firsts.values())
        if len(found) > 1:
            found.sort(key=lambda send: send.order)
        return found

    def peek(self, receive: Receive) -> Optional[Send]:
        """The unexpected send that `receive` would take."""
        if is_wild(receive):
            candidates = self.candidates(receive)
            return candidates[0] if candidates else None
        head = self.sends.get(key_of(receive.source, receive.tag))
        assert head is None or isinstance(head, Send)
        return head

    def watch(self, probe: Receive) -> None:
        """Keep a probe until there is a message that it accepts."""
        if len(self.probes) == 0:
            self.probes = []
        self.probes.append(probe)

    def show(self, send: Send, now: float) -> None:
        """Complete the probes that were waiting for such a message."""
        seen = [probe for probe in self.probes if accepts(probe, send)]
        self.probes = [probe for probe in self.probes if not accepts(probe, send)]
        for probe in seen:
            probe.message = send
            probe.complete(now)

    def take(self, send: Send) -> Send:
        """Take a given unexpected send, the first of its source and tag."""
        self._take_send(key_of(send.source, send.tag), send)
        return send

    def _take_send(self, key: int, head: Request) -> None:
        pop(self.sends, key, head)
        if len(self.sends) == 0:
            self.sends = NO_CHAINS

    def _take_receive(self, key: int, head: Request) -> None:
        pop(self.receives, key, head)
        if len(self.receives) == 0:
            self.receives = NO_CHAINS

    def cancel(self, request: Envelope) -> bool:
        """Take out a request that has not been matched; False if it is not here."""
        if isinstance(request, Receive):
            for i in range(len(self.wild)):
                if self.wild[i] is request:
                    del self.wild[i]
                    return True
            return unlink(self.receives, key_of(request.source, request.tag), request)
        return unlink(self.sends, key_of(request.source, request.tag), request)


def mailbox_of(envelope: Envelope) -> Mailbox:
    """The mailbox in which an envelope is matched."""
    mailboxes = envelope.context.mailboxes
    box = mailboxes.get(envelope.destination)
    if box is None:
        box = Mailbox()
        mailboxes[envelope.destination] = box
    return box


def is_wild(receive: Receive) -> bool:
    """Whether `receive` has a wildcard."""
    return receive.source == ANY or receive.tag == ANY


def accepts(receive: Receive, send: Send) -> bool:
    """Whether the envelope of `send` fits `receive`."""
    return (receive.source == ANY or receive.source == send.source) and (
        receive.tag == ANY or receive.tag == send.tag
    )


def append(chains: "dict[int, Request]", key: int, request: Request) -> None:
    """Add to the end of a chain; its head knows its last member."""
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


def pop(chains: "dict[int, Request]", key: int, head: Request) -> None:
    """Take the head off a chain."""
    following = head.next
    if following is None:
        del chains[key]
    else:
        following.last = head.last
        chains[key] = following
        head.next = None
    head.last = None


def unlink(chains: "dict[int, Request]", key: int, request: Request) -> bool:
    """Take a request out of the middle of a chain; False if it is not there."""
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
