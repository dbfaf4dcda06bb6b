"""Following switches of ranks, for state of the process that must be exchanged at each.

Nearly all of a rank's surroundings are looked up when they are asked for. What the operating
system or C code keeps, such as the working directory, cannot be; it is exchanged at switches, from
the moment on that a rank changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import greenlet

from pysmpi.runtime.patches import Patches


class Switches:
    """Calls `follow(rank)` when a rank goes on that is not the one that ran before."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches
        self._followers: list[Callable[[Any], Any]] = []
        self._last: Any = None
        self._chained: Any = None  # who traced greenlets before

    def watch(self, rank: Any, follow: Callable[[Any], Any]) -> None:
        """From now on, while `rank` is running, call `follow` whenever another rank goes on."""
        self._last = rank
        if follow in self._followers:
            return
        self._followers.append(follow)
        if len(self._followers) > 1:
            return
        before = self._chained = greenlet.settrace(self._trace)
        self._patches.call_back(lambda: greenlet.settrace(before))

    def _trace(self, event: str, greenlets: tuple[Any, Any]) -> None:
        rank = getattr(greenlets[1], "rank", None)
        if rank is not None and rank is not self._last and rank.program is not None:
            self._last = rank
            for follow in self._followers:
                follow(rank)
        if self._chained is not None:
            self._chained(event, greenlets)
