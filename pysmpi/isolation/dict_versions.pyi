"""A quick test whether dictionaries have changed; `dict_versions.c` says why it is in C."""

from collections.abc import Mapping

class Versions:
    """Numbers of dictionaries that have changed since their versions were noted."""

    def add(self, dictionary: Mapping[str, object], /) -> int:
        """Watch a dictionary; returns its number. It counts as changed."""

    def next_changed(self, first: int, /) -> int:
        """The first dictionary from number `first` on that has changed; its version is noted.

        The number is -1 if none has changed.
        """

    def differs(self, number: int, /) -> bool:
        """Whether a dictionary has changed since its version was noted."""

    def note(self, number: int, /) -> None:
        """Note the version of a dictionary."""
