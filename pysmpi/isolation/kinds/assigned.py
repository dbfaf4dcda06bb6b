"""Names of shared modules with a different value in each rank.

- Functions of a shared package assign to its global names (`global generator`): its generator of
  random numbers, its settings, its connections.
- An extension module is loaded once. The objects that it has imported from private modules must be
  those of the running rank.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from opcode import opmap
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.rank_state import MISSING
from pysmpi.python import facts

_STORE = opmap.get("STORE_GLOBAL")
_EXTENDED = opmap.get("EXTENDED_ARG")


class Assigned:
    """The global names of shared modules that functions assign to, for each rank."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.names: dict[str, set[str]] = {}  # by module
        self.numbers: list[int] = []

    def watch(self, module: ModuleType) -> None:
        """Exchange the names of a shared module that has been loaded."""
        if not facts.holds("global-names"):
            return
        names = {name for code in _codes(module) for name in stored(code)}
        if names:
            self.names[module.__name__] = names
            self.numbers += [self.exchange.watch(vars(module), name) for name in sorted(names)]

    # Assignments during the import of a shared module, which happens once, are for all ranks.

    def begin_shared(self) -> None:
        """A shared module is about to be imported."""
        for number, value in self._changed():
            self.exchange.names.give(self.exchange.shown, number, value)

    def end_shared(self) -> None:
        """It has been imported."""
        exchange = self.exchange
        names = exchange.names
        for number, value in self._changed():
            names.common[number] = names.now[number] = value
            exchange.shown.values.pop(number, None)

    def _changed(self) -> list[tuple[int, object]]:
        names = self.exchange.names
        changed = []
        for number in self.numbers:
            value = names.spaces[number].get(names.names[number], MISSING)
            if value is not names.now[number]:
                changed.append((number, value))
        return changed


def _codes(module: ModuleType) -> Iterator[CodeType]:
    """The code of the functions of a module.

    Only functions and classes are read: an object that is imported lazily would import itself.
    """
    for thing in list(vars(module).values()):
        if type(thing) is FunctionType:
            members: list[Any] = [thing]
        elif issubclass(type(thing), type) and vars(thing).get("__module__") == module.__name__:
            members = list(vars(thing).values())
        else:
            continue
        for member in members:
            if type(member) in (staticmethod, classmethod):
                member = member.__func__
            elif type(member) is property:
                member = member.fget
            while type(member) is FunctionType:
                if member.__globals__ is vars(module):
                    yield member.__code__
                member = vars(member).get("__wrapped__")


def stored(code: CodeType) -> Iterator[str]:
    """The global names that a function assigns to, or functions inside of it."""
    instructions = code.co_code
    if _STORE is not None and _STORE in instructions[::2]:
        extended = 0
        for at in range(0, len(instructions), 2):
            operation, argument = instructions[at], instructions[at + 1] | extended
            extended = argument << 8 if operation == _EXTENDED else 0
            if operation == _STORE:
                yield code.co_names[argument]
    for inner in code.co_consts:
        if type(inner) is CodeType:
            yield from stored(inner)


class Borrowed:
    """The objects of an extension module from modules that are private to ranks."""

    def __init__(self, exchange: Exchange, module: ModuleType) -> None:
        """`module` has been loaded by the rank that is running."""
        self.exchange = exchange
        self.names: list[tuple[int, str, str | None]] = []
        exchange.collect()
        space = vars(module)
        for name, value in list(space.items()):
            origin = _origin(exchange.shown.modules, value)
            if origin is not None:
                self.names.append((exchange.watch(space, name), *origin))

    def give(self) -> None:
        """The rank that is running imports the module that another has loaded."""
        exchange = self.exchange
        for number, home, path in self.names:
            value: Any = sys.modules.get(home)
            if value is None:
                try:
                    value = importlib.import_module(home)
                except ImportError:
                    continue
            if path is not None:
                value = _inside(value, path)
            if value is not MISSING:
                exchange.names.give(exchange.shown, number, value)


def _origin(private: Mapping[str, object], value: Any) -> tuple[str, str | None] | None:
    """The private module of a value, and its path in the module."""
    kind = type(value)
    if issubclass(kind, ModuleType):
        name = vars(value).get("__name__", "")
        return (name, None) if private.get(name) is value else None
    if kind is not FunctionType and not issubclass(kind, type):
        return None
    home = private.get(value.__module__)
    path = value.__qualname__
    if isinstance(home, ModuleType) and _inside(home, path) is value:
        return value.__module__, path
    return None


def _inside(thing: object, path: str) -> object:
    for part in path.split("."):
        thing = getattr(thing, part, MISSING)
        if thing is MISSING:
            break
    return thing
