"""The members of a new communicator, from the arguments of all processes of an old one."""

from __future__ import annotations

from pysmpi.mpi.base.constants import UNDEFINED
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.groups.communicator import Communicator, connect, new_communicator
from pysmpi.mpi.groups.groups import Members


def side_of(rank: Rank, made: tuple[Communicator, Communicator]) -> Communicator:
    """The side of a new communicator that a rank is on."""
    one, other = made
    return one if rank.pid in one.group else other


def twin(communicator: Communicator) -> tuple[Communicator, Communicator]:
    """Both sides of a new communicator of the same processes, without a topology."""
    new = new_communicator(communicator.universe, communicator.group)
    if not communicator.inter:
        return new, new
    other = new_communicator(communicator.universe, communicator.remote.group)
    connect(new, other)
    return new, other


def duplicate(communicator: Communicator) -> tuple[Communicator, Communicator]:
    """The same, with the topology."""
    sides = twin(communicator)
    sides[0].topology = communicator.topology
    return sides


def create_all(values: dict[int, tuple[Communicator, Members]]) -> dict[int, Communicator]:
    """The new communicator of each process that is in its own group argument."""
    result: dict[int, Communicator] = {}
    for rank, (communicator, members) in values.items():
        pid = communicator.group[rank]
        if pid in result or pid not in members:
            continue
        new = new_communicator(communicator.universe, members)
        for member in members:
            result[member] = new
    return result


def create_between(
    mine: dict[int, tuple[Communicator, Members]], theirs: dict[int, tuple[Communicator, Members]]
) -> dict[int, Communicator]:
    """The sides of the new intercommunicator, for each process that is on one of them.

    All ranks of a group pass the same group; if one of the two is empty, no communicator is made.
    """
    sides = []
    for values in (mine, theirs):
        communicator, members = values[0]
        sides.append((communicator.universe, members))
    if not all(len(members) for _, members in sides):
        return {}
    one, other = (new_communicator(universe, members) for universe, members in sides)
    connect(one, other)
    result = dict.fromkeys(one.group, one)
    result.update(dict.fromkeys(other.group, other))
    return result


Colored = dict[int, tuple[Communicator, int, int]]  # rank -> color, key, after what it splits


def split_all(
    mine: Colored, theirs: Colored | None = None
) -> dict[int, tuple[Communicator, Communicator]]:
    """The sides of the new communicator of each color; one and the same without a remote group.

    Between two groups, only common colors make a communicator.
    """
    communicator = next(iter(mine.values()))[0]
    near = _by_color(mine)
    if theirs is None:
        whole = {
            color: new_communicator(
                communicator.universe, [communicator.group[rank] for rank in ranks]
            )
            for color, ranks in near.items()
        }
        return {color: (new, new) for color, new in whole.items()}
    far = _by_color(theirs)
    result = {}
    for color in near:
        if color in far:
            one = new_communicator(
                communicator.universe, [communicator.group[rank] for rank in near[color]]
            )
            other = new_communicator(
                communicator.universe, [communicator.remote.group[rank] for rank in far[color]]
            )
            connect(one, other)
            result[color] = one, other
    return result


def _by_color(values: Colored) -> dict[int, list[int]]:
    """The ranks of each color, ordered by key, then by their old rank."""
    colors: dict[int, list[tuple[int, int]]] = {}
    for rank, (_, color, key) in values.items():
        if color != UNDEFINED:
            colors.setdefault(color, []).append((key, rank))
    return {color: [rank for _, rank in sorted(colors[color])] for color in sorted(colors)}
