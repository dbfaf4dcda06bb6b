"""The interface of clocks that measure compute: they leave out other work."""

from __future__ import annotations


class Stopwatch:
    """A clock that pauses for work that is not the program's.

    This one only counts the pauses: no clock runs.
    """

    def __init__(self) -> None:
        self.pauses = 0  # that have begun and not ended

    def pause(self) -> None:
        """Work that is not the program's begins; pauses may be nested."""
        self.pauses += 1

    def resume(self) -> None:
        """The pause that began last ends."""
        self.pauses -= 1

    def release(self) -> int:
        """End all pauses for the program's own work; return their number."""
        pauses = self.pauses
        self.pauses = 0
        return pauses

    def restore(self, pauses: int) -> None:
        """Begin the pauses that `release` ended again."""
        self.pauses += pauses

    def elapsed(self) -> int:
        """The time of the block so far (ns); 0 if no clock runs."""
        return 0

    def charge(self, nanoseconds: int) -> None:
        """Add this time to the block, if a clock runs."""
