"""Copies of large blocks; `memcopy.c` says why they are in C."""

def copy(
    target: bytearray | memoryview,
    source: bytes | bytearray | memoryview,
    past_cache: bool,
    /,
) -> None:
    """Copy a contiguous buffer to another of the same size.

    With `past_cache` the copy does not get into the cache of the processor.
    """
