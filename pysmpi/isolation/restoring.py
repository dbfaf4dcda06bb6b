"""Lasting changes of the process by programs, undone at the end of a run.

Ranks share the modules of the standard library: assignments of a program in them, in their classes
or in their registries apply to all ranks, and would apply to the next run. The same holds for
settings in the operating system or C code that are not separate for each rank. Packages of other
distributions stay as a program leaves them, because they stay loaded.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Set
from types import ModuleType
from typing import Any

from pysmpi.isolation.kinds.descriptors import STANDARD, duplicate, same_file
from pysmpi.own_process.descriptors import is_open
from pysmpi.python.holders import same

_MISSING = object()

# Modules whose names are exchanged or belong to the interpreter's own bookkeeping.
_NOT_OURS = frozenset({"sys", "__main__", "weakref", "_thread", "_weakrefset"})
# Modules with only their public names restored: others count threads that still run.
_PUBLIC_ONLY = frozenset({"threading"})
# Registries under private names; those under public names are found.
_REGISTRIES = {
    "_csv": ("_dialects",),
    "copyreg": ("_extension_registry", "_inverted_registry", "_extension_cache"),
    "logging": ("_levelToName", "_nameToLevel"),
    "shutil": ("_ARCHIVE_FORMATS", "_UNPACK_FORMATS"),
    "webbrowser": ("_browsers",),
}
# Attributes that Python itself adds to used classes and modules.
_CACHES = frozenset({"__warningregistry__", "__annotations__", "__abstractmethods__"})


class _Snapshot:
    """The names of a module, and the contents of its classes and registries."""

    def __init__(self, name: str, space: dict[str, Any]) -> None:
        self.name = name
        self.space = space
        self.names = _names(name, space)
        self.classes: list[tuple[type, dict[str, Any]]] = []
        self.registries: list[tuple[Any, Any]] = []
        private = _REGISTRIES.get(name, ())
        for entry, value in self.names.items():
            kind = type(value)
            if kind is dict or kind is list or kind is set:
                if not entry.startswith("_") or entry in private:
                    self.registries.append((value, kind(value)))
            elif kind is type or isinstance(value, type):
                own = vars(value)
                if own.get("__module__") == name and _is_plain(value):
                    self.classes.append((value, dict(own)))

    def is_current(self, space: dict[str, Any]) -> bool:
        """Whether nothing has changed since."""
        names = _names(self.name, space) if self.name in _PUBLIC_ONLY else space
        return (
            self.space is space
            and same(names, self.names)
            and all(same(kind, names) for kind, names in self.classes)
            and all(thing == contents for thing, contents in self.registries)
        )

    def restore(self, patched: Set[tuple[int, str]]) -> None:
        """Undo the changes since, but those of what was patched."""
        if not same(self.space, self.names):
            owner = sys.modules.get(self.name)
            _restore_names(self.name, self.space, _unpatched(self.names, owner, patched))
        for kind, names in self.classes:
            if not same(kind, names):
                _restore_class(kind, _unpatched(names, kind, patched))
        for thing, contents in self.registries:
            if thing != contents:
                if isinstance(thing, list):
                    thing[:] = contents
                else:
                    thing.clear()
                    thing.update(contents)


# Of the runs before, by the names of modules: most modules do not change between two runs.
_snapshots: dict[str, _Snapshot] = {}


class Restoring:
    """The standard library and the settings of a process as they are when this is made.

    `note` looks for modules that were loaded since; `restore` puts everything back. `patched` are
    the replacements of the run, by the `id` of the module or class and the name: they are undone
    before, and modules that the run has loaded are noted with them.
    """

    def __init__(self, patched: Set[tuple[int, str]] = frozenset()) -> None:
        self._patched = patched
        self._modules: list[_Snapshot] = []
        self._known: set[str] = set()
        self._lists = [(name, vars(sys)[name]) for name in ("meta_path", "path_hooks", "orig_argv")]
        streams: list[Any] = [sys.__stdin__, sys.__stdout__, sys.__stderr__]
        self._streams = [(stream, _settings(stream)) for stream in dict.fromkeys(streams)]
        self._undo = list(_of_process())
        self.note()

    def note(self) -> None:
        """Remember the modules of the standard library that are not known yet."""
        new = sys.modules.keys() - self._known
        self._known |= new
        standard = sys.stdlib_module_names
        for name in [name for name in new if name.partition(".")[0] in standard]:
            module = sys.modules.get(name)
            if name not in _NOT_OURS and type(module) is ModuleType:
                snapshot = _snapshots.get(name)
                if snapshot is None or not snapshot.is_current(vars(module)):
                    snapshot = _snapshots[name] = _Snapshot(name, vars(module))
                self._modules.append(snapshot)

    def restore(self) -> None:
        """Restore all changes."""
        for snapshot in self._modules:
            snapshot.restore(self._patched)
        for name, kept in self._lists:
            now = vars(sys)[name]
            if now is not kept:
                kept[:] = now
                setattr(sys, name, kept)
        for stream, settings in self._streams:
            if settings is not None and _settings(stream) not in (None, settings):
                with contextlib.suppress(ValueError, OSError):
                    stream.reconfigure(**settings)
        for undo in self._undo:
            undo()


def _names(module: str, space: dict[str, Any]) -> dict[str, Any]:
    """The entries of a module that are restored."""
    if module in _PUBLIC_ONLY:
        return {name: value for name, value in space.items() if name[0] != "_"}
    return dict(space)


def _unpatched(
    names: Mapping[str, object], owner: object, patched: Set[tuple[int, str]]
) -> dict[str, object]:
    """The names of a module or class, with the present values of those that were patched."""
    found = dict(names)
    now = {} if owner is None else vars(owner)
    for number, name in patched:
        if number == id(owner):
            if name in now:
                found[name] = now[name]
            else:
                found.pop(name, None)
    return found


def _is_plain(kind: type) -> bool:
    """Whether attributes of a class can be set directly, unlike those of enums."""
    setter: object = type(kind).__setattr__
    return bool(setter == type.__setattr__)


def _restore_names(module: str, space: dict[str, Any], names: dict[str, Any]) -> None:
    for name, value in names.items():
        if space.get(name, _MISSING) is not value:
            space[name] = value
    private = module in _PUBLIC_ONLY
    if len(space) > len(names):
        for name in space.keys() - names.keys():
            added = space[name]
            part = isinstance(added, ModuleType) and f"{module}.{name}" in sys.modules
            if not part and name not in _CACHES and not (private and name[0] == "_"):
                del space[name]


def _restore_class(kind: type, names: Mapping[str, object]) -> None:
    now = vars(kind)
    for name, value in names.items():
        if now.get(name, _MISSING) is not value:
            with contextlib.suppress(AttributeError, TypeError):
                setattr(kind, name, value)
    if len(now) > len(names):
        for name in now.keys() - names.keys():
            if not (name.startswith("__") and name.endswith("__")):
                with contextlib.suppress(AttributeError, TypeError):
                    delattr(kind, name)


def _settings(stream: object) -> dict[str, Any] | None:
    """The settings of a stream that `reconfigure` can change; None if it has no such function."""
    if stream is None or not hasattr(stream, "reconfigure"):
        return None
    try:
        return {
            name: getattr(stream, name)
            for name in ("encoding", "errors", "line_buffering", "write_through")
        }
    except (AttributeError, ValueError):
        return None


def _of_process() -> Iterable[Callable[[], object]]:
    """Functions that restore settings of the process to their current values."""
    traced, watched = tracemalloc.is_tracing(), faulthandler.is_enabled()

    def tools() -> None:
        if tracemalloc.is_tracing() and not traced:
            tracemalloc.stop()
        if faulthandler.is_enabled() and not watched:
            faulthandler.disable()

    yield tools
    yield _descriptors()
    if hasattr(os, "setpriority"):
        priority = os.getpriority(os.PRIO_PROCESS, 0)

        def restore_priority() -> None:
            if os.getpriority(os.PRIO_PROCESS, 0) != priority:
                with contextlib.suppress(PermissionError):  # only root may raise the priority again
                    os.setpriority(os.PRIO_PROCESS, 0, priority)

        yield restore_priority
    if hasattr(signal, "setitimer"):
        kinds = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
        unused = [kind for kind in kinds if signal.getitimer(kind) == (0.0, 0.0)]

        def stop_timers() -> None:
            for kind in unused:
                if signal.getitimer(kind) != (0.0, 0.0):
                    signal.setitimer(kind, 0.0)

        yield stop_timers


def _descriptors() -> Callable[[], object]:
    """Restore descriptors 0 to 2 where C code has closed them unseen, as `open(0)` does."""
    copies = {fd: duplicate(fd) for fd in STANDARD if is_open(fd)}
    inheritable = {fd: os.get_inheritable(fd) for fd in copies}

    def restore() -> None:
        for fd, number in copies.items():
            if not (is_open(fd) and same_file(fd, number)):
                os.dup2(number, fd, inheritable[fd])
            os.close(number)

    return restore
