"""Integer objects that the lists and tables of all ranks share.

Compiled code makes a new object of 32 bytes whenever it stores an integer beyond 256 in a list.
"""

from typing import Any, Final

MOST: Final = 1 << 22  # more ranks than any run has; bounds the table at 34 MB

_objects: Final[list[Any]] = []


def shared(number: int) -> Any:
    """The shared object of an integer below `MOST`; larger integers have several objects."""
    if number < 0 or number >= MOST:
        return number
    count = len(_objects)
    if number >= count:
        _objects.extend(range(count, number + 1))
    return _objects[number]


def forget() -> None:
    """Release the objects, at the end of a run."""
    _objects.clear()
