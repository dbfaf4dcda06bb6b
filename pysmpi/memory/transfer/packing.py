"""What a strided message costs besides its copy: the middleware's latency of log_nP.

A datatype whose pieces lie apart is packed by a loop over the pieces, which loads (or stores) the
lines that hold them rather than the bytes alone.

Sources: Cameron, Ge and Sun, log_nP and log_3P (IEEE Transactions on Computers 56, 2007); Tu, Fan,
Zhan and Zhao, Accurate Analytical Models for Message Passing on Multi-core Clusters (PDP 2009).
"""

from pysmpi.memory.transfer.buffers import Place
from pysmpi.memory.transfer.room import Room


def touched_lines(nbytes: int, span: int, pieces: int, line: int) -> int:
    """The cache lines that hold a message of `pieces` equal pieces over `span` bytes."""
    across = 1 + (nbytes // pieces - 1) // line
    return min(pieces * across, -(-span // line))


def pack_seconds(room: Room, kind: int, place: Place, nbytes: int, network: bool = False) -> float:
    """Seconds to pack or unpack a strided message, over and above those of a contiguous one.

    `kind` is the access to the program's buffer.
    """
    _, start, end, pieces = place
    node = room.node
    span = end - start
    beyond = touched_lines(nbytes, span, pieces, node.line) * node.line - nbytes
    seconds = pieces * (node.packing[1] if network else node.packing[0])
    if beyond > 0:
        seconds += beyond / room.speed(kind, span)
    return seconds
