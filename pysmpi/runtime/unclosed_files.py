"""Files that a program leaves open: at its end, they have all that it has written to them.

A process writes the rest when it ends, as Python releases its objects. Ranks end in a process that
goes on.
"""

from __future__ import annotations

import contextlib
import gc
import io
from collections.abc import Iterator

from pysmpi.descriptors import open_descriptors
from pysmpi.frames import instances

_BUFFERED = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)


@contextlib.contextmanager
def written_out(last: bool = False) -> Iterator[None]:
    """After it, files that were opened in it are complete, and those in cycles are closed.

    If the process ends after it (`last`), Python closes them.
    """
    before = open_descriptors()
    try:
        yield
    finally:
        after = open_descriptors()
        if before is None or after is None or after - before:
            _flush(set() if before is None else set(before))
            if not last:
                gc.collect()


def _flush(others: set[int]) -> None:
    """Write the buffers of files whose descriptors are not among `others`.

    In a cycle, a text file may be released after the binary file that it writes to.
    """
    for thing in instances(_BUFFERED):
        assert isinstance(thing, _BUFFERED)
        # Closed, detached, or its disk is full, which Python does not report here either.
        with contextlib.suppress(OSError, ValueError):
            if thing.fileno() not in others:
                thing.flush()
