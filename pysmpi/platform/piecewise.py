"""Piecewise functions of a message's size, in SimGrid's spelling.

`"0:v0:v1;1420:w0:w1"` gives the values of each segment. A segment begins after its own bound and
ends at the next bound, inclusive. SimGrid uses the last segment whose bound is smaller than the
size, although its manual describes other intervals.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from pysmpi.errors import UsageError
from pysmpi.platform.units import MOST, parse_time
from pysmpi.python.records import record

_BOUND = re.compile(r"[0-9]{1,18}")


@record(frozen=True)
class Piecewise:
    """Segments sorted by `bounds` (bytes); `values[i]` holds for sizes above `bounds[i]`.

    At and below the first bound, `default` holds.
    """

    bounds: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    default: tuple[float, ...]

    def at(self, nbytes: int) -> tuple[float, ...]:
        """The values of the segment that `nbytes` is in."""
        i = bisect_left(self.bounds, nbytes) - 1
        return self.values[i] if i >= 0 else self.default

    def factor(self, nbytes: int) -> float:
        """The first value: a factor that does not depend on the size within a segment."""
        return self.at(nbytes)[0]

    def affine(self, nbytes: int) -> float:
        """v0 + v1 * nbytes: seconds, where v0 is in seconds and v1 in seconds a byte."""
        values = self.at(nbytes)
        return values[0] + (values[1] * nbytes if len(values) > 1 else 0.0)


def parse(text: str, option: str, default: float | None = None) -> Piecewise:
    """Read a factor string; `option` names it in errors.

    `default` holds at and below the first bound; without it, the first segment's values do, so
    that overheads are paid for empty messages too (as SimGrid 3.32 does).
    """
    if ":" not in text and ";" not in text:
        return Piecewise((-1,), ((_number(text, option),),), (0.0,))
    segments: list[tuple[int, tuple[float, ...]]] = []
    for part in filter(None, (p.strip() for p in text.split(";"))):
        bound, *values = part.split(":")
        if not _BOUND.fullmatch(bound.strip()) or not values:
            raise UsageError(
                f"{option}: expected segments such as 0:1.5;1420:2.1 (bytes:value[:value]), got "
                f"{part!r}"
            )
        segments.append((int(bound), tuple(_number(value, option) for value in values)))
    if not segments:
        raise UsageError(f"{option}: expected a number or segments bytes:value;..., got {text!r}")
    segments.sort(key=lambda segment: segment[0])
    for (one, _), (other, _) in zip(segments, segments[1:]):
        if one == other:
            raise UsageError(f"{option}: two segments begin at {one} bytes")
    bounds = tuple(bound for bound, _ in segments)
    figures = tuple(found for _, found in segments)
    return Piecewise(bounds, figures, figures[0] if default is None else (default,))


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        try:
            value = parse_time(text)
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from None
    if not 0.0 <= value <= MOST:
        raise UsageError(f"{option}: expected a number from 0 to 1e100, got {text!r}")
    return value
