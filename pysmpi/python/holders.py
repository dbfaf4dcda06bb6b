"""The names of loaded modules that hold some objects.

`dictionary_search.c` looks for them; without a C compiler, the functions here do.
"""

from __future__ import annotations

import sys
from operator import is_
from types import ModuleType
from typing import TypeAlias

__all__ = ["Entry", "find", "modules", "same"]

# The dictionary of a module or the class that holds an object, the name there, and the object.
Entry: TypeAlias = "tuple[dict[str, object] | type, str, object]"


def modules() -> list[ModuleType]:
    """The loaded modules, without those of pysmpi and without objects that stand for modules."""
    return [
        module
        for name, module in list(sys.modules.items())
        if type(module) is ModuleType and not name.startswith("pysmpi")
    ]


def find_in_python(
    spaces: list[dict[str, object]], objects: list[object], kind: type | None = None
) -> list[Entry]:
    """The entries of dictionaries that hold one of `objects`, or an object of class `kind`.

    With `kind`, the dictionaries are those of modules, and the classes that these define are
    searched, too; their metaclass has to be `type`.
    """
    numbers = set(map(id, objects))
    result: list[Entry] = []

    def search(holder: dict[str, object] | type, space: dict[str, object]) -> None:
        if kind in set(map(type, space.values())) or not numbers.isdisjoint(
            map(id, space.values())
        ):
            for name, value in list(space.items()):
                if type(value) is kind or id(value) in numbers:
                    result.append((holder, name, value))

    for space in spaces:
        search(space, space)
        if kind is not None:
            for value in list(space.values()):
                if type(value) is type and value.__module__ == space.get("__name__"):
                    search(value, dict(vars(value)))
    return result


def same_in_python(now: dict[str, object] | type, before: dict[str, object]) -> bool:
    """Whether a dictionary, or that of a class, has the objects of another in the same order."""
    space = vars(now) if isinstance(now, type) else now
    return (
        len(space) == len(before)
        and all(map(is_, space, before))
        and all(map(is_, space.values(), before.values()))
    )


try:
    from pysmpi.python.dictionary_search import find, same
except ImportError:
    find, same = find_in_python, same_in_python
