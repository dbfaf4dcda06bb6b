"""The extra time of code whose caches the simulator has left cold."""

from __future__ import annotations

from math import exp

import pytest

from pysmpi.time import coldness
from pysmpi.time.coldness import MOST_SHARE, Coldness, measure, measured_coldness
from pysmpi.time.cpu_clock import CpuClock
from pysmpi.time.timing import find_timing


class Steps:
    """A clock that tests move (ns)."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


def clock(share: float, most: float) -> tuple[CpuClock, Steps]:
    steps = Steps()
    result = CpuClock()
    result._monotonic_ns = result._cpu_ns = steps
    result.overhead = result.boundary = 0
    result.cold_share, result.cold_most = share, most
    result._seen = result._spent = result._latest = result._left = 0
    return result, steps


def block(
    one: CpuClock, steps: Steps, length: int, inside: bool = False, call: int = 15_000
) -> int:
    """The charge of a block of `length` after a call of `call` nanoseconds."""
    steps.now += call
    (one.start_inside if inside else one.start)()
    steps.now += length
    return one.stop()


@pytest.mark.parametrize("length", [100, 5_000, 20_000, 400_000, 50_000_000])
def test_a_share_of_short_blocks_and_a_constant_of_long_ones(length):
    one, steps = clock(0.4, 12_000.0)
    cold = 12_000 * (1 - exp(-0.4 * length / 12_000))
    assert block(one, steps, length) == pytest.approx(length - cold, abs=2)
    assert block(one, steps, length, inside=True) == length
    assert block(one, steps, length) == pytest.approx(length - cold, abs=2)
    assert 0.6 * length - 2 <= length - cold and cold <= 12_000


@pytest.mark.parametrize(("call", "part"), [(0, 0.0), (2_500, 0.25), (10_000, 1.0), (10**7, 1.0)])
def test_short_calls_such_as_looks_at_a_clock_leave_caches_warmer(call, part):
    one, steps = clock(0.4, 12_000.0)
    one.start()
    one.stop()
    cold = 12_000 * (1 - exp(-0.4 * 20_000 / 12_000))
    assert block(one, steps, 20_000, call=call) == pytest.approx(20_000 - part * cold, abs=2)


def test_work_of_the_program_inside_a_call_is_part_of_the_call():
    """Objects are unpickled just before the call ends; the caches stay cold."""
    one, steps = clock(0.4, 12_000.0)
    one.start()
    one.stop()
    block(one, steps, 3_000, inside=True)
    cold = 12_000 * (1 - exp(-0.4 * 20_000 / 12_000))
    assert block(one, steps, 20_000, call=0) == pytest.approx(20_000 - cold, abs=2)


def test_longer_blocks_stay_longer_and_empty_ones_empty():
    one, steps = clock(MOST_SHARE, 30_000.0)
    charged = [block(one, steps, length) for length in range(0, 200_000, 500)]
    assert charged[0] == 0 and charged == sorted(set(charged))


def test_a_computer_without_the_effect_charges_all():
    one, steps = clock(0.0, 0.0)
    assert block(one, steps, 5_000) == 5_000


def test_it_is_measured_once_in_a_process(monkeypatch):
    monkeypatch.setattr(coldness, "_measured", None)
    first = measured_coldness()
    assert measured_coldness() is first
    assert 0.0 <= first.share <= MOST_SHARE and first.most >= 0.0


def test_other_code_makes_the_sequence_slower():
    result = measure()
    assert 0.05 < result.share <= MOST_SHARE and result.most > 0.0


@pytest.mark.parametrize("compute", ["native", "steady"])
def test_measured_compute_leaves_it_out(monkeypatch, compute):
    monkeypatch.setattr(coldness, "_measured", Coldness(0.25, 4_000.0))
    measured = find_timing(compute, 1e9).clock
    assert (measured.cold_share, measured.cold_most) == (0.25, 4_000.0)
