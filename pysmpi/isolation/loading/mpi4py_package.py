"""The package mpi4py for ranks: the real one, except its compiled module `mpi4py.MPI`.

The package and its pure-Python modules come from the installed distribution. A separate copy is
loaded once for all ranks, so that a caller with a real MPI keeps the original. `mpi4py.MPI` is
pysmpi's; importing it is an event of each rank. `mpi4py.rc` is one object that holds the options of
each rank separately.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.isolation.loading.imports import GivenLoader, ImportSystem
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.state import StateSlot
from pysmpi.patching.patches import Patches

PACKAGE = "mpi4py"
_ours: dict[str, ModuleType] = {}  # the modules of the copy, kept between runs
_usual: dict[str, object] = {}  # the object `mpi4py.rc` of ranks that have not replaced it
# The options that a rank has set.
_RC: StateSlot[ranks.Rank, dict[str, object]] = StateSlot(ranks.Rank, dict)
_OPTIONS = "mpi4py.rc"


def has_options(rank: ranks.Rank, rc: object) -> bool:
    """Whether a rank has set options, or has another object `mpi4py.rc`."""
    return rc is not _usual.get(_OPTIONS) or bool(_RC.peek(rank))


def _rank_options(kind: type) -> type:
    """A class like `mpi4py.Rc`; its instance has the options of the calling rank."""

    class Rc(kind):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> object:
            own = _RC.peek(ranks.current())
            if own is not None and name in own:
                return own[name]
            return super().__getattribute__(name)

        def __setattr__(self, name: str, value: object) -> None:
            if not hasattr(self, name):
                raise TypeError(f"object has no attribute {name!r}")
            _RC.of(ranks.current())[name] = value

    Rc.__qualname__ = "Rc"
    Rc.__module__ = "mpi4py"
    Rc.__doc__ = kind.__doc__
    return Rc


def _load() -> None:
    """Load our copy of the package, which is not in `sys.modules` now."""
    try:
        package = importlib.import_module(PACKAGE)
    except ImportError as error:
        raise UsageError(f"the package mpi4py cannot be imported: {error}") from None
    vars(package)["Rc"] = _rank_options(package.Rc)
    vars(package)["rc"] = sys.modules[_OPTIONS] = _usual[_OPTIONS] = package.Rc()


def _ours_now() -> dict[str, Any]:
    return {
        name: module
        for name, module in sys.modules.items()
        if PACKAGE in name and name.partition(".")[0] == PACKAGE
    }


def take_over(patches: Patches, *, function: bool = False) -> None:
    """Replace the caller's mpi4py by the copy until the patches are undone.

    The package itself is not in the table of modules: programs look there whether they have
    imported it. A function has the modules of its caller, so it has this one if the caller has.

    Call this before the table of modules is divided into shared and private ones.
    """
    finders = list(sys.meta_path)
    theirs = _ours_now()
    for name in theirs:
        del sys.modules[name]
    if _ours:
        sys.modules.update(_ours)
    else:
        _load()
    _ours.update(_ours_now())
    if not (function and PACKAGE in theirs):
        del sys.modules[PACKAGE]
    sys.meta_path[:] = finders  # without mpi4py's own, which looks for compiled modules

    def restore() -> None:
        _ours.update(_ours_now())
        for name in _ours:
            sys.modules.pop(name, None)
        sys.modules.update(theirs)

    patches.call_back(restore)


def provide(
    patches: Patches,
    imports: ImportSystem,
    module: ModuleType,
    arrive: Callable[[], object],
    library: str | None = None,
) -> None:
    """Let ranks import `module` as `mpi4py.MPI`; each calls `arrive` at its import.

    `library` is the file with the functions of MPI in C: programs look for them in the module's.
    """
    if library is not None:
        patches.entry(vars(module), "__file__", library)
    patches.entry(vars(module), "__spec__", module.__spec__)  # imports set it
    patches.entry(vars(module), "__name__", "mpi4py.MPI")
    patches.entry(vars(module), "__package__", PACKAGE)
    exchange = imports.exchange
    package = _ours[PACKAGE]
    space = vars(package)
    if PACKAGE not in exchange.table:
        patches.entry(space, "__spec__", package.__spec__)
        loader = imports.given[PACKAGE] = GivenLoader(package, lambda: None, imports.stopwatch)
        loader.imported = True
    # Each rank imports it, so all differ from the caller: no entry of a dictionary for each.
    exchange.watch(space, "MPI", lambda owner, common: common)
    exchange.watch(space, "rc")
    imports.given["mpi4py.MPI"] = GivenLoader(module, arrive, imports.stopwatch)
