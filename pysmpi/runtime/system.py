"""What modules keep in their dictionaries that belongs to a process, for each rank.

Modules `sys`, `builtins`, `threading`, `tempfile` stay what they are; the values of these names are
exchanged at switches of ranks (see `process/exchange.py`).
"""

from __future__ import annotations

import builtins
import os
import sys
from types import ModuleType
from typing import Any

from pysmpi.runtime.patches import Patches
from pysmpi.runtime.process.exchange import Exchange
from pysmpi.runtime.surroundings import Surroundings

# Names of `sys` that programs assign to.
_SYS = (
    "stdout", "stderr", "__stdout__", "__stderr__", "excepthook", "displayhook", "unraisablehook",
    "breakpointhook", "flags", "warnoptions", "_xoptions", "dont_write_bytecode",
)  # fmt: skip
_BUILTINS = ("print", "open", "input", "__import__", "exit", "quit")
# Of modules that may be loaded later.
_LATER = {
    "threading": ("excepthook", "_profile_hook", "_trace_hook"),
    "tempfile": ("tempdir",),
    "logging": ("_warnings_showwarning", "raiseExceptions"),
}


def _argv(surroundings: Surroundings, common: list[str]) -> list[str]:
    return list(common if surroundings.arguments is None else surroundings.arguments)


def _path(surroundings: Surroundings, common: list[str]) -> list[str]:
    entry = surroundings.path_entry
    return list(common) if entry is None else [entry, *common]


class _Stdin:
    """Makes `sys.stdin`: as with mpiexec, rank 0 has it, the others read nothing."""

    def __init__(self) -> None:
        self.nothing: Any = None

    def __call__(self, surroundings: Surroundings, common: Any) -> Any:
        if surroundings.rank == 0 or common is None:
            return common
        if self.nothing is None or self.nothing.closed:
            self.nothing = open(os.devnull)
        return self.nothing

    def close(self) -> None:
        """Close what ranks have read nothing from."""
        if self.nothing is not None:
            self.nothing.close()


def install(patches: Patches, exchange: Exchange) -> None:
    """Give every rank its own values of names until the patches are undone."""
    space = vars(sys)
    exchange.watch(space, "argv", _argv)
    exchange.watch(space, "path", _path)
    exchange.watch_list(space, "meta_path")
    exchange.watch_list(space, "path_hooks")
    stdin = _Stdin()
    patches.call_back(stdin.close)
    exchange.watch(space, "stdin", stdin)
    for name in _SYS:
        exchange.watch(space, name)
    exchange.watch_new(space)
    for name in _BUILTINS:
        exchange.watch(vars(builtins), name)
    exchange.watch_new(vars(builtins))


def watch_later(exchange: Exchange, module: ModuleType) -> None:
    """Exchange the names of a module that has been loaded."""
    for name in _LATER.get(module.__name__, ()):
        exchange.watch(vars(module), name)


LATER = tuple(_LATER)
