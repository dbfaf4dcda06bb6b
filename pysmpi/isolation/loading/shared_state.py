"""Shared packages with globals that ranks have changed: a hint after an error in one of them.

A package with extension modules is loaded once for all ranks. If it keeps state of one rank in its
globals, the ranks mix it up; `--private` gives each rank its own copy of its Python part.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FunctionType, ModuleType, TracebackType
from typing import Any

from pysmpi.isolation.assumptions import KNOWN_SHARED
from pysmpi.isolation.loading.imports import ImportSystem

_MOST_NAMES = 3  # number of shown changes in one package


class SharedState:
    """The globals of shared packages as they were when they had been imported."""

    def __init__(self, imports: ImportSystem) -> None:
        self.imports = imports
        self.known: set[str] = set(imports.exchange.shared)
        self.before: dict[str, dict[str, tuple[int, int]]] = {}

    def note(self) -> None:
        """A shared module and its imports have been loaded: record their globals."""
        exchange = self.imports.exchange
        for name in exchange.shared.keys() - self.known:
            self.known.add(name)
            root = name.partition(".")[0]
            module = exchange.table.get(name)
            if root in KNOWN_SHARED | {"pysmpi"} or root in sys.stdlib_module_names:
                continue
            if isinstance(module, ModuleType):
                self.before[name] = dict(_state(module))

    def hints(self, errors: Iterable[BaseException]) -> list[str]:
        """Lines about the shared packages in which errors occurred and that ranks have changed."""
        found: dict[str, list[str]] = {}
        for root in sorted({root for error in errors for root in _packages(error)}):
            for name, before in self.before.items():
                if name.partition(".")[0] != root:
                    continue
                module = self.imports.exchange.shared.get(name)
                if isinstance(module, ModuleType):
                    now = dict(_state(module))
                    own = self.imports.assigned.names.get(name, ())
                    changed = [key for key in now if now[key] != before.get(key) and key not in own]
                    found.setdefault(root, []).extend(f"{name}.{key}" for key in changed)
        return [
            f"  note: package {root} is loaded once for all ranks, which have changed "
            f"{', '.join(names[:_MOST_NAMES])}{', ...' if len(names) > _MOST_NAMES else ''}; "
            f"if that belongs to one rank, run with --private {root}"
            for root, names in found.items()
            if names
        ]


def _state(module: ModuleType) -> Iterable[tuple[str, tuple[int, int]]]:
    """The types and lengths of the globals of a module and of its classes' attributes.

    Only their types are read: a lazily imported object imports itself when it is accessed.
    """
    for name, value in list(vars(module).items()):
        if name.startswith("__") or issubclass(type(value), ModuleType | FunctionType):
            continue
        if issubclass(type(value), type):
            if vars(value).get("__module__") == module.__name__:
                for attribute, inner in list(vars(value).items()):
                    if not attribute.startswith("__") and type(inner) is not FunctionType:
                        yield f"{name}.{attribute}", _size(inner)
            continue
        yield name, _size(value)


def _size(value: Any) -> tuple[int, int]:
    sized = type(value) in (list, dict, set)
    return id(value), len(value) if sized else 0


def _packages(error: BaseException) -> set[str]:
    """The packages in the traceback of an error."""
    result: set[str] = set()
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__")
        if isinstance(name, str):
            result.add(name.partition(".")[0])
        trace = trace.tb_next
    return result
