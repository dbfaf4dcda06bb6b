"""Numbers of seconds that a program gives to clocks, sleeps and timeouts.

A function that takes the place of one of Python's own accepts the same numbers and raises the same
errors: `TypeError` for a text, `ValueError` for NaN, `OverflowError` for infinity.
"""

from __future__ import annotations

import _thread
import operator
from typing import Any

_free = _thread.allocate_lock()  # a real lock, which is never held for longer than a check
_acquire, _release = _free.acquire, _free.release
_LARGE = 9e9  # (s), still a valid time of CPython


def check_timeout(blocking: Any, timeout: Any) -> float:
    """The timeout of the arguments of a lock's `acquire`, -1 for none."""
    # A free lock of Python's own converts its arguments and does not wait.
    if _acquire(blocking, timeout):
        _release()
    return float(_number(timeout))


def check_seconds(seconds: Any) -> float:
    """A number of seconds as the C functions of Python read it; it may be negative."""
    if type(seconds) is float and 0.0 <= seconds < _LARGE:
        return seconds
    value = _number(seconds)
    if not -_LARGE < value < _LARGE:
        check_timeout(True, value)
    return float(value)


def round_up(seconds: float, unit: float) -> float:
    """Seconds of which C code uses whole units and rounds up: a little less than 0 is 0."""
    return 0.0 if -unit < seconds < 0.0 else seconds


def _number(value: Any) -> float:
    if isinstance(value, float):
        return value
    try:
        return operator.index(value)
    except TypeError:
        if _acquire(True, value):  # raises the error of this version of Python, or accepts it
            _release()
        return float(value)
