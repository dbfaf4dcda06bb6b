"""The interval of sampled runs contains the time in full in nine of ten cases."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import pysmpi
from pysmpi.cli.summary import summary
from pysmpi.shadow import interval as intervals
from pysmpi.shadow.interval import around, independence, largest_of, skipped_passes


def normal(draw: random.Random, count: int, correlation: float = 0.0) -> list[float]:
    """Times of passes around 100 with a deviation of 10, correlated with the one before."""
    times, before = [], draw.gauss(0.0, 10.0)
    for _ in range(count):
        own = draw.gauss(0.0, 10.0 * (1.0 - correlation**2) ** 0.5)
        before = correlation * before + own
        times.append(100.0 + before)
    return times


@pytest.mark.parametrize(
    ("measures", "correlation", "skipped"), [(6, 0.0, 60), (30, 0.0, 500), (30, 0.5, 500)]
)
def test_it_contains_the_passes_that_were_skipped(
    measures: int, correlation: float, skipped: int
) -> None:
    draw = random.Random(7)
    inside = 0
    for _ in range(400):
        times = normal(draw, measures + skipped, correlation)
        first = times[:measures]
        mean = sum(first) / measures
        kind = skipped_passes(first, skipped, mean, 1.0, False)
        below, above = around([[kind]])
        inside += -below <= sum(times[measures:]) - skipped * mean <= above
    assert 0.85 <= inside / 400 <= 0.97


def test_ranks_that_wait_for_each_other_make_it_longer_above() -> None:
    draw = random.Random(3)
    kind = skipped_passes(normal(draw, 30), 200, 100.0, 1e-9, False)
    one = around([[kind]])
    four = around([[kind]] * 4)
    assert one[0] == one[1] == four[0]
    assert four[1] > one[1]
    # The largest of four normal values is 1.03 deviations above the mean, of eight 1.42.
    assert largest_of(4) == pytest.approx(1.03, rel=0.25)
    assert largest_of(8) == pytest.approx(1.42, rel=0.25)
    # Times that are drawn have slow passes of their own.
    drawn = skipped_passes(normal(draw, 30), 200, 100.0, 1e-9, True)
    assert around([[drawn]] * 4)[0] == around([[drawn]] * 4)[1]


def test_equal_measures_leave_the_errors_without_a_trace() -> None:
    kind = skipped_passes([5.0] * 6, 10, 5.0, 1.0, False)
    assert kind.error == 0.0
    assert around([[kind]], 60.0)[1] == pytest.approx(1.645 * intervals.SYSTEMATIC * 60.0)
    assert around([[kind]], 60.0, True)[1] == pytest.approx(1.645 * intervals.FOLDED * 60.0)
    assert independence([1.0, 1.0, 1.0, 1.0]) == 1.0
    assert independence([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]) < 0.6


class Work:
    def step(self) -> None:
        np.sort(np.random.default_rng(1).random(20_000))


def program() -> None:
    from mpi4py import MPI

    work = Work()
    for _ in range(30):
        work.step()
        MPI.COMM_WORLD.Barrier()


def run(**options: Any) -> Any:
    return pysmpi.run(program, 2, platform="cluster", **options)


def test_a_sampled_run_says_it() -> None:
    place = f"{__name__}:Work.step:iters=5"
    result = run(sample=[place], compute="native")
    found = result.intervals["sampling"]
    assert found["low_seconds"] < result.seconds < found["high_seconds"]
    assert result.intervals["prediction"] is None
    assert "90 % interval of the time in full" in summary(result)
    # Fixed times are those of a full run.
    fixed = run(sample=[place], compute="1ms").intervals["sampling"]
    assert fixed["low_seconds"] == fixed["high_seconds"]
    assert run(compute="native").intervals is None


def test_the_interval_of_the_prediction_contains_that_of_sampling() -> None:
    place = f"{__name__}:Work.step:iters=5"
    cfg = {"network/error": "0.01;0.01;0.01", "compute/error": "0.0001"}
    result = run(sample=[place], compute="native", explain=True, cfg=cfg)
    small, large = result.intervals["sampling"], result.intervals["prediction"]
    assert large["low_seconds"] <= small["low_seconds"] * 1.001
    assert large["high_seconds"] >= small["high_seconds"] * 0.999
