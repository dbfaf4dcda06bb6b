"""The cost of a strided message in addition to its copy: the middleware's latency of log_nP.

A datatype with scattered pieces is packed by a loop over the pieces. The loop loads (or stores) the
whole lines that hold them. A message to another node finds its buffer in memory, because other
traffic has passed through the caches since its last use. Pieces that are farther apart than
prefetchers look cost one access to memory each.

Sources: Cameron, Ge and Sun, log_nP and log_3P (IEEE Transactions on Computers 56, 2007); Tu, Fan,
Zhan and Zhao, Accurate Analytical Models for Message Passing on Multi-core Clusters (PDP 2009).
"""

from typing import Final

from pysmpi.memory.transfer.buffers import Location
from pysmpi.memory.transfer.kinds import NOBODY, access_of, kind_of
from pysmpi.memory.transfer.room import Room

# Distance (bytes) of pieces above which each is a separate access: assumed.
FAR: Final = 256


def touched_lines(nbytes: int, span: int, pieces: int, line: int) -> int:
    """The cache lines that hold a message of `pieces` equal pieces over `span` bytes."""
    across = 1 + (nbytes // pieces - 1) // line
    return min(pieces * across, -(-span // line))


def pack_seconds(
    room: Room, kind: int, location: Location, nbytes: int, network: bool = False
) -> float:
    """Seconds to pack or unpack a strided message, minus those of a contiguous one.

    `kind` is the access to the program's buffer.
    """
    _, start, end, pieces = location
    node = room.node
    span = end - start
    lines = touched_lines(nbytes, span, pieces, node.line)
    beyond = lines * node.line - nbytes
    if not network:
        seconds = pieces * node.packing[0]
        return seconds + beyond / room.speed(kind, span) if beyond > 0 else seconds
    seconds = pieces * node.packing[1]
    memory = kind_of(access_of(kind)[0] + "MI", NOBODY, 0)
    if beyond > 0 and span >= pieces * FAR and len(node.latencies) > 0:
        return seconds + lines * node.latency("LMI")
    return seconds + beyond / room.speed(memory, span) if beyond > 0 else seconds
