"""An untimed executor: matches the schedules of all ranks under synchronous sends.

It knows no clock and no protocol. Sends complete only when a receive of the same envelope has
been posted, which is the strictest thing that MPI allows: what ends here ends everywhere.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from pysmpi.kernel import schedule as k
from pysmpi.kernel.schedule import Schedule


class Stuck(AssertionError):
    """The ranks wait for each other for ever."""


@dataclass
class Outcome:
    """What was sent: bytes and messages by (source, destination)."""

    messages: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def volume(self) -> int:
        return sum(size for _, _, size in self.messages)

    def received_by(self, rank: int) -> int:
        return sum(size for _, dest, size in self.messages if dest == rank)


def execute(schedules: list[Schedule]) -> Outcome:
    """Run all ranks to their ends; Stuck or AssertionError when they do not fit together."""
    outcome = Outcome()
    sends: dict[tuple[int, int, int], deque] = defaultdict(deque)
    receives: dict[tuple[int, int, int], deque] = defaultdict(deque)
    position = [0] * len(schedules)
    posted = [False] * len(schedules)
    current: list[list | None] = [None] * len(schedules)
    slots: list[list] = [[] for _ in schedules]
    ready = deque(range(len(schedules)))
    waiting = set()

    def post(source: int, dest: int, tag: int, size: int, sending: bool, owner: int) -> list:
        mine, theirs = (sends, receives) if sending else (receives, sends)
        request = [False, size, owner]
        queue = theirs[source, dest, tag]
        if queue:
            other = queue.popleft()
            assert other[1] == size, f"{source}->{dest}: sizes differ: {other[1]} and {size}"
            other[0] = request[0] = True
            outcome.messages.append((source, dest, size))
            if other[2] in waiting:
                waiting.discard(other[2])
                ready.append(other[2])
        else:
            mine[source, dest, tag].append(request)
        return request

    while ready:
        rank = ready.popleft()
        s = schedules[rank]
        while position[rank] < len(s):
            i = position[rank]
            code, peer, size, tag = s.codes[i], s.peers[i], s.sizes[i], s.tags[i]
            if code in (k.SEND, k.SSEND, k.RECV, k.ISEND, k.IRECV, k.SHARE):
                assert 0 <= peer < len(schedules), f"rank {rank}: no peer {peer}"
                assert size >= 0
                sending = code in (k.SEND, k.SSEND, k.ISEND, k.SHARE)
                if not posted[rank]:
                    a, b = (rank, peer) if sending else (peer, rank)
                    current[rank] = post(a, b, tag, size, sending, rank)
                    posted[rank] = True
                if code in (k.ISEND, k.IRECV):
                    slots[rank].append(current[rank])
                elif code != k.SHARE and not current[rank][0]:
                    waiting.add(rank)
                    break
            elif code in (k.WAIT, k.WAITALL):
                assert 0 <= peer <= size <= len(slots[rank])
                if not all(request[0] for request in slots[rank][peer:size]):
                    waiting.add(rank)
                    break
            elif code == k.WAITANY:
                if not any(request[0] for request in slots[rank][peer:size]):
                    waiting.add(rank)
                    break
            posted[rank] = False
            position[rank] += 1
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
        assert all(request[0] for request in slots[rank]), "a request was never waited for"
    return outcome
