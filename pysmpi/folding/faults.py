"""The time of first accesses to fresh memory.

The operating system provides and clears a page of memory when a process first accesses it. A rank
with a folded block that another rank has used does not need this time, but a real process does. The
rank is therefore charged the time, which is measured once.

The rule for fresh memory is that of glibc's malloc: large arrays (`MAPPED`) are mapped each time;
for smaller ones the heap grows when a process holds more than ever before.
"""

from __future__ import annotations

import ctypes
from time import thread_time_ns

from pysmpi.folding.arena import HUGE, ON_HUGE_PAGES, Pages

MAPPED = 32 << 20  # DEFAULT_MMAP_THRESHOLD_MAX of glibc on 64-bit machines
_PROBE = 8 << 20  # bytes
_TIMES = 4


class Faults:
    """The cost of fresh memory on this machine, in nanoseconds a byte."""

    def __init__(self) -> None:
        pages = Pages()
        self.usual = _probe(pages, False)
        self.huge = _probe(pages, True)

    def cost(self, nbytes: int, grown: int) -> int:
        """Nanoseconds to charge for an array of `nbytes` that raises a rank's peak by `grown`."""
        if nbytes < MAPPED:
            nbytes = min(nbytes, grown)
        # An array may begin anywhere; this part is on no whole huge page.
        huge = max(0, nbytes - HUGE) if nbytes >= ON_HUGE_PAGES else 0
        return int(huge * self.huge + (nbytes - huge) * self.usual)


def _probe(pages: Pages, huge: bool) -> float:
    """Nanoseconds a byte of getting, touching and giving back memory, less touching alone."""
    room = _PROBE + HUGE
    held: list[int] = []
    spent = 0
    try:
        # All are held until the end, because recently released memory is cheaper.
        for _ in range(_TIMES):
            begun = thread_time_ns()
            start = pages.reserve(room)
            if not start:
                return 0.0
            held.append(start)
            address = -(-start // HUGE) * HUGE
            pages.open(address, _PROBE)
            if huge:
                pages.enlarge(address, _PROBE)
            ctypes.memset(address, 0, _PROBE)
            touched = thread_time_ns()
            ctypes.memset(address, 0, _PROBE)
            spent += touched - begun - (thread_time_ns() - touched)
    finally:
        begun = thread_time_ns()
        for start in held:
            pages.close(start, room)
        spent += thread_time_ns() - begun
    return max(0.0, spent / (_TIMES * _PROBE))
