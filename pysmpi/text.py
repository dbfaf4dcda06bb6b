"""Figures and lists as people read them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def seconds(value: float) -> str:
    """A time (s) with four significant digits: `1.204 ms`."""
    for unit, name in _TIMES:
        if value >= unit:
            return f"{value / unit:.4g} {name}"
    return "0 s" if value == 0.0 else f"{value:.4g} s"


def range_of_seconds(low: float, high: float) -> str:
    """Two times (s) in one unit: `1.2 to 1.35 ms`."""
    for unit, name in _TIMES:
        if high >= unit:
            return f"{low / unit:.4g} to {high / unit:.4g} {name}"
    return f"{low:.4g} to {high:.4g} s"


def size(nbytes: float) -> str:
    """An amount of data: `1.5 MB`; decimal units, as bandwidths have them."""
    for unit, name in _SIZES:
        if nbytes >= unit:
            return f"{nbytes / unit:.4g} {name}"
    return count(int(nbytes), "byte")


def count(number: int, noun: str) -> str:
    """`1 rank`, `1,024 ranks`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def manual(title: str) -> str:
    """How messages name a page of the documentation, which is not part of an installation."""
    return f'the page "{title}" of the documentation'


def closest(name: str, known: Iterable[str]) -> str:
    """The one of `known` that is most similar to `name`, or an empty text."""
    found = similar(name, known, 1)
    return found[0] if found else ""


def similar(name: str, known: Iterable[str], most: int) -> list[str]:
    """Those of `known` that are similar to `name`, at most `most`; the most similar is first."""
    from difflib import get_close_matches

    return get_close_matches(name, list(known), most)


def cell(file: str) -> str | None:
    """The cell of a notebook that has a file name, such as `In[2]`; None for other files."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else getattr(ipython, "get_ipython", lambda: None)()
    name = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(file)
    return None if name is None else str(name[1])


def did_you_mean(name: str, known: Iterable[str], form: str = "{}") -> str:
    """`; did you mean NAME?` if one of `known` is similar to `name`, else an empty text."""
    found = closest(name, known)
    return f"; did you mean {form.format(found)}?" if found else ""


def ranges(numbers: Iterable[int], limit: int = 6) -> str:
    """`0-2,4`; after `limit` runs the rest is an ellipsis."""
    ordered = sorted(set(numbers))
    parts: list[str] = []
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        first, last = ordered[start], ordered[end]
        if len(parts) == limit:
            parts.append("...")
            break
        parts.append(str(first) if first == last else f"{first}-{last}")
        start = end + 1
    return ",".join(parts)


def ranks(numbers: Iterable[int]) -> str:
    """`rank 3`, `ranks 0-2,4`; or their number if not all are named."""
    every = list(numbers)
    named = ranges(every)
    if named.endswith("..."):
        named += f" ({len(every):,})"
    return ("rank " if len(every) == 1 else "ranks ") + named


# The patterns are compiled at their first use: most runs need none of them.
_REAL = r"(?a)[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"


def whole(word: str, digits: int = 18) -> int | None:
    """The number that a text of digits (0 to 9) is; None for other texts and for more `digits`."""
    if not (word.isascii() and word.isdigit()) or len(word.lstrip("0")) > digits:
        return None
    return int(word)


def integer(word: str, digits: int = 40) -> int | None:
    """The same with a sign in front of it."""
    sign = word[:1] if word[:1] in ("-", "+") else ""
    found = whole(word[len(sign) :], digits)
    return -found if found is not None and sign == "-" else found


def real(word: str) -> float | None:
    """The number that a text is, such as `0.5` or `1e-3`; None for other texts and for one that is
    too large.
    """
    if not re.fullmatch(_REAL, word):
        return None
    found = float(word)
    return found if -float("inf") < found < float("inf") else None


# Characters that move a cursor, colour text or change its direction, and halves of characters.
_INVISIBLE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """A text with control characters, other than tabs and ends of lines, as escapes: `\\x1b`."""
    return re.sub(_INVISIBLE, lambda found: found[0].encode("unicode_escape").decode(), text)


_LONG_NUMBER = r"\d{60,}"
_LONG_WORD = r"\S{5000,}"


def shortened(message: str) -> str:
    """A message with very long numbers and words shortened."""
    return re.sub(_LONG_WORD, _cut, re.sub(_LONG_NUMBER, _cut, message))


def _cut(found: re.Match[str]) -> str:
    word = found[0]
    if word.isdigit():
        return f"{word[:10]}...({count(len(word), 'digit')})"
    return f"{word[:60]}...({count(len(word), 'character')})"
