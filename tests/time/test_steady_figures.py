"""The figures of steady compute are in seconds; they are collected in nanoseconds."""

from pysmpi.time.timing import SteadyTiming


def test_figures_are_seconds() -> None:
    timing = SteadyTiming(1e9)
    timing.tally.measured, timing.tally.charged, timing.tally.rare = 2 * 10**9, 10**9, 5 * 10**8
    assert timing.report() == {
        "measured_seconds": 2.0, "charged_seconds": 1.0, "rare_seconds": 0.5,
    }  # fmt: skip
