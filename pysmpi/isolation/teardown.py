"""The last step of a Python process: its modules release the program's objects, and its files.

mpi4py finalizes MPI only after that, so a `__del__` may still free a communicator.
"""

from __future__ import annotations

import _io
import gc
import weakref
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, GeneratorType, ModuleType
from typing import Any

from pysmpi.isolation import finalizers
from pysmpi.mpi.base.handles import Handle
from pysmpi.patching.patches import is_module

# Names that finalizers use, and objects without finalizers.
_KEPT = (
    ModuleType, FunctionType, BuiltinFunctionType, type, Handle,
    str, bytes, int, float, complex, type(None),
)  # fmt: skip

# Classes of most objects in modules, which have neither finalizers nor contents that matter.
_PLAIN = frozenset(
    {ModuleType, FunctionType, BuiltinFunctionType, str, bytes, int, bool, float, type(None)}
)

Spaces = list[dict[str, object]]

_SHORT = 100  # objects in a container that is searched; more would be slow in a large program


def let_go(modules: Iterable[object], search: bool = False) -> None:
    """Remove files and objects with a `__del__` from the modules of the running rank.

    This includes open generators. Other objects than files are only removed if a module has a class
    with a `__del__` or an open generator; `search` says that a function of the program has such a
    local class. Objects of the program's classes, wherever they are, have their `__del__` called
    first. Then the objects with a finalizer are removed, then their containers. If one of them is
    still alive after that, cycles are collected.
    """
    spaces = [space for module in modules if (space := _space(module))]
    unusual = list(map(_unusual, spaces))
    if search or any(map(_finalizes, spaces, unusual)):
        unusual.clear()  # or the objects would live on
        _finalize(spaces)
        unusual = list(map(_unusual, spaces))
    for space, items in zip(spaces, unusual):
        # A program may bind a standard stream, which others use: nothing is closed that is in use.
        for name, value in items:
            if _is_file(value):
                space.pop(name, None)  # a module may have two names


def _space(module: object) -> dict[str, object]:
    """The names of an entry of `sys.modules`, which may be an object without names."""
    if is_module(module):
        return vars(module)
    if type(module).__dictoffset__ == 0:
        return {}
    try:
        space: object = object.__getattribute__(module, "__dict__")
    except AttributeError:  # it is for the type's own use, as in cffi's libraries
        return {}
    return space if type(space) is dict else {}


def _finalizes(space: dict[str, object], unusual: list[tuple[str, object]]) -> bool:
    """Whether a module has a class with a `__del__`, or an open generator."""
    main = space.get("__name__") == "__main__"
    for _, value in unusual:  # a look at a lazy class may import something
        if issubclass(type(value), type):
            if hasattr(value, "__del__"):
                return True
        elif _is_open(value) or (main and _holds_open(value)):
            return True
    return False


def _unusual(space: dict[str, object]) -> list[tuple[str, object]]:
    """The names of a module whose objects may matter at its end, and these objects."""
    return [item for item in space.items() if type(item[1]) not in _PLAIN]


def _finalize(spaces: Spaces) -> None:
    finalizers.run_due()
    finalizers.call_all(spaces)
    gone: list[weakref.ref[Any]] = []
    for wanted in (_has_finalizer, _holds_finalizer):
        for space in spaces:
            for name in [name for name, value in list(space.items()) if wanted(value)]:
                value = space.pop(name)
                try:
                    gone.append(weakref.ref(value))
                except TypeError:
                    pass
                del value
    if any(reference() is not None for reference in gone):
        gc.collect()


def _is_file(value: object) -> bool:
    return issubclass(type(value), _io._IOBase)  # what a value says of its class may be untrue


def _is_open(value: object) -> bool:
    """Whether `value` is a started generator, which may have a pending `finally`."""
    if type(value) is not GeneratorType:
        return False
    return value.gi_frame is not None and value.gi_frame.f_lasti >= 0


def _holds_open(value: object) -> bool:
    """Whether a short container or an instance (a context manager) holds such a generator."""
    if issubclass(type(value), _KEPT):
        return False
    inner = gc.get_referents(value)
    return len(inner) <= _SHORT and any(map(_is_open, inner))


def _has_finalizer(value: object) -> bool:
    return hasattr(type(value), "__del__") and not issubclass(type(value), _KEPT)


def _holds_finalizer(value: object) -> bool:
    """Whether an object with a `__del__` is in `value`, or in a container or instance in it."""
    if issubclass(type(value), _KEPT):
        return False
    inner = [thing for thing in gc.get_referents(value) if not issubclass(type(thing), _KEPT)]
    return any(map(_has_finalizer, inner)) or any(map(_has_finalizer, gc.get_referents(*inner)))
