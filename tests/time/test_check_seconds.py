"""Numbers of seconds are read as the C functions of Python read them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pysmpi.time.seconds import check_seconds


@pytest.mark.parametrize("value", [0, 1.5, -3.0, True, 9.1e9, -8e9])
def test_numbers_are_seconds(value: float) -> None:
    assert check_seconds(value) == float(value)


@pytest.mark.parametrize("value", [1e19, -1e19, float("inf"), float("nan"), 10**30, "1", None])
def test_others_raise_the_error_of_a_lock(value: Any) -> None:
    with pytest.raises((OverflowError, ValueError, TypeError)) as wanted:
        threading.Lock().acquire(True, value)
    with pytest.raises(wanted.type):
        check_seconds(value)
