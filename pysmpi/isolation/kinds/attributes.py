"""Attributes that programs assign in modules and classes of shared modules.

`json.made_up = 1`, `time.sleep = fake`, `json.JSONEncoder.item_separator = "; "`: the module is
loaded once for all ranks, and the assignment holds for the rank that makes it. A C extension sees
the assignments where the interpreter executes them. Those of shared modules themselves, such as the
caches of a library, are for all ranks. Without the extension, all assignments are.
"""

from __future__ import annotations

import contextlib
from types import ModuleType

from pysmpi.isolation.exchange import Exchange, State
from pysmpi.isolation.loading.imports import ImportSystem
from pysmpi.isolation.rank_state import MISSING
from pysmpi.isolation.state import Parts
from pysmpi.patching.patches import Patches
from pysmpi.python import facts
from pysmpi.python.frames import module_of_caller

try:
    if not facts.holds("assignments"):
        raise ImportError
    from pysmpi.isolation.kinds import attribute_hooks
except ImportError:
    attribute_hooks = None  # type: ignore[assignment]

# Shared modules with functions that assign on behalf of the program.
_AGENTS = frozenset({"unittest.mock", "yaml", "yaml.constructor", "yaml.representer"})
# Modules whose new names are exchanged in another way.
_OTHERS = frozenset({"sys", "builtins", "__main__"})

Key = tuple[int, str]


class Attributes(Parts):
    """The attributes that ranks have assigned in shared modules and their classes."""

    name = "attributes"
    polled = True

    def __init__(self, exchange: Exchange, imports: ImportSystem) -> None:
        super().__init__(exchange)
        self.imports = imports
        self.things: dict[Key, object] = {}  # modules and classes
        self.base: dict[Key, object] = {}  # the common values

    def note(self, thing: object, name: str, old: object) -> None:
        """The running code has assigned to a name."""
        exchange = self.exchange
        key = id(thing), name
        if exchange.shown is exchange.outside:
            if key in self.base:
                self.base[key] = vars(thing).get(name, MISSING)
            return
        if self.imports.importing_shared > 0:
            return  # a shared module sets up itself, and others that it uses
        actor = module_of_caller(1)
        if actor not in exchange.shown.modules and actor not in _AGENTS:
            return
        space = vars(thing)
        if getattr(thing, "__name__", None) in _OTHERS and old is MISSING:
            return
        if exchange.names.is_watched(space, name):
            return
        value = vars(thing).get(name, MISSING)
        if issubclass(type(value), ModuleType):
            whole = f"{getattr(thing, '__name__', '')}.{name}"
            if exchange.table.get(whole) is value:
                return  # a part of a package
        self.things[key] = thing
        self.base.setdefault(key, old)
        self.own()[key] = value

    def differs(self) -> bool:
        """Others may have assigned to an attribute of the rank, too."""
        return bool(self.shown)

    def record(self, state: State) -> None:
        parts = self.shown
        for key in parts:
            parts[key] = vars(self.things[key]).get(key[1], MISSING)

    def install(self, value: dict[Key, object]) -> None:
        for key in self.shown:
            if key not in value:
                self._put(key, self.base[key])
        for key, part in value.items():
            self._put(key, part)

    def _put(self, key: Key, value: object) -> None:
        thing = self.things[key]
        if vars(thing).get(key[1], MISSING) is not value:
            with contextlib.suppress(AttributeError, TypeError):
                attribute_hooks.put(thing, key[1], value)


def install(patches: Patches, exchange: Exchange, imports: ImportSystem) -> None:
    """Give every rank its own assignments until the patches are undone."""
    if attribute_hooks is None:
        return
    attributes = Attributes(exchange, imports)
    attribute_hooks.observe(attributes.note, exchange.shared, MISSING)
    patches.call_back(attribute_hooks.end)
