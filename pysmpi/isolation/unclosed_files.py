"""Files that a program leaves open: at its end, they have all that it has written to them.

A process writes the rest when it ends, as Python releases its objects. Ranks end in a process that
goes on.
"""

from __future__ import annotations

import contextlib
import gc
import io
from collections.abc import Iterator

from pysmpi.own_process.descriptors import open_descriptors, opened_since
from pysmpi.python.frames import instances

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
        opened = opened_since(before)
        if opened is None or opened:
            _flush(opened)
            if not last:
                gc.collect()


def _flush(opened: set[int] | None) -> None:
    """Write the buffers of files with some descriptors, or of all files.

    In a cycle, a text file may be released after the binary file that it writes to.
    """
    for thing in instances(_BUFFERED):
        assert isinstance(thing, _BUFFERED)
        # Closed, detached, or its disk is full, which Python does not report here either.
        with contextlib.suppress(OSError, ValueError):
            if opened is None or thing.fileno() in opened:
                thing.flush()
