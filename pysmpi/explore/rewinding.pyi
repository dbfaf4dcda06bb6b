"""The memory of a process, taken back to an earlier moment; `rewinding.c` says how."""

def hold() -> int | None:
    """Remember this moment: 0 now, and the number of returns to it each time `rewind` goes back.

    None if that is not possible: the system does not show which pages have changed, or the process
    has more than 256 MiB of memory or a moment already.
    """

def rewind() -> None:
    """Go back to the moment that `hold` remembers.

    It returns if it cannot: something outside of the process's own memory differs.
    """
