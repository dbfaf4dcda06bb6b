"""The functions that numpy calls for the data of arrays; `hooks.c` says why they are in C."""

def connect(
    own: tuple[int, int, int, int],
    large: tuple[int, int, int],
    context: int,
    start: int,
    stop: int,
    /,
) -> tuple[int, int, int, int]:
    """The addresses of malloc, calloc, realloc and free, for numpy.

    `own` are the addresses of these functions of numpy's allocator, whose first argument is
    `context`; `large` those of malloc, calloc and realloc of pysmpi. Folded arrays have addresses
    from `start` to `stop`.
    """

def offer(least: int, /) -> None:
    """Give pysmpi allocations of at least `least` bytes."""

def freed() -> list[tuple[int, int]]:
    """The (number of the handler, address) of arrays that were freed since the last call."""
