"""Warnings: the filters, output functions and shown warnings of each rank.

Module `warnings` has the filters in its globals, and C code reads them there: they are exchanged at
switches. A list that a rank is about to change in place is copied for the rank first.

Python records shown warnings in the registry of a module. After any change of a filter, it clears
all registries, by a version number that C code increments. With many ranks this would show every
warning repeatedly. A change of filters therefore clears the registries of the rank's own modules
only. A shared module has a registry for each rank with warnings in it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from pysmpi.isolation.exchange import Exchange
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches, is_module
from pysmpi.python import frames
from pysmpi.version import HOME

_NAMES = (
    "onceregistry",
    "showwarning",
    "formatwarning",
    "_showwarnmsg",
    "_showwarnmsg_impl",
    "_defaultaction",
    "defaultaction",
)
_HOME = os.path.join(HOME, "")
_REGISTRY = "__warningregistry__"


class _Filters:
    """The filters of all ranks."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        space = vars(warnings)
        self.number = exchange.watch(space, "filters")
        for name in _NAMES:
            if name in space:
                exchange.watch(space, name)
        self.registries: dict[str, int] = {}  # of shared modules, by number
        # Of ranks that are importing a shared module: their filters, and the common ones before;
        # several if a shared module imports a private one that imports another
        self._importing: dict[int, list[tuple[object, list[object]]]] = {}

    def own(self) -> None:
        """The rank that is running is about to change its list: let it have one."""
        exchange = self.exchange
        state = exchange.shown
        if state is exchange.outside or id(state) in self._importing:
            return
        space: dict[str, Any] = vars(warnings)
        if space["filters"] is exchange.names.common[self.number]:
            space["filters"] = list(space["filters"])
            space["onceregistry"] = dict(space["onceregistry"])

    def forget(self) -> None:
        """Forget the shown warnings of the running rank."""
        exchange = self.exchange
        modules: list[Any] = list(exchange.shown.modules.values())
        modules += [exchange.table.get(name) for name in self.registries]
        for module in modules:
            if is_module(module):
                registry = vars(module).get(_REGISTRY)
                if registry:
                    registry.clear()

    def shown(self) -> None:
        """A warning is shown: registries in shared modules become those of a rank."""
        exchange = self.exchange
        if exchange.shown is exchange.outside:
            return
        for name, module in list(exchange.shared.items()):
            if name in self.registries or not is_module(module):
                continue
            space = vars(module)
            registry = space.get(_REGISTRY)
            if registry is not None:
                number = exchange.watch(space, _REGISTRY, lambda owner, common: {})
                exchange.names.give(exchange.shown, number, registry)
                self.registries[name] = number

    def moved(self, msg: Any) -> bool:
        """Give a warning from code of pysmpi the line of the program; False if it is shown already.

        An operation of MPI on objects warns at its own line, which all calls of the program share.
        The registry of its module then has the lines of the program.
        """
        name = _own_module(msg.filename)
        module = self.exchange.shared.get(name)
        site = frames.current_site() if is_module(module) else None
        if site is None:
            return True
        registry = vars(module).get(_REGISTRY) or {}
        text, category = str(msg.message), msg.category
        # The action "always" makes no entry.
        if registry.pop((text, category, msg.lineno), None) is not None:
            key = text, category, (site.file, site.line)
            if key in registry:
                return False
            registry[key] = True
        msg.filename, msg.lineno, msg.line = site.file, site.line, None
        return True

    # While a shared module is imported, which happens once, the filters that it adds are for all.

    def begin_shared(self) -> None:
        exchange = self.exchange
        space: dict[str, Any] = vars(warnings)
        own = space["filters"]
        begun = self._importing.setdefault(id(exchange.shown), [])
        begun.append((own, list(own)))
        if own is not exchange.names.common[self.number]:
            space["filters"] = list(own)

    def end_shared(self) -> None:
        exchange = self.exchange
        space: dict[str, Any] = vars(warnings)
        begun = self._importing[id(exchange.shown)]
        own, before = begun.pop()
        if not begun:
            del self._importing[id(exchange.shown)]
        old = exchange.names.common[self.number]
        changed = space["filters"]
        identities = list(map(id, before))
        new = [entry for entry in changed if id(entry) not in identities]
        if changed is not old and new:
            old[0:0] = [entry for entry in new if entry not in old]
        space["filters"] = own
        if new:
            for mine in self._lists_of_ranks(own):
                mine[0:0] = [entry for entry in new if entry not in mine]

    def _lists_of_ranks(self, own: Any) -> list[list[Any]]:
        base = self.exchange.names.common[self.number]
        result = [own] if own is not base else []
        for state in self.exchange.live:
            mine = state.values.get(self.number)
            if mine is not None and mine is not own and mine is not base:
                result.append(mine)
        return result


def _own_module(file: object) -> str:
    """The name of the module of pysmpi that a file has; empty for other files."""
    path = str(file)
    if not path.startswith(_HOME):
        return ""
    return "pysmpi." + path[len(_HOME) :].removesuffix(".py").replace(os.sep, ".")


def install(patches: Patches, exchange: Exchange, imports: Any) -> None:
    """Give every rank its own state of warnings until the patches are undone."""
    filters = _Filters(exchange)
    module: Any = warnings
    for name in ("_add_filter", "resetwarnings"):
        real = vars(module).get(name)
        if real is not None:
            patches.set(module, name, like(real, _announcing(real, filters)))
    for name in ("_filters_mutated", "_filters_mutated_lock_held"):  # the second from 3.14 on
        real = vars(module).get(name)
        if real is not None:
            patches.set(module, name, like(real, _forgetting(real, filters)))
    shows = module._showwarnmsg

    def _showwarnmsg(msg: object) -> None:
        filters.shown()
        if exchange.shown is exchange.outside or filters.moved(msg):
            shows(msg)

    patches.set(module, "_showwarnmsg", like(shows, _showwarnmsg))
    imports.begin_shared.append(filters.begin_shared)
    imports.end_shared.append(filters.end_shared)


def _forgetting(real: Any, filters: _Filters) -> Callable[[], None]:
    def mutated() -> None:
        if filters.exchange.shown is filters.exchange.outside:
            real()
        else:
            filters.forget()

    return mutated


def _announcing(real: Any, filters: _Filters) -> Callable[..., object]:
    def change(*args: Any, **kwargs: Any) -> object:
        filters.own()
        return real(*args, **kwargs)

    return change
