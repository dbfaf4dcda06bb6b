"""Laws of the number of ranks are found from a few runs, and the simplest of equals is taken."""

from __future__ import annotations

import numpy as np
import pytest

from pysmpi.analysis.extrapolation import EXPONENTS, LOGARITHMS, SIMPLE, Law, fit

RANKS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
MANY = 1024.0


@pytest.mark.parametrize("logarithm", LOGARITHMS)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_a_law_is_found_from_its_own_times(exponent: float, logarithm: int) -> None:
    law = Law(0.5, 0.25, exponent, logarithm)
    seconds = np.array([law.at(ranks) for ranks in RANKS])
    found = fit(RANKS, seconds, float(seconds.sum()))
    assert found.at(MANY) == pytest.approx(law.at(MANY), rel=0.02)


@pytest.mark.parametrize(("exponent", "logarithm"), SIMPLE)
def test_few_runs_have_simple_laws(exponent: float, logarithm: int) -> None:
    law = Law(0.5, 0.25, exponent, logarithm)
    seconds = np.array([law.at(ranks) for ranks in RANKS[:4]])
    found = fit(RANKS[:4], seconds, float(seconds.sum()))
    assert (found.exponent, found.logarithm) == (exponent, logarithm)
    assert found.at(MANY) == pytest.approx(law.at(MANY))


def test_a_law_is_its_formula() -> None:
    assert Law(1.0, 2.0, 0.5, 1).at(16.0) == pytest.approx(1.0 + 2.0 * 4.0 * 4.0)
    assert Law(1.0, 0.0, 0.0, 0).at(16.0) == 1.0


def test_differences_that_do_not_matter_leave_the_simplest() -> None:
    seconds = 1e-6 * RANKS
    assert fit(RANKS, seconds, 1e4).factor == 0.0
    assert fit(RANKS, seconds, float(seconds.sum())).exponent == 1.0
