"""Putting replacements of functions and methods where programs find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.python import class_dictionary, facts, holders

Replacement = Callable[..., Any]


class Replacements:
    """Replacement of functions of modules, under all names that refer to them."""

    def __init__(self, patches: Patches) -> None:
        self.patches = patches
        self._new: dict[int, tuple[Any, Any]] = {}  # by the id of the real one

    def function(self, module: object, name: str, make: Callable[[Any], Replacement]) -> None:
        """Replace `module.name` by `make(real)` if the function exists."""
        real = getattr(module, name, None)
        if real is None:
            return
        new = like(real, make(real))
        self._new[id(real)] = real, new
        self.patches.set(module, name, new)

    def everywhere(self) -> None:
        """Put the replacements into the modules that hold the real functions already."""
        self._names([vars(module) for module in holders.modules()])

    def inside(self, module: ModuleType) -> None:
        """Put the replacements into class attributes and default arguments of a module."""
        self._names([vars(module)])
        for thing in list(vars(module).values()):
            if isinstance(thing, type) and thing.__module__ == module.__name__:
                for name, value in list(vars(thing).items()):
                    new = self._replacement(value)
                    if new is not None:
                        self.patches.set(thing, name, new)
                    elif isinstance(value, FunctionType):
                        self._defaults(value)
            elif isinstance(thing, FunctionType):
                self._defaults(thing)

    def _names(self, spaces: list[dict[str, Any]]) -> None:
        for space, name, value in holders.find(spaces, [real for real, _ in self._new.values()]):
            assert isinstance(space, dict)
            self.patches.entry(space, name, self._new[id(value)][1])

    def _replacement(self, value: object) -> object:
        found = self._new.get(id(value))
        return found[1] if found is not None and found[0] is value else None

    def _defaults(self, function: FunctionType) -> None:
        replace_defaults(self.patches, function, {key: new for key, (_, new) in self._new.items()})


def replace_defaults(
    patches: Patches, function: FunctionType, new: Mapping[int, Replacement]
) -> None:
    """Replace default arguments of a function; `new` has the replacements by the id of the real."""
    defaults, keywords = function.__defaults__, function.__kwdefaults__
    if defaults and any(id(value) in new for value in defaults):
        function.__defaults__ = tuple(new.get(id(value), value) for value in defaults)
        patches.call_back(lambda: setattr(function, "__defaults__", defaults))
    if keywords and any(id(value) in new for value in keywords.values()):
        function.__kwdefaults__ = {
            name: new.get(id(value), value) for name, value in keywords.items()
        }
        patches.call_back(lambda: setattr(function, "__kwdefaults__", keywords))


def methods(patches: Patches, kind: type, new: Mapping[str, object]) -> None:
    """Replace methods of a class of Python's own, which has no official way to change it."""
    space = class_dictionary.writable(kind)
    if space is None or not facts.holds("class-dictionaries") or not space.keys() >= new.keys():
        return
    old = {name: space[name] for name in new}
    class_dictionary.update(kind, space, new)
    patches.call_back(lambda: class_dictionary.update(kind, space, old))
