"""Kinds of access, each one number: the access (as named in `node_description`), the distance of
the other copy, and the level of the cache that had it.
"""

from typing import Final

from pysmpi.platform.node_description import ACCESSES, NodeDescription

NOBODY: Final = -1
# Parts of a kind: access * 128 + (distance + 1) * 8 + level; level 0 is a miss.
DISTANCE: Final = 8
ACCESS: Final = 128
NUMBERS: Final[dict[str, int]] = {access: number for number, access in enumerate(ACCESSES)}


def kind_of(access: str, distance: int, level: int) -> int:
    """The number of a kind."""
    return NUMBERS[access] * ACCESS + (distance + 1) * DISTANCE + level


def access_of(kind: int) -> str:
    """The access of a kind, such as LHM."""
    return ACCESSES[kind // ACCESS]


def distance_of(kind: int) -> int:
    """The distance of a kind: an index into the node's distances, -1 if it does not matter."""
    return kind % ACCESS // DISTANCE - 1


def level_of(kind: int) -> int:
    """The level of the cache that was hit; 0 for a miss."""
    return kind % DISTANCE


def describe(kind: int, node: NodeDescription) -> str:
    """A kind in words, such as "LMM socket" or "LHM L2"."""
    words = access_of(kind)
    if distance_of(kind) >= 0:
        words += " " + node.distances[distance_of(kind)].name
    if level_of(kind) > 0:
        words += f" L{level_of(kind)}"
    return words
