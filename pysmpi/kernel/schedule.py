"""Schedules: what one process does in time, as a list of steps.

A schedule holds no data and no clock. Each step is one row of four integers, kept in parallel
lists, so that a schedule of a million steps stays small and is executed without a Python call
a step.
"""

from typing import Final

SEND: Final = 0  # blocking send: pays os, waits as the protocol asks
ISEND: Final = 1  # starts a send in a slot: pays ois
SSEND: Final = 2  # blocking send that completes only once matched
RECV: Final = 3  # blocking receive
IRECV: Final = 4  # starts a receive in a slot
WAIT: Final = 5  # waits for one slot
WAITALL: Final = 6  # waits for a range of slots
WAITANY: Final = 7  # continues when one slot of a range is complete
SLEEP: Final = 8  # lets time pass
REDUCE: Final = 9  # combines bytes with an operator
COPY: Final = 10  # copies bytes in local memory
COMPUTE: Final = 11  # executes flops on the core
SHARE: Final = 12  # lets a peer see bytes in memory that both share: takes no time

NAMES: Final = (
    "send", "isend", "ssend", "recv", "irecv", "wait", "waitall", "waitany",
    "sleep", "reduce", "copy", "compute", "share",
)  # fmt: skip


MOST_TAGS: Final = 1 << 10  # of the messages of one call


class Schedule:
    """The steps of one process; peers are ranks of the communicator that it runs on.

    Methods append one step each. `isend` and `irecv` return the slot of the request they start,
    for `wait`, `waitall` and `waitany`. Sizes are bytes, times are seconds.
    """

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.peers: list[int] = []
        self.sizes: list[int] = []
        self.tags: list[int] = []
        self.amounts: list[float] = []
        self.slots: int = 0
        self.first_open: int = 0

    def __len__(self) -> int:
        return len(self.codes)

    def _step(self, code: int, peer: int, nbytes: int, tag: int) -> None:
        # Tags beyond would meet the messages of other calls.
        assert 0 <= tag < MOST_TAGS
        self.codes.append(code)
        self.peers.append(peer)
        self.sizes.append(nbytes)
        self.tags.append(tag)

    def send(self, peer: int, nbytes: int, tag: int = 0) -> None:
        """Send `nbytes` to `peer` and wait as a standard-mode send does."""
        self._step(SEND, peer, nbytes, tag)

    def ssend(self, peer: int, nbytes: int, tag: int = 0) -> None:
        """Send `nbytes` to `peer` and wait until the transfer is over."""
        self._step(SSEND, peer, nbytes, tag)

    def share(self, peer: int, nbytes: int, tag: int = 0) -> None:
        """Let a receive of `peer` have `nbytes` that lie in memory which both share.

        No network carries them and no time passes: what the stores and loads of both cost, the
        algorithm says itself, by `sleep`.
        """
        self._step(SHARE, peer, nbytes, tag)

    def recv(self, peer: int, nbytes: int, tag: int = 0) -> None:
        """Receive up to `nbytes` from `peer` and wait for them."""
        self._step(RECV, peer, nbytes, tag)

    def isend(self, peer: int, nbytes: int, tag: int = 0) -> int:
        """Start a send; return its slot."""
        self._step(ISEND, peer, nbytes, tag)
        self.slots += 1
        return self.slots - 1

    def irecv(self, peer: int, nbytes: int, tag: int = 0) -> int:
        """Start a receive; return its slot."""
        self._step(IRECV, peer, nbytes, tag)
        self.slots += 1
        return self.slots - 1

    def sendrecv(
        self, dest: int, send_bytes: int, source: int, recv_bytes: int, tag: int = 0
    ) -> None:
        """Start a send and a receive, in this order, and wait for both."""
        first = self.isend(dest, send_bytes, tag)
        self.irecv(source, recv_bytes, tag)
        self._step(WAITALL, first, first + 2, 0)

    def wait(self, slot: int) -> None:
        """Wait for the request of one slot."""
        self._step(WAIT, slot, slot + 1, 0)

    def waitall(self, first: int = 0, last: int = -1) -> None:
        """Wait for the slots `first` up to, not including, `last` (default: all so far).

        Slots that were already waited for cost nothing.
        """
        end = self.slots if last < 0 else last
        if first == 0 and last < 0:
            first = self.first_open
            self.first_open = end
        if first < end:
            self._step(WAITALL, first, end, 0)

    def waitany(self, first: int, last: int) -> None:
        """Go on once one slot in `first` up to, not including, `last` is complete."""
        self._step(WAITANY, first, last, 0)

    def sleep(self, seconds: float) -> None:
        """Let `seconds` of simulated time pass."""
        self._timed(SLEEP, seconds)

    def compute(self, flops: float) -> None:
        """Execute `flops` on the core of the process."""
        self._timed(COMPUTE, flops)

    def reduce(self, nbytes: int) -> None:
        """Combine two vectors of `nbytes` with the reduction operator."""
        self._timed(REDUCE, float(nbytes))

    def copy(self, nbytes: int) -> None:
        """Copy `nbytes` in local memory."""
        self._timed(COPY, float(nbytes))

    def _timed(self, code: int, amount: float) -> None:
        self._step(code, len(self.amounts), 0, 0)
        self.amounts.append(amount)
