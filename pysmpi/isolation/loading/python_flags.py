"""Flags of the Python interpreter of a program: `python -O -W error -X dev`.

A rank sees them in `sys.flags`, `sys.warnoptions` and `sys._xoptions`. `-W` also sets the rank's
warning filters, and `-O` the assertions and docstrings of the program's own file. The other flags
concern the start of an interpreter, which happens once for all ranks.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from pysmpi.python.records import record

# Letter -> fields of sys.flags that it raises by one.
_LETTERS = {
    "b": ("bytes_warning",),
    "B": ("dont_write_bytecode",),
    "d": ("debug",),
    "E": ("ignore_environment",),
    "i": ("inspect", "interactive"),
    "I": ("isolated", "ignore_environment", "no_user_site", "safe_path"),
    "O": ("optimize",),
    "P": ("safe_path",),
    "q": ("quiet",),
    "R": ("hash_randomization",),
    "s": ("no_user_site",),
    "S": ("no_site",),
    "v": ("verbose",),
}
_COUNTED = ("bytes_warning", "optimize", "verbose")
_OPTIONS = {"dev": "dev_mode", "utf8": "utf8_mode"}  # -X


class Flags(tuple[object, ...]):
    """The value of `sys.flags` for a rank: the interpreter's own, with changes."""

    changes: dict[str, Any]
    base: Any

    def __new__(cls, changes: dict[str, Any]) -> Flags:
        base: Any = sys.flags
        self = super().__new__(
            cls, (changes.get(name, getattr(base, name)) for name in base.__match_args__)
        )
        self.changes = changes
        self.base = base
        return self

    def __getattr__(self, name: str) -> object:
        if name in self.changes:
            return self.changes[name]
        return getattr(self.base, name)

    def __repr__(self) -> str:
        names = self.base.__match_args__
        return f"sys.flags({', '.join(f'{n}={v!r}' for n, v in zip(names, self, strict=True))})"


@record
class PythonFlags:
    """The flags on a command line."""

    changes: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.changes or self.warnings or self.options)

    @property
    def optimize(self) -> int:
        """The argument of `compile`: -1 for the interpreter's own level."""
        level: int = self.changes.get("optimize", -1)
        return min(level, 2)

    def begin(self) -> None:
        """Set the flags of the running rank, before its program begins."""
        module: Any = sys
        module.flags = Flags(self.changes)
        module.warnoptions = [*sys.warnoptions, *self.warnings]
        module._xoptions = {**sys._xoptions, **self.options}
        if self.warnings:
            warnings._processoptions(self.warnings)  # type: ignore[attr-defined]


def parse_flags(words: Sequence[str]) -> PythonFlags:
    """Read the words before the program; all of them are flags."""
    result = PythonFlags()
    base: Any = sys.flags
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word[:2] in ("-W", "-X"):
            value = word[2:] or (rest.pop(0) if rest else "")
            if word[1] == "W":
                result.warnings.append(value)
            else:
                _take_option(result, value)
            continue
        if word.startswith("--"):
            if "=" not in word and rest:
                rest.pop(0)
            continue
        for letter in word[1:]:
            for name in _LETTERS.get(letter, ()):
                old = result.changes.get(name, getattr(base, name, 0))
                raised = old + 1 if name in _COUNTED else 1
                result.changes[name] = bool(raised) if isinstance(old, bool) else raised
    return result


def _take_option(found: PythonFlags, value: str) -> None:
    name, equals, text = value.partition("=")
    found.options[name] = text if equals else True
    flag = _OPTIONS.get(name)
    if flag is not None:
        old = getattr(sys.flags, flag, 0)
        on = text != "0"
        found.changes[flag] = on if isinstance(old, bool) else int(on)
