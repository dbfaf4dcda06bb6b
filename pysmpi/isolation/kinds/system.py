"""State of a process in the dictionaries of modules, for each rank.

Modules `sys`, `builtins`, `threading`, `tempfile` are not replaced; the values of these names are
exchanged at switches of ranks (see `process/exchange.py`).
"""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
from types import ModuleType
from typing import Any

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds.descriptors import OWN, duplicate
from pysmpi.isolation.kinds.rank_environment import RankEnvironment
from pysmpi.patching.patches import Patches

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
    "logging": (
        "_warnings_showwarning",
        "raiseExceptions",
        "_loggerClass",
        "_logRecordFactory",
        "lastResort",
        "BASIC_FORMAT",
    ),
    "asyncio.events": ("_event_loop_policy",),
    "urllib.request": ("_opener",),
    "gettext": ("_current_domain",),
    "multiprocessing.spawn": ("_python_exe",),
    "zoneinfo._tzpath": ("TZPATH",),
}


# Attributes of objects that such modules hold.
_OF_OBJECTS = {
    "multiprocessing.context": (("_default_context", "_actual_context"),),
    "calendar": (("c", "_firstweekday"),),
    "multiprocessing.process": (("_current_process", "_name"),),
}

# Entries that Python added to the search path because of pysmpi's own start.
launched_from: str | None = None


def _argv(environment: RankEnvironment, common: list[str]) -> list[str]:
    arguments = environment.invocation.arguments
    return list(common if arguments is None else arguments)


def _path(environment: RankEnvironment, common: list[str]) -> list[str]:
    entry = environment.invocation.path_entry
    if entry is None:
        return list(common)
    if launched_from is not None and common and common[0] == launched_from:
        common = common[1:]
    return [entry, *common]


class _Stdin:
    """Makes `sys.stdin`: as with mpiexec, rank 0 has it, the others read an empty stream."""

    def __init__(self) -> None:
        self.nothing: Any = None

    def __call__(self, environment: RankEnvironment, common: object) -> object:
        if environment.rank == 0 or common is None:
            return common
        if self.nothing is None or self.nothing.closed:
            self.nothing = open(
                _nothing(),
                encoding=getattr(common, "encoding", None),
                errors=getattr(common, "errors", None),
            )
            self.nothing.buffer.raw.name = "<stdin>"
        return self.nothing

    def close(self) -> None:
        """Close the empty streams of ranks."""
        if self.nothing is not None:
            with contextlib.suppress(OSError):  # a rank has closed its descriptor
                self.nothing.close()


def _nothing() -> int:
    """A descriptor that reads nothing; its number is not that of a closed standard stream."""
    result = opened = os.open(os.devnull, os.O_RDONLY)
    if opened <= 2:
        result = duplicate(opened)
        os.close(opened)
    OWN.add(result)
    return result


def install(patches: Patches, exchange: Exchange) -> None:
    """Give every rank its own values of names until the patches are undone."""
    space = vars(sys)
    exchange.watch(space, "argv", _argv)
    exchange.watch(space, "path", _path)
    exchange.watch_list(space, "orig_argv")
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
    for holder, name in _OF_OBJECTS.get(module.__name__, ()):
        exchange.watch(vars(vars(module)[holder]), name)


LATER = (*_LATER, *_OF_OBJECTS)
