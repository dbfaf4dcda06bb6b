"""The memory that a limit of the process leaves for ranks (`ulimit -v`).

A switch of ranks copies the C stack of one of them. If there is no memory for this, the interpreter
ends at once, without a message. So a run ends before the memory does.
"""

from __future__ import annotations

import os

from pysmpi.errors import PysmpiError
from pysmpi.text import count

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

MARGIN = 48 << 20  # bytes that stay free
EVERY = 32  # ranks between two looks
UNKNOWN = "out of memory: expected fewer ranks, less data, or a higher limit (ulimit -v)"
_SIZES = "/proc/self/statm"


class OutOfMemory(PysmpiError, MemoryError):
    """The ranks of a job need more memory than a limit of the process allows."""


class AddressSpace:
    """The limit of this process, and its use (bytes) when ranks begin."""

    def __init__(self, limit: int, used: int) -> None:
        self.limit = limit
        self.first = (0, used)  # ranks that have begun, and the use then
        self.most = limit - min(MARGIN, (limit - used) // 4)

    def check(self, started: int, ranks: int) -> None:
        """Raise `OutOfMemory` if the next ranks may not fit; `begun` of `ranks` have begun."""
        used = _used()
        if started == EVERY:
            self.first = started, used  # with the modules that the first ranks have loaded
        if used > self.most:
            before, base = self.first
            each = (used - base) / max(started - before, 1)
            needed = max(used + each * (ranks - started), self.limit) + MARGIN
            raise OutOfMemory(
                f"out of memory: {started:,} of {count(ranks, 'rank')} have begun, and this "
                f"process uses {used >> 20:,} of the {self.limit >> 20:,} MiB that its limit "
                f"allows; expected a limit of about {int(needed) >> 20:,} MiB (ulimit -v), or "
                "fewer ranks"
            )


def limited() -> AddressSpace | None:
    """The limit of the memory of this process; None without one, or if its use is unknown."""
    if resource is None or not os.path.exists(_SIZES):
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else AddressSpace(limit, _used())


def _used() -> int:
    with open(_SIZES, "rb", buffering=0) as stream:
        return int(stream.read(64).split()[0]) * os.sysconf("SC_PAGE_SIZE")
