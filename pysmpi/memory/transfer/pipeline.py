"""The pipelined transfer of a message through a shared buffer, in chunks.

The sender copies a chunk into the shared buffer, the receiver copies it out while the sender fills
the next. With n chunks of C_i bytes, S and R the seconds that each side takes for a chunk
(Putigny, Ruelle and Goglin, PDSEC 2014, equation 1):

    T = S(C_1) + sum over i = 2..n of max(S(C_i), R(C_i-1)) + R(C_n)
"""

from __future__ import annotations


def chunk_sizes(nbytes: int, chunk: int, first: int) -> list[int]:
    """The bytes of each chunk: one of at most `first`, whole ones, and the rest."""
    sizes = []
    left, room = nbytes, first
    while left > 0:
        sizes.append(min(left, room))
        left -= sizes[-1]
        room = chunk
    return sizes or [0]


def pipelined(
    nbytes: int, chunk: int, first: int, send: float, receive: float, control: float = 0.0
) -> float:
    """T of equation 1 in seconds.

    `send` and `receive` are seconds a byte of each side's copy, `control` the seconds that each
    side takes for a chunk besides.
    """
    if nbytes > first + 3 * chunk:
        # Whole chunks between whole chunks take the same time each.
        extra = (nbytes - first - 2 * chunk) // chunk
        step = control + chunk * max(send, receive)
        rest = nbytes - extra * chunk
        return extra * step + pipelined(rest, chunk, first, send, receive, control)
    sizes = chunk_sizes(nbytes, chunk, first)
    seconds = control + sizes[0] * send
    for before, size in zip(sizes, sizes[1:]):
        seconds += control + max(size * send, before * receive)
    return seconds + control + sizes[-1] * receive


def sequential(nbytes: int, send: float, receive: float) -> float:
    """The limit for a single chunk: one copy after the other."""
    return nbytes * (send + receive)


def parallel(nbytes: int, send: float, receive: float) -> float:
    """The limit for many chunks: the slower of two simultaneous copies."""
    return nbytes * max(send, receive)


def copy_seconds(load: float, store: float, overlap: float) -> float:
    """Seconds a byte of a copy, from bytes/s of its load and its store.

    The paper's equations 2 and 3 take the slower of the two: an overlap of 1.
    """
    one, other = 1.0 / load, 1.0 / store
    return max(one, other) + (1.0 - overlap) * min(one, other)
