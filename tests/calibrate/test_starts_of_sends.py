"""The cost of starting a send: as measured alone, or as exchanges of messages show it."""

from __future__ import annotations

import pytest

from pysmpi.calibrate.network_fit import Fit, FittedPiece, _starting

SIZES = (1000, 2000, 4000, 8000)


def fitted() -> tuple[FittedPiece, Fit]:
    piece = FittedPiece(0, (1e-6, 0.0), (2e-6, 1e-10), (1e-6, 1e-10), (3e-6, 1e-9))
    return piece, Fit([piece], 1e9, 3e-6, 65536, 65536)


def exchanges(first: float, each: float) -> dict[int, float]:
    """The times (s) of exchanges whose sends cost `first` seconds and `each` for a byte."""
    return {size: 3e-6 + 1e-9 * size + 1e-6 + 1e-10 * size + first + each * size for size in SIZES}


def test_the_measured_cost_that_fits_is_kept() -> None:
    piece, fit = fitted()
    assert _starting(piece, fit, exchanges(*piece.isend)) is piece.isend
    first, each = piece.isend
    slightly = {size: 1.03 * time for size, time in exchanges(first, each).items()}
    assert _starting(piece, fit, slightly) is piece.isend


def test_another_cost_is_found_from_the_exchanges() -> None:
    piece, fit = fitted()
    assert _starting(piece, fit, exchanges(9e-6, 5e-10)) == pytest.approx((9e-6, 5e-10))


def test_one_exchange_shows_nothing() -> None:
    piece, fit = fitted()
    assert _starting(piece, fit, {1000: 1.0}) is piece.isend
