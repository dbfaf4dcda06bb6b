"""Readers of the values of SimGrid's options: the text of an option to its value.

A UsageError has the expected and the found value.
"""

from __future__ import annotations

import math

from pysmpi.errors import UsageError
from pysmpi.platform.numbers import read_count
from pysmpi.platform.piecewise import Piecewise
from pysmpi.platform.piecewise import parse as parse_segments
from pysmpi.platform.stride_table import StrideTable
from pysmpi.platform.stride_table import parse as parse_stride_table
from pysmpi.platform.units import MOST, parse_bandwidth, parse_size, parse_speed, parse_time
from pysmpi.python.records import record


def number(text: str) -> float:
    """A number from 0 to 1e100: its products are numbers, too."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= MOST:
        raise UsageError(f"expected a number from 0 to 1e100, got {text!r}")
    return value


def count(text: str) -> int:
    """A whole number that is not negative."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"expected a whole number that is not negative, got {text!r}")
    return int(text)


def whole(text: str) -> int:
    """A whole number above 0."""
    return read_count(text)


def errors(text: str) -> tuple[float, float, float]:
    """The errors of latencies, overheads and bandwidths: three numbers between semicolons."""
    try:
        found = one, two, three = tuple(float(part) for part in text.split(";"))
        if all(0.0 <= one <= 10.0 for one in found):
            return one, two, three
    except ValueError:
        pass
    raise UsageError(f"expected three numbers from 0 to 10 such as 0.1;0.1;0.05, got {text!r}")


def penalties(text: str) -> tuple[float, float, float]:
    """Three positive numbers between semicolons."""
    try:
        found = one, two, three = tuple(float(part) for part in text.split(";"))
        if all(0.0 < one <= MOST for one in found):
            return one, two, three
    except ValueError:
        pass
    raise UsageError(f"expected three positive numbers such as 0.965;0.925;1.35, got {text!r}")


def matching(text: str) -> str:
    """The time at which wildcards see messages."""
    if text not in ("arrival", "posted"):
        raise UsageError(f"expected arrival or posted, got {text!r}")
    return text


def duration(text: str) -> float:
    """Seconds: a plain number, or with a unit (`10us`)."""
    try:
        return parse_time(text, bare=True)
    except UsageError:
        raise UsageError(
            f"expected a number of seconds, not negative, or a time such as 10us, got {text!r}"
        ) from None


def buffering(text: str) -> str:
    """Whether messages are buffered."""
    if text not in ("zero", "infty"):
        raise UsageError(f"expected zero or infty, got {text!r}")
    return text


def trace_form(text: str) -> str:
    """The suffix of a format of traces."""
    if text.lower() not in ("paje", "ti"):
        raise UsageError(f"expected Paje or TI, got {text!r}")
    return text.lower()


def threshold(text: str) -> float:
    """A duration; a negative number means all durations, and gives infinity."""
    if text.strip().startswith("-"):
        duration(text.strip()[1:])
        return math.inf
    return duration(text)


def size(text: str) -> float:
    """Bytes: a plain number, or with a unit (`64KiB`)."""
    try:
        return float(parse_size(text, bare=True))
    except UsageError:
        raise UsageError(
            "expected bytes, a whole number that is not negative or a size such as 64KiB, got "
            f"{text!r}"
        ) from None


def bandwidth(text: str) -> float:
    """Bytes a second above 0: a plain number, or with a unit (`10Gbps`)."""
    try:
        value = parse_bandwidth(text, bare=True)
    except UsageError:
        value = 0.0
    if value == 0.0:
        raise UsageError(f"expected a bandwidth above 0, such as 10Gbps, got {text!r}")
    return value


def memory_bandwidth(text: str) -> float:
    """Bytes a second above 0; infinity for `none`."""
    return math.inf if text.strip() == "none" else bandwidth(text)


def share(text: str) -> float:
    """A number from 0 to 1."""
    value = number(text)
    if value > 1.0:
        raise UsageError(f"expected a number from 0 to 1, got {text!r}")
    return value


def speed(text: str) -> float | None:
    """Flop/s above 0, a plain number or with a unit (`8Gf`); None for `auto`."""
    if text.strip() == "auto":
        return None
    try:
        value = parse_speed(text, bare=True)
    except UsageError:
        value = 0.0
    if value == 0.0:
        raise UsageError(f"expected a speed above 0, such as 8Gf, or auto, got {text!r}")
    return value


def flag(text: str) -> bool:
    """Yes or no, as SimGrid spells them."""
    lowered = text.lower()
    if lowered in ("yes", "on", "true", "1"):
        return True
    if lowered in ("no", "off", "false", "0"):
        return False
    raise UsageError(f"expected yes or no, got {text!r}")


def stack_size(text: str) -> int:
    """Bytes of a stack: a number of KiB, as SimGrid has it, or a size with a unit (`64MiB`)."""
    value = int(text) * 1024 if text.isascii() and text.isdigit() else int(size(text))
    if not 1 << 10 <= value <= 1 << 40:
        raise UsageError(f"expected 1 KiB to 1 TiB, a number of KiB or a size, got {text!r}")
    return value


def privatization(text: str) -> tuple[str, tuple[str, ...]]:
    """The files of which each rank of a program has a copy: "copy" or "none", and libraries."""
    lowered = text.lower()
    if lowered in ("copy", "yes", "on", "true", "1", "dlopen", "mmap"):
        return "copy", ()
    if lowered in ("none", "no", "off", "false", "0"):
        return "none", ()
    first, _, names = text.strip().partition(" ")
    if first == "libs" and names.strip():
        return "copy", libraries(names.replace(":", ";"))
    raise UsageError(f"expected copy, none, or 'libs NAME:NAME', got {text!r}")


def libraries(text: str) -> tuple[str, ...]:
    """Names or paths of shared libraries between semicolons."""
    return tuple(part.strip() for part in text.split(";") if part.strip())


def words(text: str) -> str:
    """A text that its reader checks: a name, or a value that a library of options allows."""
    return text


@record(frozen=True)
class Segments:
    """Reads values by size, `bytes:value;...`: a `Piecewise`. See `pysmpi.platform.piecewise`."""

    below: float | None = None  # at and below the first bound; None: the first segment's values
    zero: bool = True  # whether a value may be 0
    empty: str = ""  # what no segments mean, if they may be missing

    def __call__(self, text: str) -> Piecewise:
        text = text.strip() or self.empty
        if not text:
            raise UsageError("expected a number or segments (bytes:value;...), got an empty text")
        found = parse_segments(text, "", self.below)
        if not self.zero and any(values[0] == 0.0 for values in found.values):
            raise UsageError("a factor of 0 would keep messages from ever arriving")
        return found


def stride_table(text: str) -> StrideTable:
    """Costs by size and stride: see `pysmpi.platform.stride_table`."""
    return parse_stride_table(text)


# SimGrid's options smpi/... may be empty.
overheads = Segments(empty="0:0:0")
latency_factors = Segments(1.0)
bandwidth_factors = Segments(1.0, zero=False)
own_latency_factors = Segments(1.0, empty="0:1")
own_bandwidth_factors = Segments(1.0, zero=False, empty="0:1")
