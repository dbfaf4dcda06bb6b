"""An untimed executor: matches the schedules of all ranks under synchronous sends, with data.

It knows no clock and no protocol. Sends complete only when a receive of the same envelope has
been posted, the strictest behaviour that MPI allows: a program that ends here ends everywhere.

With memories, the bytes that the steps name are moved and combined as well. Requests may read and
write their bytes at any time between their start and their end. With `early`, sends read when they
start and receives write when they are waited for; otherwise both do so when they meet. A schedule
that is right in both cases does not touch the bytes of an open request.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pysmpi.kernel import schedule as k
from pysmpi.kernel.schedule import Schedule


class Stuck(AssertionError):
    """The ranks wait for each other for ever."""


class Unnamed(AssertionError):
    """A step does not name its bytes."""


Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Memory:
    """The buffers of one rank, as bytes. Scratch memory begins with garbage and has no end."""

    def __init__(self, send: bytes, receive: bytes) -> None:
        self.areas = {
            k.SEND_BUFFER // k.AREA: np.frombuffer(send, np.uint8).copy(),
            k.RECEIVE_BUFFER // k.AREA: np.frombuffer(receive, np.uint8).copy(),
        }

    @property
    def send(self) -> bytes:
        return self.areas[k.SEND_BUFFER // k.AREA].tobytes()

    @property
    def receive(self) -> bytes:
        return self.areas[k.RECEIVE_BUFFER // k.AREA].tobytes()

    def pieces(self, place: object, nbytes: int) -> list[tuple[np.ndarray, int, int]]:
        """The (area, first byte, bytes) of the pieces of a place."""
        if place in (k.UNNAMED, None) and nbytes:
            raise Unnamed(f"a step of {nbytes} bytes does not say where they are")
        if nbytes == 0 or place == k.NOTHING:
            return []
        said = place() if callable(place) else place
        said = [(said, nbytes)] if isinstance(said, int) else said
        found = [(*divmod(address, k.AREA), n) for address, n in said if n]
        for number, first, n in found:
            area = self.areas.get(number, np.zeros(0, np.uint8))
            if first + n > len(area):
                assert number >= k.SCRATCH // k.AREA, f"beyond the end of buffer {number}"
                longer = np.full(2 * (first + n), 0xE5, np.uint8)
                longer[: len(area)] = area
                self.areas[number] = longer
        pieces = [(self.areas[number], first, n) for number, first, n in found]
        assert sum(n for _, _, n in pieces) == nbytes, "pieces of another length than the step"
        return pieces

    def read(self, place: object, nbytes: int) -> np.ndarray:
        parts = [area[first : first + n] for area, first, n in self.pieces(place, nbytes)]
        return np.concatenate(parts) if parts else np.zeros(0, np.uint8)

    def write(self, place: object, nbytes: int, data: np.ndarray) -> None:
        pieces = self.pieces(place, nbytes)
        assert len(data) in (0, nbytes) or not pieces, "a message of another length"
        assert len(data) or not pieces, "data is expected where a message carries none"
        at = 0
        for area, first, n in pieces:
            area[first : first + n] = data[at : at + n]
            at += n


class _NoMemory(Memory):
    """For schedules that name no bytes."""

    def __init__(self) -> None:
        super().__init__(b"", b"")

    def read(self, place: object, nbytes: int) -> np.ndarray:
        return np.zeros(0, np.uint8)

    def write(self, place: object, nbytes: int, data: np.ndarray) -> None:
        pass


class Request:
    """A send or receive: a message of `size` bytes at `place`."""

    def __init__(self, owner: int, memory: Memory, place: object, size: int, sends: bool) -> None:
        self.owner, self.memory, self.place, self.size = owner, memory, place, size
        self.done = self.stored = False
        self.sends = sends
        self.data: np.ndarray | None = None

    def load(self) -> None:
        if self.data is None:
            self.data = self.memory.read(self.place, self.size)

    def store(self) -> None:
        if not self.sends and not self.stored:
            self.stored = True
            assert self.data is not None
            self.memory.write(self.place, self.size, self.data)


@dataclass
class Outcome:
    """The traffic: bytes and messages by (source, destination); and the ranks that have ended."""

    messages: list[tuple[int, int, int]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    @property
    def volume(self) -> int:
        return sum(size for _, _, size in self.messages)

    def received_by(self, rank: int) -> int:
        return sum(size for _, dest, size in self.messages if dest == rank)


def execute(
    schedules: list[Schedule],
    memories: list[Memory] | None = None,
    combine: Combine | None = None,
    early: bool = True,
    absent: int | None = None,
) -> Outcome:
    """Run all ranks to their ends; Stuck or AssertionError when they do not fit together.

    `combine` takes and gives bytes. If a rank is `absent`, it does not begin, sends complete at
    once, and the others run as far as they can.
    """
    outcome = Outcome()
    sends: dict[tuple[int, int, int], deque] = defaultdict(deque)
    receives: dict[tuple[int, int, int], deque] = defaultdict(deque)
    position = [0] * len(schedules)
    current: list[Request | None] = [None] * len(schedules)
    slots: list[list[Request]] = [[] for _ in schedules]
    ready = deque(rank for rank in range(len(schedules)) if rank != absent)
    waiting = set()
    nothing = _NoMemory()

    def post(peer: int, tag: int, request: Request) -> None:
        owner = request.owner
        key = (owner, peer, tag) if request.sends else (peer, owner, tag)
        mine, theirs = (sends, receives) if request.sends else (receives, sends)
        if request.sends and early:
            request.load()
        if request.sends and absent is not None:
            request.done = True
        queue = theirs[key]
        if not queue:
            mine[key].append(request)
            return
        other = queue.popleft()
        size = request.size
        assert other.size == size, f"{key[0]}->{key[1]}: sizes differ: {other.size} and {size}"
        other.done = request.done = True
        outcome.messages.append((key[0], key[1], size))
        sent, received = (request, other) if request.sends else (other, request)
        sent.load()
        received.data = sent.data
        if not early:
            received.store()
        if other.owner in waiting:
            waiting.discard(other.owner)
            ready.append(other.owner)

    while ready:
        rank = ready.popleft()
        s = schedules[rank]
        memory = nothing if memories is None else memories[rank]
        places = s.places if s.places is not None else [None] * len(s)
        while position[rank] < len(s):
            i = position[rank]
            code, peer, size, tag = s.codes[i], s.peers[i], s.sizes[i], s.tags[i]
            awaited: list[Request] = []
            if code in (k.SEND, k.RECV, k.ISEND, k.IRECV, k.SHARE):
                assert 0 <= peer < len(schedules), f"rank {rank}: no peer {peer}"
                assert size >= 0
                request = current[rank]
                if request is None:
                    sending = code in (k.SEND, k.ISEND, k.SHARE)
                    request = current[rank] = Request(rank, memory, places[i], size, sending)
                    if code == k.SHARE:
                        request.load()
                    post(peer, tag, request)
                if code in (k.ISEND, k.IRECV):
                    slots[rank].append(request)
                elif code != k.SHARE:
                    awaited = [request]
            elif code in (k.WAIT, k.WAITALL):
                assert 0 <= peer <= size <= len(slots[rank])
                awaited = slots[rank][peer:size]
            elif code == k.REDUCE and memories is not None:
                assert combine is not None
                left, right, into = places[i]
                size = int(s.amounts[peer])
                one, other = memory.read(left, size), memory.read(right, size)
                if len(one) or into != k.NOTHING:
                    memory.write(into, size, combine(one, other))
            elif code in (k.COPY, k.MOVE) and memories is not None:
                source, dest = places[i]
                size = size if code == k.MOVE else int(s.amounts[peer])
                memory.write(dest, size, memory.read(source, size))
            if not all(request.done for request in awaited):
                waiting.add(rank)
                break
            for request in awaited:
                request.store()
            current[rank] = None
            position[rank] += 1
    outcome.ended = [rank for rank, s in enumerate(schedules) if position[rank] == len(s)]
    if absent is not None:
        return outcome
    if waiting:
        states = [
            f"rank {r}: {k.NAMES[schedules[r].codes[position[r]]]}"
            f" {schedules[r].peers[position[r]]} {schedules[r].sizes[position[r]]}"
            for r in sorted(waiting)[:8]
        ]
        raise Stuck("; ".join(states))
    left = [key for table in (sends, receives) for key, queue in table.items() if queue]
    assert not left, f"never matched: {left[:5]}"
    for rank, s in enumerate(schedules):
        assert len(slots[rank]) == s.slots
        assert all(request.done for request in slots[rank]), "a request was never waited for"
    return outcome
