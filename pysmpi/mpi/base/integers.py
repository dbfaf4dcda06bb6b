"""Lists of integers in the arguments of calls: counts and displacements of all ranks.

This module is compiled: such a list has an item for each rank.
"""

from __future__ import annotations

from typing import Final, Optional

# Integers below it have a short form in compiled code; no memory has so many elements.
SHORT: Final = 1 << 61


def plain_integers(values: object) -> Optional[list[int]]:
    """The items of a list or tuple of integers, as a list; None for other arguments.

    The general way converts other arguments, and refuses those that are wrong.
    """
    if type(values) is not list and type(values) is not tuple:
        return None
    for item in values:
        if type(item) is not int:
            return None
        number: int = item
        if not -SHORT < number < SHORT:
            return None
    return list(values)
