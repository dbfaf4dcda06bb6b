"""The dictionaries that have changed since a rank continued.

`dict_versions.c` has CPython tell which ones. Without a C compiler, or if the fact
"dictionary-versions" is false, every dictionary counts as changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from pysmpi.python import facts

__all__ = ["NoVersions", "Versions"]


class NoVersions:
    """The same as `dict_versions.Versions`, but every dictionary counts as changed."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, dictionary: Mapping[str, object]) -> int:
        """Watch a dictionary; returns its number."""
        self.count += 1
        return self.count - 1

    def next_changed(self, first: int) -> int:
        """The number `first`, -1 if there is no such dictionary."""
        return first if first < self.count else -1

    def differs(self, number: int) -> bool:
        """Whether a dictionary may have changed."""
        return True

    def note(self, number: int) -> None:
        """Do nothing."""


try:
    if not facts.holds("dictionary-versions"):
        raise ImportError
    from pysmpi.isolation.dict_versions import Versions
except ImportError:
    Versions = NoVersions  # type: ignore[assignment, misc]
