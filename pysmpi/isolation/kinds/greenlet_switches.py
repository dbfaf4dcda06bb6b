"""The state of threads: exchanged at each switch of greenlets, not only at switches of ranks.

A tracing function belongs to the thread that sets it, and must not see the simulation, which runs
in a greenlet of its own. greenlet has one function that it calls at switches. `GreenletSwitches`
sets it for all who follow, from the first one on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import greenlet

from pysmpi.patching.patches import Patches

_Event = Literal["switch", "throw"]
_Pair = tuple[greenlet.greenlet, greenlet.greenlet]

# Called with the greenlet that ran, and with the one that continues and is current already.
Switched = Callable[[greenlet.greenlet, greenlet.greenlet], object]


class GreenletSwitches:
    """Tells functions of switches until the patches are undone."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches
        self._followers: list[Switched] = []
        self._before: Callable[[_Event, _Pair], object] | None = None  # of the caller of the run

    def follow(self, switched: Switched) -> None:
        """Have `switched(origin, target)` called at each switch from here on."""
        if not self._followers:
            self._before = greenlet.settrace(self._switched)
            self._patches.call_back(self._close)
        self._followers.append(switched)

    def _switched(self, event: _Event, pair: _Pair) -> None:
        origin, target = pair
        for switched in self._followers:
            switched(origin, target)
        if self._before is not None:
            self._before(event, pair)

    def _close(self) -> None:
        greenlet.settrace(self._before)
