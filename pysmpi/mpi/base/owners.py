"""The objects that have state of chapters, see `state.py`."""

from __future__ import annotations

from typing import Any


class Owner:
    """An object with state of chapters. Only `StateSlot` accesses `state`."""

    __slots__ = ("state",)

    state: list[Any]  # by the index of the slot; None if not made yet
