"""The output of two runs, compared number by number, in any order of their ranks."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

# Names that an entry's `replace` may use.
RULES: dict[str, tuple[str, str]] = {
    "addresses": (r"0x[0-9a-fA-F]{6,}", "<address>"),
    "seconds": (r"\b\d+(\.\d+)?(e[-+]?\d+)? ?(s|sec|secs|seconds?|ms|us|µs|ns|min)\b", "<time>"),
    "clock": (r"\b\d{1,2}:\d{2}:\d{2}([.,]\d+)?\b", "<clock>"),
    "dates": (r"\b\d{4}-\d{2}-\d{2}\b", "<date>"),
    "rates": (r"\b\d+(\.\d+)?(e[-+]?\d+)? ?([kKMGT]i?B|it|[MG]?[fF]lops?|iter\w*)/s\b", "<rate>"),
}  # fmt: skip

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)(?!\w)")


def lines(
    text: str,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
    replace: Sequence[Any] = (),
) -> list[str]:
    """The lines that are compared, after an entry's rules."""
    kept = []
    for line in re.split(r"[\r\n]+", text):
        line = line.rstrip()
        if not line or (only and not any(re.search(one, line) for one in only)):
            continue
        if any(re.search(one, line) for one in ignore):
            continue
        for rule in replace:
            pattern, by = RULES[rule] if isinstance(rule, str) else rule
            line = re.sub(pattern, by, line)
        kept.append(line)
    return kept


def difference(
    expected: Iterable[str], found: Iterable[str], relative: float = 0.0, absolute: float = 0.0
) -> str | None:
    """The first difference of two bags of lines, or None if they are equal.

    Lines are the same if their texts are the same, and the numbers at each place are within the
    tolerances.
    """
    missing, extra = Counter(expected), Counter(found)
    missing, extra = missing - extra, extra - missing
    if relative or absolute:
        groups: dict[str, list[str]] = defaultdict(list)
        for line in extra.elements():
            groups[_skeleton(line)].append(line)
        left: list[str] = []
        for line in missing.elements():
            group = groups.get(_skeleton(line), [])
            for candidate in group:
                if _close(line, candidate, relative, absolute):
                    group.remove(candidate)
                    break
            else:
                left.append(line)
        missing, extra = Counter(left), Counter(one for group in groups.values() for one in group)
    if not missing and not extra:
        return None
    total = sum(missing.values()) + sum(extra.values())
    first = next(iter(missing), None)
    second = None
    if first is not None:
        second = next((one for one in extra if _skeleton(one) == _skeleton(first)), None)
    second = second if second is not None else next(iter(extra), None)
    return f"{total} lines differ: MPICH {_short(first)}, pysmpi {_short(second)}"


def _short(line: str | None) -> str:
    return "prints no such line" if line is None else repr(line if len(line) < 200 else line[:200])


def _skeleton(line: str) -> str:
    return re.sub(r"\s+", " ", NUMBER.sub("#", line))


def _close(one: str, other: str, relative: float, absolute: float) -> bool:
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(
        a == b or math.isclose(float(a), float(b), rel_tol=relative, abs_tol=absolute)
        for a, b in pairs
    )
