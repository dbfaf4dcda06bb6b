"""Values of records as JSON, the same text as that of Python's own encoder.

Compiled, because each call has a line of some thirty values.
"""

from __future__ import annotations

import json
from typing import Any, Final

TEXTS: Final = 10_000  # whose form is known
_encode: Any = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_known: dict[str, str] = {}  # names recur
# Dates and durations recur, too, and their shortest digits take long to find.
_numbers: dict[float, str] = {}


def json_text(value: Any) -> str:
    """A value in JSON, without spaces. Raises TypeError for a value that JSON does not have."""
    kind = type(value)
    if kind is int:
        whole: int = value
        return str(whole)
    if kind is float:
        return _number(value)
    if kind is str:
        return _quoted(value)
    if kind is list or kind is tuple:
        inside = ",".join([json_text(part) for part in value])
        return f"[{inside}]"
    if kind is bool:
        return "true" if value else "false"
    if kind is dict:
        entries: dict[Any, Any] = value
        pieces: list[str] = []
        for key, part in entries.items():
            if type(key) is not str:
                return _encoded(value)
            pieces.append(f"{_quoted(key)}:{json_text(part)}")
        inside = ",".join(pieces)
        return f"{{{inside}}}"
    return _encoded(value)


def _number(value: float) -> str:
    known = _numbers.get(value)
    if known is None:
        if len(_numbers) >= TEXTS:
            _numbers.clear()
        text: str = value.__repr__()
        # Infinity and NaN have other names there; zero has two signs.
        if text[-1] == "f" or text[-1] == "n" or value == 0.0:
            return _encoded(value)
        known = _numbers[value] = text
    return known


def _quoted(text: str) -> str:
    known = _known.get(text)
    if known is None:
        if len(_known) >= TEXTS:
            _known.clear()
        known = _known[text] = _encoded(text)
    return known


def _encoded(value: Any) -> str:
    text: str = _encode(value)
    return text
