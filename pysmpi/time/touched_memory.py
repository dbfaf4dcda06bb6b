"""`pysmpi.touch` in a run: accesses of the program pass through its core's caches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pysmpi import hints
from pysmpi.kernel.plan import Transport
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.buffers.locations import place_of


@contextmanager
def followed_by(transport: Transport) -> Iterator[None]:
    """Report annotations to `transport`, if it models the contents of caches."""
    touch = getattr(transport, "touch", None)

    def touched(array: object, write: bool) -> None:
        assert touch is not None
        rank = current()
        process = rank.enter()
        place, nbytes = place_of(array)
        touch(process.slot, place, nbytes, bool(write))
        rank.leave()

    before = hints.touched
    hints.touched = None if touch is None else touched
    try:
        yield
    finally:
        hints.touched = before
