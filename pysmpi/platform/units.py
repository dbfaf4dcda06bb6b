"""Quantities with units, as SimGrid spells them: "125MBps", "1Gbps", "24us", "3.5Gf", "64KiB".

Every function takes the text of a quantity and returns it in the base unit that pysmpi computes
with: bytes/s, seconds, flop/s, bytes. Decimal prefixes are powers of 1000 (k M G T P E Z Y), binary
ones powers of 1024 (Ki Mi Gi Ti Pi Ei Zi Yi); a lower-case b is a bit.

A number without a unit is an error, because the unit of "24" is not known; zero needs no unit. If a
plain number has a defined meaning (SimGrid options such as ``network/loopback-bw``), the caller
passes ``bare=True``, and the number is in the base unit.

Negative, infinite and not-a-number values are errors: no quantity of a platform has them. So are
values from 1e100 on, and those below 1e-100 that are not 0: their products leave the range of a
float.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pysmpi.errors import UsageError

MOST = 1e100

_NUMBER = re.compile(r"\+?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

_DECIMAL = ("k", "M", "G", "T", "P", "E", "Z", "Y")
_DECIMAL_WORDS = ("kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")


class _Kind(NamedTuple):
    """One kind of quantity: its name, examples, and the factors of its units."""

    name: str
    examples: str
    units: dict[str, float]


def _scaled(unit: str, value: float, prefixes: tuple[str, ...], step: float) -> dict[str, float]:
    factors = {unit: value}
    for prefix in prefixes:
        value *= step
        factors[prefix + unit] = value
    return factors


_BANDWIDTH = _Kind(
    "a bandwidth",
    '"10Gbps" or "125MBps"',
    {
        **_scaled("bps", 0.125, _DECIMAL, 1000.0),
        **_scaled("bps", 0.125, _BINARY, 1024.0),
        **_scaled("Bps", 1.0, _DECIMAL, 1000.0),
        **_scaled("Bps", 1.0, _BINARY, 1024.0),
    },
)
_TIME = _Kind(
    "a time",
    '"24us" or "1.5ms"',
    {
        "w": 604800.0,
        "d": 86400.0,
        "h": 3600.0,
        "m": 60.0,
        "s": 1.0,
        "ms": 1e-3,
        "us": 1e-6,
        "ns": 1e-9,
        "ps": 1e-12,
    },
)
_SPEED = _Kind(
    "a speed",
    '"3.5Gf" or "100Mf"',
    {
        **_scaled("f", 1.0, _DECIMAL, 1000.0),
        **_scaled("flops", 1.0, _DECIMAL_WORDS, 1000.0),
    },
)
_SIZE = _Kind(
    "a size",
    '"64KiB" or "100MB"',
    {
        **_scaled("b", 0.125, _DECIMAL, 1000.0),
        **_scaled("b", 0.125, _BINARY, 1024.0),
        **_scaled("B", 1.0, _DECIMAL, 1000.0),
        **_scaled("B", 1.0, _BINARY, 1024.0),
    },
)


# Other spellings of units, in this order, and those of this module.
_SPELLINGS = (
    (r"\s+", ""),
    (r"\u00b5|\u03bc", "u"),
    (r"(?i)bits?(?=/|ps|$)", "b"),
    (r"(?i)bytes?(?=/|ps|$)", "B"),
    (r"/se?c?o?n?d?$", "ps"),
    (r"(?i)usecs?$|microseconds?$", "us"),
    (r"(?i)nsecs?$|nanoseconds?$", "ns"),
    (r"(?i)msecs?$|milliseconds?$", "ms"),
    (r"(?i)secs?$|seconds?$", "s"),
    (r"gb(?=ps)", "Gb"),
    (r"mb(?=ps)", "Mb"),
    (r"(?i)flop/s$|flops?$|flopps$", "f"),
)


def _meant(text: str, kind: _Kind) -> str:
    """`; did you mean "..."?` if a usual spelling of a quantity is one of `kind`."""
    same = text.strip()
    for pattern, spelling in _SPELLINGS:
        same = re.sub(pattern, spelling, same)
    match = _NUMBER.match(same)
    if match is None or same == text or same[match.end() :] not in kind.units:
        return ""
    return f'; did you mean "{same}"?'


def _parse(text: str, kind: _Kind, bare: bool) -> float:
    stripped = text.strip()
    match = _NUMBER.match(stripped)
    if match is None:
        raise UsageError(f'expected {kind.name}, e.g. {kind.examples}, got "{text}"')
    number, unit = float(match.group()), stripped[match.end() :]
    if not unit:
        if number == 0.0 or bare:
            factor = 1.0
        else:
            raise UsageError(
                f'expected {kind.name} with its unit, e.g. {kind.examples}, got "{text}"'
            )
    else:
        known = kind.units.get(unit)
        if known is None:
            raise UsageError(
                f'expected {kind.name}, e.g. {kind.examples}, got "{text}"{_meant(text, kind)}'
            )
        factor = known
    return checked(number * factor, kind.name, f'"{text}"')


def checked(value: float, what: str, text: str) -> float:
    """A value whose products a float can hold: 0, or from 1e-100 to 1e100. Raises UsageError."""
    if value != 0.0 and not 1.0 / MOST <= value <= MOST:
        raise UsageError(f"expected {what} from 1e-100 to 1e100, or 0, got {text}")
    return value


def parse_bandwidth(text: str, *, bare: bool = False) -> float:
    """Bandwidth in bytes/s: "125MBps" is 125e6, "1Gbps" is 125e6, "1KiBps" is 1024.

    Raises UsageError when `text` is not a number followed by a unit of bandwidth.
    """
    return _parse(text, _BANDWIDTH, bare)


def parse_time(text: str, *, bare: bool = False) -> float:
    """Time in seconds; units w d h m s ms us ns ps. Raises UsageError."""
    return _parse(text, _TIME, bare)


def parse_speed(text: str, *, bare: bool = False) -> float:
    """Computing speed in flop/s: "3.5Gf" or "3.5gigaflops" is 3.5e9. Raises UsageError."""
    return _parse(text, _SPEED, bare)


def parse_size(text: str, *, bare: bool = False) -> int:
    """Size in whole bytes: "64KiB" is 65536, "1kb" (bits) is 125.

    Raises UsageError for other texts, and for fractions of a byte.
    """
    value = _parse(text, _SIZE, bare)
    if value != int(value):
        raise UsageError(f'expected a whole number of bytes, got "{text}"')
    return int(value)


def _format(value: float, kind: str, prefixes: tuple[str, ...]) -> str:
    """`value` with the largest prefix that leaves at least 1, in a form that reads back exactly."""
    scale, chosen = 1.0, ""
    step = 1.0
    for prefix in prefixes:
        step *= 1000.0
        if value < step:
            break
        scale, chosen = step, prefix
    for factor, prefix in ((scale, chosen), (1.0, "")):
        text = f"{value / factor:.15g}"
        if float(text) * factor == value:
            return f"{text}{prefix}{kind}"
    return f"{value!r}{kind}"


def format_bandwidth(value: float) -> str:
    """Bytes/s as text that `parse_bandwidth` reads back to the same float."""
    return _format(value, "Bps", _DECIMAL)


def format_speed(value: float) -> str:
    """Flop/s as text that `parse_speed` reads back to the same float."""
    return _format(value, "f", _DECIMAL)


def format_time(value: float) -> str:
    """Seconds as text that `parse_time` reads back to the same float."""
    if value == 0.0:
        return "0s"
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("ps", 1e-12)):
        if value >= factor:
            text = f"{value / factor:.15g}"
            if "e" not in text and float(text) * factor == value:
                return f"{text}{unit}"
    return f"{value!r}s"


def format_size(value: int) -> str:
    """Bytes as text that `parse_size` reads back: with the largest binary prefix that divides."""
    for power, prefix in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if value and value % 1024**power == 0:
            return f"{value // 1024**power}{prefix}B"
    return f"{value}B"
