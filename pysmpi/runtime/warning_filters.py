"""Warnings: the filters and the output function of each rank.

Module `warnings` keeps them in its globals, and C code reads them there. So they are exchanged at
switches of ranks, from the moment on that a rank changes them.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

from pysmpi.mpi import rank as ranks
from pysmpi.runtime.patches import Patches
from pysmpi.runtime.switches import Switches

_NAMES = ("filters", "showwarning", "_showwarnmsg_impl")


class _Exchange:
    """Puts the state of the rank that goes on in the place of that of the one that ran before."""

    def __init__(self, switches: Switches) -> None:
        self.switches = switches
        self.common: dict[str, Any] = {}
        self.owner: Any = None  # whose state the module shows

    def begin(self) -> None:
        """A rank is about to change its state: from now on it is exchanged."""
        rank = ranks.current()
        if rank.program is None or rank.program is self.owner:
            return
        if not self.common:
            self.common = self._state()
        if self.owner is None:
            self.owner = rank.program
            vars(warnings)["filters"] = list(warnings.filters)
            self.switches.watch(rank, self.follow)

    def follow(self, rank: Any) -> None:
        """Exchange the state, as `rank` goes on."""
        if rank.program is self.owner:
            return
        self.owner.warnings = self._state()
        self.owner = rank.program
        own = rank.program.warnings
        if own is None:
            own = {**self.common, "filters": list(self.common["filters"])}
        self._show(own)

    def end(self) -> None:
        """Restore the state of the caller of the run."""
        if self.common:
            self._show(self.common)

    def _state(self) -> dict[str, Any]:
        namespace = vars(warnings)
        return {name: namespace[name] for name in _NAMES if name in namespace}

    def _show(self, state: dict[str, Any]) -> None:
        vars(warnings).update(state)
        mutated = getattr(warnings, "_filters_mutated", None)
        if mutated is not None:
            mutated()


def install(patches: Patches, switches: Switches) -> None:
    """Give every rank its own warning filters until the patches are undone."""
    exchange = _Exchange(switches)

    class Warnings(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            # Programs, and `catch_warnings`, assign to `filters` and `showwarning`.
            exchange.begin()
            super().__setattr__(name, value)

    module: Any = warnings
    for name in ("_add_filter", "resetwarnings"):
        real = vars(module).get(name)
        if real is not None:
            patches.set(module, name, _announcing(real, exchange))
    module.__class__ = Warnings

    def restore() -> None:
        module.__class__ = ModuleType
        exchange.end()

    patches.call_back(restore)


def _announcing(real: Any, exchange: _Exchange) -> Any:
    def change(*args: Any, **kwargs: Any) -> Any:
        exchange.begin()
        return real(*args, **kwargs)

    change.__name__ = real.__name__
    change.__doc__ = real.__doc__
    return change
