"""Ranks that differ only by their numbers: their states with the numbers exchanged are the same.

Where the messages of such ranks compete for one receive, one of them is enough, if the program
treats the ranks alike from then on. The state cannot show that; the user says so (`--symmetric`).
"""

from __future__ import annotations

import io
import pickle
from typing import NoReturn

_SMALL = 4096  # bytes of messages and arrays whose content is compared


class _Plain(pickle.Unpickler):
    """Loads numbers, strings and containers only."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError


def alike(one: object, other: object, first: int, second: int) -> bool:
    """Whether two descriptions differ only by the number `first` where the other has `second`."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        assert isinstance(other, list | tuple)
        return len(one) == len(other) and all(
            alike(mine, its, first, second) for mine, its in zip(one, other)
        )
    if one == other:
        return True
    if type(one) is int:
        return one == first and other == second
    if isinstance(one, bytes):
        assert isinstance(other, bytes)
        return _same_content(one, other, first, second)
    return False


def _same_content(one: bytes, other: bytes, first: int, second: int) -> bool:
    """Whether two messages or arrays have such contents: pickled objects, or integers."""
    if len(one) != len(other) or len(one) > _SMALL:
        return False
    try:
        mine, its = (_Plain(io.BytesIO(data)).load() for data in (one, other))
    except Exception:  # of any kind: this is no plain object
        return any(
            len(one) % size == 0 and _same_integers(one, other, first, second, size)
            for size in (8, 4)
        )
    return alike(_listed(mine), _listed(its), first, second)


def _same_integers(one: bytes, other: bytes, first: int, second: int, size: int) -> bool:
    return all(
        alike(
            int.from_bytes(one[at : at + size], "little"),
            int.from_bytes(other[at : at + size], "little"),
            first,
            second,
        )
        for at in range(0, len(one), size)
    )


def _listed(value: object) -> object:
    """A value with lists in place of dictionaries and sets."""
    if isinstance(value, dict):
        return ["dict", *([_listed(key), _listed(one)] for key, one in value.items())]
    if isinstance(value, set | frozenset):
        return ["set", sorted(map(repr, value))]
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(_listed, value)]
    return value
