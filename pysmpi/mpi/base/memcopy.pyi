"""Copies of large blocks and of strided ones; `memcopy.c` says why they are in C."""

def copy(
    target: bytearray | memoryview,
    source: bytes | bytearray | memoryview,
    past_cache: bool,
    /,
) -> None:
    """Copy a contiguous buffer to another of the same size.

    With `past_cache` the copy does not get into the cache of the processor.
    """

def copy_blocks(
    target: bytes | bytearray | memoryview,
    place: int,
    strides: tuple[int, ...],
    source: bytes | bytearray | memoryview,
    origin: int,
    source_strides: tuple[int, ...],
    counts: tuple[int, ...],
    length: int,
    /,
) -> None:
    """Copy blocks of `length` bytes that are repeated along dimensions, the outermost first.

    The first block is at byte `place` of the target and at byte `origin` of the source. Strides are
    in bytes. Blocks outside of a buffer are a ValueError.
    """
