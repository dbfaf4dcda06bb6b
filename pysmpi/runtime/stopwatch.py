"""The interface of clocks that measure compute: they leave out other work."""

from __future__ import annotations


class Stopwatch:
    """A clock that pauses for work that is not the program's."""

    def pause(self) -> None:
        """Work that is not the program's begins; pauses may be nested."""

    def resume(self) -> None:
        """The pause that began last ends."""

    def release(self) -> int:
        """End all pauses for the program's own work; return their number."""
        return 0

    def restore(self, pauses: int) -> None:
        """Begin the pauses again that `release` ended."""

    def elapsed(self) -> int:
        """The time of the block so far (ns); 0 if no clock runs."""
        return 0

    def charge(self, nanoseconds: int) -> None:
        """Let the block take so much longer, if a clock runs."""
