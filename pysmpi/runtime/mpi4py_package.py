"""The package mpi4py as ranks see it: the real one, but for its compiled module `mpi4py.MPI`.

The package and its pure-Python modules come from the installed distribution, loaded once for all
ranks in a copy of its own (so that a caller who uses a real MPI keeps it). `mpi4py.MPI` is
pysmpi's; importing it is an event of each rank. Each rank has its own `mpi4py.rc`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.runtime.imports import GivenLoader, ImportSystem
from pysmpi.runtime.patches import Patches
from pysmpi.runtime.process.exchange import State

_ours: dict[str, ModuleType] = {}  # the modules of our copy, kept from run to run
_OPTIONS = "mpi4py.rc"


def _ours_now() -> dict[str, Any]:
    return {
        name: module
        for name, module in sys.modules.items()
        if name == "mpi4py" or name.startswith("mpi4py.")
    }


def take_over(patches: Patches) -> None:
    """Put our copy of mpi4py in the place of the caller's until the patches are undone.

    To be called before the table of modules is divided into shared and private ones.
    """
    finders = list(sys.meta_path)
    theirs = _ours_now()
    for name in theirs:
        del sys.modules[name]
    if _ours:
        sys.modules.update(_ours)
    else:
        try:
            importlib.import_module("mpi4py")
        except ImportError as error:
            raise UsageError(f"the package mpi4py cannot be imported: {error}") from None
    sys.meta_path[:] = finders  # without mpi4py's own, which looks for compiled modules

    def restore() -> None:
        _ours.update(_ours_now())
        for name in _ours:
            sys.modules.pop(name, None)
        sys.modules.update(theirs)

    patches.call_back(restore)


def provide(imports: ImportSystem, module: ModuleType, arrive: Callable[[], Any]) -> None:
    """Make `module` what ranks import as `mpi4py.MPI`; each calls `arrive` when it does."""
    exchange = imports.exchange
    package: Any = exchange.table["mpi4py"]
    space = vars(package)
    kind = package.Rc

    def options(owner: Any, common: Any) -> Any:
        return kind()

    number = exchange.watch(space, "rc", options)

    def module_of_options(state: State) -> Any:
        return state.values[number]

    del exchange.shared[_OPTIONS]
    exchange.outside.modules[_OPTIONS] = exchange.table[_OPTIONS]
    exchange.first_modules[_OPTIONS] = module_of_options
    exchange.watch(space, "MPI")
    imports.given["mpi4py.MPI"] = GivenLoader(
        module, arrive=arrive, stopwatch=imports.stopwatch
    )
