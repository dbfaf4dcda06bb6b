"""The interval of sampled runs contains the time in full in nine of ten cases."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
import pytest

import pysmpi
from pysmpi.cli.summary import summary
from pysmpi.shadow import interval as intervals
from pysmpi.shadow.estimate import Estimate, StoppingRule
from pysmpi.shadow.interval import (
    SkippedPasses,
    around,
    independence,
    largest_of,
    skipped_passes,
)


def normal(draw: random.Random, count: int, correlation: float = 0.0) -> list[float]:
    """Times of passes around 100 with a deviation of 10, correlated with the one before."""
    times, before = [], draw.gauss(0.0, 10.0)
    for _ in range(count):
        own = draw.gauss(0.0, 10.0 * (1.0 - correlation**2) ** 0.5)
        before = correlation * before + own
        times.append(100.0 + before)
    return times


def measured(values: Sequence[float]) -> Estimate:
    estimate = Estimate()
    for value in values:
        estimate.add(value, StoppingRule(warmup=0))
    return estimate


def skipping(times: Sequence[float], measures: int) -> tuple[SkippedPasses, float, Estimate]:
    """The skipped passes of a series, their true time, and the measures."""
    estimate, rule = Estimate(), StoppingRule(measures, None, warmup=0)
    left, skipped, true = 0, 0, 0.0
    for time in times:
        if left:
            left, skipped, true = left - 1, skipped + 1, true + time
            estimate.apart += 1
        else:
            estimate.add(time, rule)
            left = estimate.gap() if estimate.enough(rule) else 0
    return skipped_passes(estimate, skipped, "mean", 1.0, 1), true, estimate


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
        kind = skipped_passes(measured(times[:measures]), skipped, "mean", 1.0)
        below, above = around([[kind]])
        inside += -below <= sum(times[measures:]) - kind.seconds <= above
    assert 0.85 <= inside / 400 <= 0.97


SERIES: dict[str, Callable[[random.Random, int], float]] = {
    "alike": lambda draw, number: draw.gauss(100.0, 5.0),
    "rising": lambda draw, number: draw.gauss(100.0, 3.0) * (1.0 + number / 500),
    "step": lambda draw, number: draw.gauss(100.0, 3.0) * (1.0 if number < 250 else 1.5),
    "hump": lambda draw, number: draw.gauss(100.0, 3.0) * (1.0 + math.sin(number / 160)),
    "image": lambda draw, number: (
        5e3 if math.sin(number / 160) * draw.random() > 0.6 else draw.uniform(100.0, 400.0)
    ),
}
# Whether passes are alike, and the largest median error of the time of the skipped ones.
EXPECTED = {
    "alike": (True, 0.02), "rising": (False, 0.02), "step": (False, 0.07), "hump": (False, 0.03),
    "image": (False, 0.15),
}  # fmt: skip


@pytest.mark.parametrize("name", SERIES)
def test_it_contains_passes_that_are_not_alike(name: str) -> None:
    alike, most = EXPECTED[name]
    passes = 3000 if name == "image" else 500
    inside, unlike, errors = 0, 0, []
    for seed in range(100):
        draw = random.Random(seed)
        times = [SERIES[name](draw, number * 500 // passes) for number in range(passes)]
        kind, true, estimate = skipping(times, 10)
        below, above = around([[kind]])
        inside += -below <= true - kind.seconds <= above
        unlike += estimate.unlike
        errors.append(abs(kind.seconds / true - 1.0))
    assert inside >= 85
    assert unlike <= 8 if alike else unlike >= 90
    assert median(errors) <= most


def test_late_measures_are_rare_where_passes_are_alike() -> None:
    estimate, rule = Estimate(), StoppingRule(5, None, warmup=0)
    draw, left, ran = random.Random(2), 0, 0
    for _ in range(5000):
        if left:
            left -= 1
            estimate.apart += 1
        else:
            ran += 1
            estimate.add(draw.gauss(1.0, 0.02), rule)
            left = estimate.gap() if estimate.enough(rule) else 0
    assert ran <= 70
    assert not estimate.unlike


def test_ranks_that_wait_for_each_other_make_it_longer_above() -> None:
    draw = random.Random(3)
    values = measured(normal(draw, 30))
    kind = skipped_passes(values, 200, "mean", 1e-9)
    one = around([[kind]])
    four = around([[kind]] * 4)
    assert one[0] == one[1] == four[0]
    assert four[1] > one[1]
    # Passes in few blocks of compute vary less together than apart.
    few = around([[skipped_passes(values, 200, "mean", 1e-9, 2)]] * 4)
    assert few[1] - few[0] == pytest.approx(0.1 * (four[1] - four[0]))
    # The largest of four normal values is 1.03 deviations above the mean, of eight 1.42.
    assert largest_of(4) == pytest.approx(1.03, rel=0.25)
    assert largest_of(8) == pytest.approx(1.42, rel=0.25)
    # Times that are drawn have slow passes of their own.
    drawn = skipped_passes(values, 200, "draw", 1e-9)
    assert around([[drawn]] * 4)[0] == around([[drawn]] * 4)[1]


def test_equal_measures_leave_the_errors_without_a_trace() -> None:
    kind = skipped_passes(measured([5.0] * 6), 10, "mean", 1.0)
    assert kind.error == 0.0
    assert around([[kind]], 60.0)[1] == pytest.approx(1.645 * intervals.SYSTEMATIC * 60.0)
    folded = around([[kind]], 60.0, True)
    assert folded[0] == pytest.approx(1.645 * intervals.FOLDED * 60.0)
    assert folded[1] > 6.0 * folded[0]
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
