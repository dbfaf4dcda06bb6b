"""The objects that have state of chapters, see `state.py`.

This module is compiled.
"""

from __future__ import annotations

from typing import Any

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Owner:
    """An object with state of chapters. Only `StateSlot` accesses `state`."""

    __slots__ = ("state",)

    state: list[Any]  # by the index of the slot; None if not made yet
