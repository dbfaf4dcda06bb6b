"""Timeouts that nobody waits for any more take no memory until their date."""

from __future__ import annotations

from pysmpi.kernel.engine import Engine
from pysmpi.kernel.requests import KernelRequest
from pysmpi.mpi.base.ranks import FreeTransport


def test_they_are_removed_and_others_stay():
    engine = Engine(FreeTransport(), 1)
    first, last = engine.alarm(1.0), engine.alarm(1e9)
    for i in range(35_000):
        engine.ignore(engine.alarm(1e6 + i))
    assert len(engine.queue.all()) <= 10_002
    engine.run()
    assert (first.time, last.time) == (1.0, 1e9)


def test_a_request_completes_at_its_date_at_the_latest():
    engine = Engine(FreeTransport(), 1)
    late, early = KernelRequest(), KernelRequest()
    engine.complete_at(5.0, late)
    engine.complete_at(7.0, early)
    early.complete(engine.now)  # by something else
    engine.run()
    assert late.done and late.time == 5.0
    assert early.done and early.time == 0.0
