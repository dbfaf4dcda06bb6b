"""A registry for every kind of plug-in: names, descriptions of one line, and places to search.

pysmpi's own plug-ins are in a package; all its modules are imported. Plug-ins of other
distributions are found through an entry point group: each entry names a module (or an object in
one) that registers its plug-ins when it is imported. A new plug-in is one file in either case.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from pysmpi.errors import PysmpiError, UsageError
from pysmpi.python.lazy import LazyLoad
from pysmpi.text import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Plugin(Protocol):
    """An entry of a registry: a name, and a description of one line."""

    @property
    def name(self) -> str:
        """The name of the plug-in."""
        ...

    @property
    def line(self) -> str:
        """The description of the plug-in, in one line."""
        ...


P = TypeVar("P", bound=Plugin)


def entry_points(group: str) -> Iterable[EntryPoint]:
    """The entry points of a group.

    Reading them takes a tenth of a short run, and hardly any distribution has plug-ins. So files of
    entry points are first searched for the name of the group.
    """
    if not _is_named(group):
        return ()
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _is_named(group: str) -> bool:
    """Whether a distribution may have entry points of a group."""
    texts = _entry_point_files(tuple(sys.path))
    return texts is None or f"[{group}]".encode() in texts


@cache
def _entry_point_files(places: tuple[str, ...]) -> bytes | None:
    """The files of entry points in some places; None if a place may have others."""
    texts = []
    for place in places:
        try:
            names = os.listdir(place or ".")
        except NotADirectoryError:
            return None  # an archive
        except OSError:
            continue
        for name in names:
            if name.endswith(".egg"):
                return None
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(place, name, "entry_points.txt"), "rb") as stream:
                        texts.append(stream.read())
                except OSError:
                    continue  # most have none
    return b"\n".join(texts)


# Several registries may have one group. Its modules are imported once, even if a rank, whose own
# modules are loaded for it alone, makes the request.
_GROUPS: dict[str, LazyLoad] = {}


def _import_entry_points(group: str) -> None:
    for entry in entry_points(group):
        owner = entry.dist.name if entry.dist is not None else "a distribution"
        place = f"{owner}: entry point {entry.name} = {entry.value} of group {group}"
        try:
            entry.load()
        except PysmpiError as error:
            raise UsageError(f"{place}: {error}") from error
        except Exception as error:
            raise UsageError(
                f"{place}: expected a module that registers plug-ins, "
                f"got {type(error).__name__}: {error}"
            ) from error


class Registry(Generic[P]):
    """The plug-ins of one kind by name, in the order in which they were registered, or with `apart`
    in the order of their names.

    `kind` is the noun for error messages, such as "model". `home` is the package of pysmpi's own
    plug-ins, `group` the entry point group of other distributions. Both are searched at the first
    request, if they are given. With `apart`, a request for one plug-in of pysmpi imports only the
    module of `home` that has its name, unless other distributions have plug-ins.
    """

    def __init__(self, kind: str, group: str = "", home: str = "", apart: bool = False) -> None:
        self.kind = kind
        self.group = group
        self.home = home
        self.apart = apart
        self._known: dict[str, P] = {}
        self._found: dict[str, P] = {}  # by earlier requests
        self._load = LazyLoad(self._import)

    def add(self, plugin: P) -> P:
        """Register a plug-in; ValueError if its name is taken by another."""
        name = plugin.name
        if name in self._known:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._known[name] = plugin
        return plugin

    def discard(self, name: str) -> None:
        """Remove the plug-in called `name`, if there is one."""
        self._known.pop(name, None)
        self._found.pop(name, None)

    def _import(self) -> None:
        """Import the modules that register plug-ins: those of `home`, then those of entry points.

        Raises UsageError for an entry point that cannot be imported.
        """
        if self.home:
            package = import_module(self.home)
            for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
                import_module(f"{self.home}.{module.name}")
        if self.group:
            _GROUPS.setdefault(self.group, LazyLoad(partial(_import_entry_points, self.group)))()
        if self.apart:
            self._known = dict(sorted(self._known.items()))  # imports may have had any order

    def registered(self, name: str) -> P:
        """The plug-in called `name` that is registered by now, without a search for others.

        Raises UsageError as `find`.
        """
        return self._one_of(self._known, name, "")

    def _apart(self, name: str) -> P | None:
        """The plug-in called `name` if it can be found without the others."""
        if not self.apart or _is_named(self.group):
            return None
        if name not in self._known and name.isidentifier():
            home = f"{self.home}.{name}"
            if find_spec(home) is not None:
                import_module(home)
        return self._known.get(name)

    def known(self) -> dict[str, P]:
        """All plug-ins by name."""
        if not self._load.done:
            self._load()
        return self._known

    def candidates(self) -> list[str]:
        """The names of all plug-ins; those of pysmpi that are `apart` are not imported for this."""
        if self.apart and not self._load.done and not _is_named(self.group):
            package = import_module(self.home)
            modules = pkgutil.iter_modules(package.__path__)
            return sorted({*self._known, *(module.name for module in modules)})
        return self.names()

    def names(self) -> list[str]:
        """The names of all plug-ins."""
        return list(self.known())

    def __iter__(self) -> Iterator[P]:
        return iter(self.known().values())

    def __contains__(self, name: object) -> bool:
        if not self._load.done and isinstance(name, str) and self._apart(name) is not None:
            return True
        return name in self.known()

    def find(self, name: str, where: str = "") -> P:
        """The plug-in called `name`.

        Raises UsageError with the known names; its message begins with `where` (an option, a file).
        """
        found = self._found.get(name)
        if found is None:
            found = self._known.get(name) if self._load.done else self._apart(name)
            found = self._found[name] = found or self._one_of(self.known(), name, where)
        return found

    def asked_for(self, name: str) -> P | None:
        """The plug-in called `name` if `find` has returned it before."""
        return self._found.get(name)

    def _one_of(self, known: dict[str, P], name: str, where: str) -> P:
        found = known.get(name)
        if found is None:
            place = where or f"{self.kind} {name}"
            hint = did_you_mean(name, known) or ";"
            raise UsageError(f"{place}: no such {self.kind}{hint} there are {', '.join(known)}")
        return found
