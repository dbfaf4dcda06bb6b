"""Logging: the handlers, levels and filters of each rank.

Loggers are shared, because libraries hold them; the configuration of a logger is separate for each
rank. `logging.basicConfig(format=f"[{rank}] %(message)s")` therefore affects the calling rank only.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.loading.imports import ImportSystem
from pysmpi.patching.patches import Patches

_NONE = object()


class _OfRank:
    """Descriptor: an attribute of a logger that each rank sets for itself.

    `first` makes the value of a new logger, `copy` copies the value outside of ranks for a rank.
    """

    def __init__(
        self,
        shared: _SharedImports,
        name: str,
        first: Callable[[], object],
        copy: Callable[[Any], object] = lambda value: value,
    ) -> None:
        self.shared = shared
        self.name = name
        self.first = first
        self.copy = copy

    def __get__(self, logger: object, owner: object = None) -> object:
        if logger is None:
            return self
        common = vars(logger)
        environment = here()
        if environment is None or self.shared.importing:
            if self.name not in common:
                raise AttributeError(self.name)
            self.shared.touch(logger, self)
            return common[self.name]
        if environment.logging is None:
            environment.logging = {}
        own = environment.logging.setdefault(logger, {})
        if self.name not in own:
            own[self.name] = self.copy(common[self.name])
        return own[self.name]

    def __set__(self, logger: object, value: object) -> None:
        common = vars(logger)
        environment = here()
        if environment is None or self.shared.importing:
            self.shared.touch(logger, self)
            common[self.name] = value
            return
        common.setdefault(self.name, self.first())
        if environment.logging is None:
            environment.logging = {}
        environment.logging.setdefault(logger, {})[self.name] = value


class _SharedImports:
    """Changes of loggers by shared modules during their import; they apply to all ranks."""

    def __init__(self, exchange: Exchange, imports: ImportSystem) -> None:
        self.exchange = exchange
        self.imports = imports
        # (logger, attribute) -> the value before
        self.touched: dict[tuple[int, str], tuple[Any, _OfRank, Any]] = {}

    @property
    def importing(self) -> bool:
        """Whether a shared module is being imported."""
        return self.imports.importing_shared > 0

    def touch(self, logger: object, attribute: _OfRank) -> None:
        """An attribute may be about to change."""
        if self.importing and attribute.name != "_cache":
            key = (id(logger), attribute.name)
            if key not in self.touched:
                before = vars(logger).get(attribute.name, _NONE)
                before = list(before) if isinstance(before, list) else before
                self.touched[key] = (logger, attribute, before)

    def end(self) -> None:
        """The import has ended: ranks with their own values also get its changes."""
        touched, self.touched = self.touched, {}
        for logger, attribute, before in touched.values():
            now = vars(logger).get(attribute.name, _NONE)
            if now == before:
                continue
            for state in self.exchange.live:
                own = (state.owner.logging or {}).get(logger)
                if own is None:
                    continue
                own.pop("_cache", None)
                if attribute.name not in own:
                    continue
                if isinstance(now, list):
                    old = before if isinstance(before, list) else []
                    mine = own[attribute.name]
                    mine += [item for item in now if item not in old and item not in mine]
                elif own[attribute.name] == before:
                    own[attribute.name] = now


def _noting_handlers(module: Any, shared: _SharedImports) -> Callable[[object], None]:
    """A new `logging._addHandlerRef`: the handlers of a rank are shut down at its end.

    The module has `logging.shutdown` called at the end of the process, for all handlers.
    """
    real = module._addHandlerRef

    def _addHandlerRef(handler: object) -> None:
        real(handler)
        environment = here()
        if environment is None or shared.importing:
            return
        reference = module._handlerList[-1]
        calls = environment.at_exit = environment.at_exit or []
        if calls and calls[0][0] is shutdown:
            references = calls[0][1][0]
            assert isinstance(references, list)
            references.append(reference)
        else:  # called last, as that of a module that is imported before others
            calls.insert(0, (shutdown, ([reference],), {}))

    shutdown = module.shutdown
    return _addHandlerRef


def patch_logging(
    patches: Patches, module: ModuleType, exchange: Exchange, imports: ImportSystem
) -> None:
    """Give every rank its own configuration of loggers until the patches are undone."""
    shared = _SharedImports(exchange, imports)
    imports.end_shared.append(shared.end)
    for attribute in (
        _OfRank(shared, "handlers", list, list),
        _OfRank(shared, "filters", list, list),
        _OfRank(shared, "level", int),
        _OfRank(shared, "propagate", lambda: True),
        _OfRank(shared, "disabled", lambda: False),
        _OfRank(shared, "_cache", dict, lambda value: {}),
    ):
        patches.set(module.Logger, attribute.name, attribute)
    patches.set(module, "_addHandlerRef", _noting_handlers(module, shared))
    patches.set(module.Manager, "_disable", _OfRank(shared, "_disable", int))
