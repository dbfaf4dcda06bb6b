"""The objects that have state of chapters, see `state.py`.

This module is compiled.
"""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import mypyc_attr

NO_STATE: Final[tuple[object, ...]] = ()


@mypyc_attr(allow_interpreted_subclasses=True)
class Owner:
    """An object with state of chapters. Only `StateSlot` accesses `state`."""

    __slots__ = ("state",)

    # By the index of the slot; None if not made yet. A tuple, with one value at its end,
    # may be that of several owners.
    state: Any
