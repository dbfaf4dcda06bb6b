"""The objects of numbers of ranks, which lists and tables of all ranks share.

Compiled code makes a new object of 32 bytes whenever it stores a number beyond 256 in a list.
"""

from typing import Any, Final

MOST: Final = 1 << 22

_objects: Final[list[Any]] = []


def shared(number: int) -> Any:
    """The one object of a number of a rank; other numbers may have several."""
    if number < 0 or number >= MOST:
        return number
    known = len(_objects)
    if number >= known:
        _objects.extend(range(known, number + 1))
    return _objects[number]


def forget() -> None:
    """Release the objects, at the end of a run."""
    _objects.clear()
