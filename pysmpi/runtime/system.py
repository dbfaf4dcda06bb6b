"""Module `sys` as each rank sees it: its own `argv`, `path`, `modules`, streams and `excepthook`.

For the time of a run, the class of the module object `sys` has data descriptors for these names,
which answer for the rank that asks. So a switch of ranks costs nothing, and a rank that never
asks has no copy. The interpreter's C code does not ask the module object but its dictionary; that
matters for the streams only, so the first assignment to `sys.stdout` puts a `Relay` there.
"""

from __future__ import annotations

import io
import sys
from types import ModuleType
from typing import Any

from pysmpi.runtime.patches import Patches
from pysmpi.runtime.surroundings import here
from pysmpi.runtime.view import ModuleView


class Relay:
    """A stream that passes everything to the stream of the rank that is running."""

    def __init__(self, name: str, base: Any) -> None:
        self.__dict__["_name"] = name
        self.__dict__["_base"] = base

    def _target(self) -> Any:
        surroundings = here()
        own = None if surroundings is None else getattr(surroundings, self._name)
        return self._base if own is None else own

    def write(self, text: str) -> Any:
        return self._target().write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target(), name, value)

    def __iter__(self) -> Any:
        return iter(self._target())

    def __next__(self) -> Any:
        return next(self._target())


class _Stream:
    """Descriptor of `sys.stdout` or `sys.stderr`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: Any = None) -> Any:
        surroundings = here()
        if surroundings is not None:
            own = getattr(surroundings, self.name)
            if own is not None:
                return own
        base = vars(module)[self.name]
        return base._base if type(base) is Relay else base

    def __set__(self, module: Any, value: Any) -> None:
        namespace = vars(module)
        base = namespace[self.name]
        surroundings = here()
        if surroundings is None:
            if type(base) is Relay:
                base.__dict__["_base"] = value
            else:
                namespace[self.name] = value
            return
        if type(base) is not Relay:
            namespace[self.name] = Relay(self.name, base)
        # Restoring the stream of all ranks gives up the rank's own.
        original = base._base if type(base) is Relay else base
        setattr(surroundings, self.name, None if value is original else value)


class _Stdin(_Stream):
    """Descriptor of `sys.stdin`: as with mpiexec, rank 0 has it, the others read nothing."""

    def __get__(self, module: Any, owner: Any = None) -> Any:
        surroundings = here()
        if surroundings is not None and surroundings.stdin is None and surroundings.rank != 0:
            return io.StringIO()
        return super().__get__(module, owner)


class _Own:
    """Descriptor of a list or a function that each rank has a copy of."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: Any = None) -> Any:
        surroundings = here()
        if surroundings is None:
            return self.base(module)
        own = getattr(surroundings, self.name)
        if own is None:
            own = self.first(module, surroundings)
            setattr(surroundings, self.name, own)
        return own

    def __set__(self, module: Any, value: Any) -> None:
        surroundings = here()
        if surroundings is None:
            vars(module)[self.name] = value
        else:
            setattr(surroundings, self.name, value)

    def base(self, module: Any) -> Any:
        try:
            return vars(module)[self.name]
        except KeyError:
            raise AttributeError(f"module 'sys' has no attribute {self.name!r}") from None

    def first(self, module: Any, surroundings: Any) -> Any:
        return self.base(module)


class _Argv(_Own):
    def first(self, module: Any, surroundings: Any) -> Any:
        arguments = surroundings.arguments
        return list(self.base(module) if arguments is None else arguments)


class _Path(_Own):
    def first(self, module: Any, surroundings: Any) -> Any:
        path = list(self.base(module))
        if surroundings.path_entry is not None:
            path.insert(0, surroundings.path_entry)
        return path


class _Modules:
    """Descriptor of `sys.modules`: the one table, showing the modules of the rank that asks."""

    def __get__(self, module: Any, owner: Any = None) -> Any:
        view = _view
        return vars(module)["modules"] if view is None else view.current()

    def __set__(self, module: Any, value: Any) -> None:
        vars(module)["modules"] = value


_view: ModuleView | None = None


class RankSys(ModuleType):
    """The class of module `sys` during a run."""

    modules = _Modules()
    argv = _Argv("argv")
    path = _Path("path")
    stdin = _Stdin("stdin")
    stdout = _Stream("stdout")
    stderr = _Stream("stderr")
    excepthook = _Own("excepthook")
    flags = _Own("flags")
    warnoptions = _Own("warnoptions")
    _xoptions = _Own("_xoptions")


def install(patches: Patches, view: ModuleView) -> None:
    """Give every rank its own `sys` until the patches are undone."""
    global _view
    module: Any = sys
    _view = view
    module.__class__ = RankSys

    def restore() -> None:
        global _view
        module.__class__ = ModuleType
        _view = None
        for name in ("stdin", "stdout", "stderr"):
            stream = vars(module)[name]
            if type(stream) is Relay:
                vars(module)[name] = stream._base

    patches.call_back(restore)
