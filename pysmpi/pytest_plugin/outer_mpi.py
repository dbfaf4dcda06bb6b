"""`mpi4py.MPI` and `pytest_mpi` for modules that pytest imports outside of ranks.

Test modules import `mpi4py.MPI` when pytest collects them. Outside of ranks it is pysmpi's module,
too, with one process. So no MPI library is needed, and none is started.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_OURS = "pysmpi.mpi.MPI"
_ASSERTION = "pysmpi.pytest_plugin.parallel_assertion"
# Modules of mpi-pytest, for suites that import them where it is not installed.
_SUBMODULES = {"pytest_mpi": "pytest_mpi.parallel_assert"}
_STAND_INS = (*_SUBMODULES, *_SUBMODULES.values())


class _Loader:
    """Loads a module that has another name already."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # importing has set it


class _Finder:
    """Finds `mpi4py.MPI`."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "mpi4py.MPI":
            return ModuleSpec(name, _Loader(_OURS), origin=_OURS)  # type: ignore[arg-type]
        return None


class _StandInLoader:
    """Makes a module with `parallel_assert`; the package has it after its submodule is there."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        if module.__name__ in _SUBMODULES:
            import_module(_SUBMODULES[module.__name__])
        vars(module)["parallel_assert"] = import_module(_ASSERTION).parallel_assert


class _StandIns:
    """Finds the stand-ins, after all other finders."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _STAND_INS:
            return None
        return ModuleSpec(
            name, _StandInLoader, origin=_ASSERTION,  # type: ignore[arg-type]
            is_package=name in _SUBMODULES,
        )  # fmt: skip


_sessions = 0  # that use the finders; a session of pytest can run another one


def install() -> None:
    """Let `import mpi4py.MPI` find pysmpi's module, unless another one is loaded."""
    global _sessions
    _sessions += 1
    if _Finder in sys.meta_path or "mpi4py.MPI" in sys.modules:
        return
    sys.meta_path.insert(0, _Finder)
    if PathFinder.find_spec("pytest_mpi") is None:
        sys.meta_path.append(_StandIns)


def remove() -> None:
    """Undo `install`."""
    global _sessions
    _sessions -= 1
    if _sessions:
        return
    for finder in (_Finder, _StandIns):
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
    module: Any = sys.modules.get("mpi4py.MPI")
    if module is not None and module.__name__ == _OURS:
        del sys.modules["mpi4py.MPI"]
        package = sys.modules.get("mpi4py")
        if getattr(package, "MPI", None) is module:
            del package.MPI  # type: ignore[union-attr]
