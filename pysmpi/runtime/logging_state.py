"""Logging: the handlers, levels and filters of each rank.

Loggers are shared, since libraries hold them; what a rank configures on a logger is its own. So
`logging.basicConfig(format=f"[{rank}] %(message)s")` concerns the rank that calls it only.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.runtime.patches import Patches
from pysmpi.runtime.surroundings import here


class _OfRank:
    """Descriptor: an attribute of a logger that each rank sets for itself.

    `first` makes the value of a new logger, `copy` that of a rank from the one outside of ranks.
    """

    def __init__(
        self, name: str, first: Callable[[], Any], copy: Callable[[Any], Any] = lambda value: value
    ) -> None:
        self.name = name
        self.first = first
        self.copy = copy

    def __get__(self, logger: Any, owner: Any = None) -> Any:
        if logger is None:
            return self
        common = vars(logger)
        surroundings = here()
        if surroundings is None:
            try:
                return common[self.name]
            except KeyError:
                raise AttributeError(self.name) from None
        if surroundings.logging is None:
            surroundings.logging = {}
        own = surroundings.logging.setdefault(logger, {})
        if self.name not in own:
            own[self.name] = self.copy(common[self.name])
        return own[self.name]

    def __set__(self, logger: Any, value: Any) -> None:
        common = vars(logger)
        surroundings = here()
        if surroundings is None:
            common[self.name] = value
            return
        common.setdefault(self.name, self.first())
        if surroundings.logging is None:
            surroundings.logging = {}
        surroundings.logging.setdefault(logger, {})[self.name] = value


def patch_logging(patches: Patches, module: ModuleType) -> None:
    """Give every rank its own configuration of loggers until the patches are undone."""
    for attribute in (
        _OfRank("handlers", list, list),
        _OfRank("filters", list, list),
        _OfRank("level", int),
        _OfRank("propagate", lambda: True),
        _OfRank("disabled", lambda: False),
        _OfRank("_cache", dict, lambda value: {}),
    ):
        patches.set(module.Logger, attribute.name, attribute)
