"""The cost of the boundary of calls, which blocks of compute do not contain."""

from __future__ import annotations

import pytest

from pysmpi.time import timing
from pysmpi.time.boundary import boundary_cost
from pysmpi.time.cpu_clock import CpuClock, CpuTimer
from pysmpi.time.steady import SteadyTimer, TimeTally
from pysmpi.time.timing import RecordingTimer


@pytest.mark.parametrize("kind", [CpuTimer, RecordingTimer, SteadyTimer])
def test_only_blocks_between_calls_contain_the_boundary(kind):
    clock = CpuClock()
    clock.overhead, clock.boundary = 0, 1_000_000_000
    make = {
        CpuTimer: lambda: CpuTimer(clock, 1.0),
        RecordingTimer: lambda: RecordingTimer(clock, 1.0, 0, lambda text: None),
        SteadyTimer: lambda: SteadyTimer(clock, 1.0, TimeTally(), 0),
    }
    timer = make[kind]()

    def block(begin) -> float:
        begin()
        for _ in range(1000):
            pass
        return timer.stop()

    assert block(timer.start) == 0.0
    assert block(timer.resume) > 0.0
    assert block(timer.start) == 0.0


def test_the_boundary_takes_less_than_a_call():
    assert 0 < boundary_cost(CpuClock()) < 20_000


@pytest.mark.parametrize("compute", ["native", "steady"])
def test_measured_compute_leaves_it_out(monkeypatch, compute):
    monkeypatch.setattr(timing, "boundary_cost", lambda clock: 777)
    assert timing.find_timing(compute, 1e9).clock.boundary == 777
