"""A process in which every fact is false: each probe runs after its fact is broken.

It takes the place of `pysmpi.job.probes.main`, see `test_facts.py`.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import sys
import threading
from types import SimpleNamespace
from typing import Any

from pysmpi.job import probes


class Blind:
    """Versions of dictionaries that see no change."""

    def add(self, dictionary: object) -> int:
        return 0

    def note(self, number: int) -> None:
        pass

    def differs(self, number: int) -> bool:
        return False


def replace(module: str, **functions: object) -> None:
    """Put another module in the place of one in C, and make it part of its package."""
    package, _, name = module.rpartition(".")
    stand = SimpleNamespace(**functions)
    sys.modules[module] = stand  # type: ignore[assignment]
    setattr(importlib.import_module(package), name, stand)


def crash() -> None:
    ctypes.string_at(0)


def no_builtin_functions() -> None:
    from pysmpi.patching import lookalike

    lookalike._call = ctypes.cast(ctypes.pythonapi.PyObject_Repr, ctypes.c_void_p).value


def no_global_names() -> None:
    from pysmpi.isolation.kinds import assigned

    assigned._EXTENDED = None


def other_allocation_handlers() -> None:
    import numpy

    core: Any = numpy._core if hasattr(numpy, "_core") else numpy.core  # type: ignore[attr-defined]
    core.multiarray.get_handler_version = lambda: 2


def no_import_functions() -> None:
    from importlib import _bootstrap

    del _bootstrap._lock_unlock_module  # type: ignore[attr-defined]


BREAKS = {
    "frame-stacks": crash,
    "dictionary-versions": lambda: replace("pysmpi.isolation.dict_versions", Versions=Blind),
    "assignments": lambda: replace(
        "pysmpi.isolation.kinds.attribute_hooks", observe=lambda *_: None, end=lambda: None
    ),
    "trace-functions": lambda: replace(
        "pysmpi.isolation.kinds.trace_hooks",
        get=lambda: ((0, None), (0, None)),
        put=lambda profile, trace: None,
    ),
    "builtin-functions": no_builtin_functions,
    "class-dictionaries": lambda: setattr(gc, "get_referents", lambda *_: []),
    "global-names": no_global_names,
    "blocks": lambda: setattr(sys, "settrace", lambda function: None),
    "threads": lambda: delattr(threading, "_DummyThread"),
    "numpy-memory": other_allocation_handlers,
    "imports": no_import_functions,
}


def main() -> None:
    for name, probe in probes.PROBES.items():

        def broken(name: str = name, probe: Any = probe) -> None:
            BREAKS[name]()
            probe()

        probes.PROBES[name] = broken
    probes.main()
