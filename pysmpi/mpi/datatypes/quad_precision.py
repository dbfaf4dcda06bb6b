"""Arithmetic on IEEE binary128 numbers, which numpy lacks: for MPI_REAL16 and MPI_COMPLEX32.

Finite numbers are computed as exact fractions and rounded once, to nearest even, as the standard
requires. Infinities and NaNs use Python's floats, which have the same rules.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

Number = Fraction | float

_FRACTION_BITS = 112
_BIAS = 16383
_SPECIAL = 0x7FFF
# Exponent of the unit in the last place of subnormal numbers.
_TINY = 1 - _BIAS - _FRACTION_BITS


def decode(data: Any) -> tuple[Number, bool]:
    """The value of 16 bytes in this machine's order, and the sign bit."""
    bits = int.from_bytes(data, sys.byteorder)
    negative = bool(bits >> 127)
    exponent = bits >> _FRACTION_BITS & _SPECIAL
    fraction = bits & ((1 << _FRACTION_BITS) - 1)
    if exponent == _SPECIAL:
        value: Number = math.nan if fraction else math.inf
    else:
        if exponent:
            fraction |= 1 << _FRACTION_BITS
        value = fraction * Fraction(2) ** (max(exponent, 1) - _BIAS - _FRACTION_BITS)
    return (-value if negative else value), negative


def encode(value: Number, negative: bool = False) -> bytes:
    """16 bytes in this machine's order; `negative` is the sign of a zero."""
    if isinstance(value, float):
        negative = math.copysign(1.0, value) < 0
        bits = _SPECIAL << _FRACTION_BITS | (1 << _FRACTION_BITS - 1 if math.isnan(value) else 0)
    else:
        if value:
            negative = value < 0
        bits = _rounded(abs(value))
    return (bits | negative << 127).to_bytes(16, sys.byteorder)


def _rounded(value: Fraction) -> int:
    """Exponent and fraction of a number that is not negative."""
    if not value:
        return 0
    scale = value.numerator.bit_length() - value.denominator.bit_length()
    if value < Fraction(2) ** scale:
        scale -= 1
    unit = max(scale - _FRACTION_BITS, _TINY)
    # Python rounds halves to even. A carry runs into the exponent, as it has to.
    digits = round(value / Fraction(2) ** unit)
    exponent = unit + _FRACTION_BITS + _BIAS
    bits = ((exponent - 1) << _FRACTION_BITS) + digits
    return min(bits, _SPECIAL << _FRACTION_BITS)


def _add(x: tuple[Number, bool], y: tuple[Number, bool]) -> tuple[Number, bool]:
    (a, s), (b, t) = x, y
    if isinstance(a, float) or isinstance(b, float):
        return _float(a) + _float(b), False
    return a + b, s and t


def _multiply(x: tuple[Number, bool], y: tuple[Number, bool]) -> tuple[Number, bool]:
    (a, s), (b, t) = x, y
    if isinstance(a, float) or isinstance(b, float):
        return _float(a) * _float(b), s != t
    return a * b, s != t


def _float(value: Number) -> float:
    """Only the sign of a finite number matters beside an infinity."""
    if isinstance(value, float):
        return value
    return float((value > 0) - (value < 0))


def _settled(value: tuple[Number, bool]) -> tuple[Number, bool]:
    """The nearest number that can be stored."""
    return decode(encode(*value))


def combine(name: str, invec: Any, inoutvec: Any, complex_pairs: bool) -> None:
    """inoutvec = invec op inoutvec, for MAX, MIN, SUM and PROD."""
    source, target = memoryview(invec).cast("B"), memoryview(inoutvec).cast("B")
    width = 32 if complex_pairs else 16
    for start in range(0, target.nbytes - width + 1, width):
        x = [decode(source[i : i + 16]) for i in range(start, start + width, 16)]
        y = [decode(target[i : i + 16]) for i in range(start, start + width, 16)]
        if name == "SUM":
            made = [_add(a, b) for a, b in zip(x, y)]
        elif name == "MAX":
            made = [max(x[0], y[0])]
        elif name == "MIN":
            made = [min(x[0], y[0])]
        elif not complex_pairs:
            made = [_multiply(x[0], y[0])]
        else:
            (a, b), (u, v) = x, y
            ac, bd, ad, bc = (
                _settled(_multiply(*pair)) for pair in ((a, u), (b, v), (a, v), (b, u))
            )
            minus = (-bd[0], not bd[1])
            made = [_add(ac, minus), _add(ad, bc)]
        target[start : start + width] = b"".join(encode(*number) for number in made)
