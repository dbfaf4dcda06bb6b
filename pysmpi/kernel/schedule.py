"""Schedules: the operations of one process, as a list of steps.

A schedule holds no data and no clock. Each step is one row of four integers in parallel lists. A
schedule of a million steps therefore stays small, and needs no Python call for each step.

Algorithms also give the bytes that each step sends, receives, combines or copies. A schedule for
execution drops them; one with `named=True` keeps them, for modules that follow the data.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Optional, Union

from pysmpi.kernel.numbers import shared

SEND: Final = 0  # blocking send: pays os, waits as the protocol requires
ISEND: Final = 1  # starts a send in a slot: pays ois
RECV: Final = 2  # blocking receive
IRECV: Final = 3  # starts a receive in a slot
WAIT: Final = 4  # waits for one slot
WAITALL: Final = 5  # waits for a range of slots
SLEEP: Final = 6  # lets time pass
REDUCE: Final = 7  # combines bytes with an operator
COPY: Final = 8  # copies bytes in local memory
COMPUTE: Final = 9  # executes flops on the core
SHARE: Final = 10  # lets a peer see bytes in memory that both share: takes no time
MOVE: Final = 11  # moves bytes in local memory and takes no time; in named schedules only

WAITING: Final = (SEND, RECV, WAIT, WAITALL)

NAMES: Final = (
    "send", "isend", "recv", "irecv", "wait", "waitall", "sleep", "reduce", "copy", "compute",
    "share", "move",
)  # fmt: skip


# The memory of a rank is one range of addresses. The send buffer of the call, its receive buffer
# and each piece of scratch memory begin at multiples of AREA.
AREA: Final = 1 << 44
SEND_BUFFER: Final = 1 << 44
RECEIVE_BUFFER: Final = 2 << 44
SCRATCH: Final = 3 << 44  # the first piece of scratch memory

# Instead of an address:
UNNAMED: Final = -1  # not given by the algorithm
NOTHING: Final = -2  # the bytes are no data of the call: a signal, a header

# The place of bytes in the memory of a rank: an address; or (address, bytes) of several pieces, in
# the order of the message; or a function that returns the pieces, if to compute them takes long.
Pieces = Sequence[tuple[int, int]]
Place = Union[int, Pieces, Callable[[], Pieces]]

MOST_TAGS: Final = 1 << 10  # tags of the messages of one call: consecutive calls are that far apart


class Schedule:
    """The steps of one process; peers are ranks of its communicator.

    Methods append one step each. `isend` and `irecv` return the slot of the request they start, for
    `wait` and `waitall`. Sizes are bytes, times are seconds. `at` is the place of the bytes
    (`Place`). With `named`, a schedule keeps it in `places`: one for each step, (source,
    destination) for copies and moves, (left operand, right operand, result) for reductions.
    """

    def __init__(self, named: bool = False) -> None:
        self.codes: list[int] = []
        self.peers: list[int] = []
        self.sizes: list[int] = []
        self.tags: list[int] = []
        self.amounts: list[float] = []
        self.places: Optional[list[object]] = [] if named else None
        self.slots: int = 0
        self.first_open: int = 0

    def __len__(self) -> int:
        return len(self.codes)

    def count_starts(self) -> int:
        """The number of steps before the first one that waits or lets time pass."""
        count = 0
        for code in self.codes:
            if code != ISEND and code != IRECV:
                break
            count += 1
        return count

    def last_wait(self) -> int:
        """The index of the last step that waits for messages; 0 if there is none."""
        codes = self.codes
        i = len(codes) - 1
        while i > 0 and codes[i] not in WAITING:
            i -= 1
        return i if i > 0 else 0

    def first(self, count: int) -> "Schedule":
        """A schedule of the first `count` steps, which start messages, with the same slots."""
        schedule = Schedule()
        schedule.codes = self.codes[:count]
        schedule.peers = self.peers[:count]
        schedule.sizes = self.sizes[:count]
        schedule.tags = self.tags[:count]
        schedule.slots = self.slots
        return schedule

    def compact_peers(self) -> None:
        """Free the spare capacity of the list of peers, and let all ranks share its integers."""
        compact: list[Any] = [shared(peer) for peer in self.peers]
        self.peers = compact

    def _step(self, code: int, peer: int, nbytes: int, tag: int, at: object) -> None:
        # Larger tags would match messages of other calls.
        assert 0 <= tag < MOST_TAGS
        self.codes.append(code)
        self.peers.append(peer)
        self.sizes.append(nbytes)
        self.tags.append(tag)
        if self.places is not None:
            self.places.append(at)

    def send(self, peer: int, nbytes: int, at: Place = UNNAMED, tag: int = 0) -> None:
        """Send `nbytes` to `peer` and wait as a standard-mode send does."""
        self._step(SEND, peer, nbytes, tag, at)

    def share(self, peer: int, nbytes: int, at: Place = UNNAMED, tag: int = 0) -> None:
        """Give `nbytes` in shared memory to a receive of `peer`.

        This does not use the network and takes no time. The algorithm adds the cost of the stores
        and loads of both ranks with `sleep`.
        """
        self._step(SHARE, peer, nbytes, tag, at)

    def recv(self, peer: int, nbytes: int, at: Place = UNNAMED, tag: int = 0) -> None:
        """Receive up to `nbytes` from `peer` and wait for them."""
        self._step(RECV, peer, nbytes, tag, at)

    def isend(self, peer: int, nbytes: int, at: Place = UNNAMED, tag: int = 0) -> int:
        """Start a send; return its slot."""
        self._step(ISEND, peer, nbytes, tag, at)
        self.slots += 1
        return self.slots - 1

    def irecv(self, peer: int, nbytes: int, at: Place = UNNAMED, tag: int = 0) -> int:
        """Start a receive; return its slot."""
        self._step(IRECV, peer, nbytes, tag, at)
        self.slots += 1
        return self.slots - 1

    def sendrecv(
        self,
        dest: int,
        send_bytes: int,
        source: int,
        recv_bytes: int,
        send_at: Place = UNNAMED,
        recv_at: Place = UNNAMED,
        tag: int = 0,
    ) -> None:
        """Start a send and a receive, in this order, and wait for both."""
        first = self.isend(dest, send_bytes, send_at, tag)
        self.irecv(source, recv_bytes, recv_at, tag)
        self._step(WAITALL, first, first + 2, 0, None)

    def wait(self, slot: int) -> None:
        """Wait for the request of one slot."""
        self._step(WAIT, slot, slot + 1, 0, None)

    def waitall(self, first: int = 0, last: int = -1) -> None:
        """Wait for the slots `first` up to, not including, `last` (default: all so far).

        Slots that are already complete cost nothing.
        """
        end = self.slots if last < 0 else last
        if first == 0 and last < 0:
            first = self.first_open
            self.first_open = end
        if first < end:
            self._step(WAITALL, first, end, 0, None)

    def sleep(self, seconds: float) -> None:
        """Let `seconds` of simulated time pass."""
        self._timed(SLEEP, seconds)

    def compute(self, flops: float) -> None:
        """Execute `flops` on the core of the process."""
        self._timed(COMPUTE, flops)

    def reduce(
        self, nbytes: int, left: Place = UNNAMED, right: Place = UNNAMED, into: Place = UNNAMED
    ) -> None:
        """Combine two vectors of `nbytes` with the reduction operator: into = left op right."""
        self._timed(REDUCE, float(nbytes))
        if self.places is not None:
            self.places[-1] = (left, right, into)

    def copy(self, nbytes: int, source: Place = UNNAMED, dest: Place = UNNAMED) -> None:
        """Copy `nbytes` in local memory."""
        self._timed(COPY, float(nbytes))
        if self.places is not None:
            self.places[-1] = (source, dest)

    def move(self, nbytes: int, source: Place, dest: Place) -> None:
        """Record that `nbytes` have moved to another place; this takes no time.

        Libraries also make such copies; the model of time leaves them out.
        """
        if self.places is not None:
            self._step(MOVE, 0, nbytes, 0, (source, dest))

    def _timed(self, code: int, amount: float) -> None:
        self._step(code, len(self.amounts), 0, 0, None)
        self.amounts.append(amount)
