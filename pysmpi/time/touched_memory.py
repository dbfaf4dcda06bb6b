"""`pysmpi.touch` and `pysmpi.execute` in a run: accesses to caches, and operations of a core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pysmpi import hints
from pysmpi.kernel.plan import Transport
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.buffers.locations import place_of
from pysmpi.time.host_speed import host_speed


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

    def executed(flops: float) -> None:
        rank = current()
        speed = rank.host.speed
        rank.process.owe(flops / (host_speed() if speed is None else speed))

    before = hints.touched, hints.executed
    hints.executed = executed
    hints.touched = None if touch is None else touched
    try:
        yield
    finally:
        hints.touched, hints.executed = before
