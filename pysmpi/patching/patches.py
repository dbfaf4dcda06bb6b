"""Replacing attributes of modules and classes for the time of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, TypeGuard

_MISSING = object()
_FUNCTIONS = (BuiltinFunctionType, FunctionType)
# What functions of `os` can do: programs look for the functions themselves in these sets.
_ABILITIES: tuple[set[Any], ...] = (
    os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks,
)  # fmt: skip


class Patches:
    """Replacements that `undo` takes back, the latest first."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []
        self.places: set[tuple[int, str]] = set()  # owners by their `id`, and names
        self._real: dict[int, tuple[object, object]] = {}  # by the `id` of replacements

    def set(self, owner: object, name: str, value: object) -> Any:
        """Set `owner.name` to `value`; return the old value.

        A built-in function of another module (`os.getpid` from `posix`) is also replaced there,
        because `pickle` looks for it there. The replacement of a function of `os` can do what the
        function can.
        """
        old = vars(owner).get(name, _MISSING)
        self.places.add((id(owner), name))
        if isinstance(old, _FUNCTIONS) and isinstance(value, _FUNCTIONS):
            self._real[id(value)] = value, old
        if owner is os:
            self._able(old, value)
        if isinstance(old, BuiltinFunctionType):
            home = sys.modules.get(old.__module__ or "")
            if home is not None and home is not owner and vars(home).get(name) is old:
                self.set(home, name, value)
        setattr(owner, name, value)
        if old is _MISSING:
            self._undo.append(lambda: delattr(owner, name))
        else:
            self._undo.append(lambda: setattr(owner, name, old))
        return None if old is _MISSING else old

    def give_real(self, module: ModuleType) -> None:
        """Put functions of the process in the place of replacements that a module has imported.

        Modules of pysmpi that are imported during a run so have what the others have.
        """
        real = self._real
        for name, value in list(vars(module).items()):
            if id(value) in real and not str(value.__module__).startswith("pysmpi"):
                while id(value) in real:
                    value = real[id(value)][1]
                setattr(module, name, value)

    def _able(self, old: object, new: object) -> None:
        for able in _ABILITIES:
            if old in able and new not in able:
                able.add(new)
                self._undo.append(partial(able.discard, new))

    def entry(self, mapping: dict[str, object], name: str, value: object) -> None:
        """Set `mapping[name]` to `value`."""
        old = mapping.get(name, _MISSING)
        if old is _MISSING:
            self._undo.append(lambda: mapping.pop(name, None))
        else:
            self._undo.append(lambda: mapping.__setitem__(name, old))
        mapping[name] = value

    def call_back(self, undo: Callable[[], object]) -> None:
        """Have `undo` called when the patches are taken back."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Restore everything."""
        while self._undo:
            self._undo.pop()()


def is_module(thing: object) -> TypeGuard[ModuleType]:
    """Whether an entry of `sys.modules` is a module; what an object says of its class may raise."""
    return issubclass(type(thing), ModuleType)


def disguise(function: Callable[..., object]) -> Callable[..., Any]:
    """Make `function` look like a part of importlib.

    Python removes frames of importlib from the tracebacks of failed imports, and from the count of
    `warnings.warn(stacklevel=...)`; our frames among them should be removed, too.
    """
    code = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    function.__code__ = code
    return function
