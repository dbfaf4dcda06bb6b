"""One registry for every kind of plug-in: a name, one line about it, and where more are found.

Ours are found in a package, whose every module is imported. Those of other distributions are found
through an entry point group: each entry names a module (or an object in one) that registers when
it is imported. So adding one is one file, wherever it is.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar

from pysmpi.errors import PysmpiError, UsageError
from pysmpi.loading import Once


class Plugin(Protocol):
    """What a registry holds: a name, and one line about it."""

    @property
    def name(self) -> str:
        """How it is chosen."""
        ...

    @property
    def line(self) -> str:
        """What it is, in one line."""
        ...


P = TypeVar("P", bound=Plugin)


def suggestion(name: str, known: Iterable[str]) -> str:
    """`did you mean NAME? ` where one of `known` looks like `name`, else nothing."""
    close = get_close_matches(name, list(known), 1)
    return f"did you mean {close[0]}? " if close else ""


class Registry(Generic[P]):
    """The plug-ins of one kind by name, in the order in which they were registered.

    `kind` is what errors call one of them, such as "model". `home` is the package that holds ours,
    `group` the entry point group of those of other distributions. Both are looked into when
    somebody first asks.
    """

    def __init__(self, kind: str, group: str, home: str = "") -> None:
        self.kind = kind
        self.group = group
        self.home = home
        self._known: dict[str, P] = {}
        self._load = Once(self._import)

    def add(self, plugin: P) -> P:
        """Register one; ValueError if its name is taken by another."""
        name = plugin.name
        if name in self._known:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._known[name] = plugin
        return plugin

    def discard(self, name: str) -> None:
        """Forget the one called `name`, if there is one."""
        self._known.pop(name, None)

    def _import(self) -> None:
        if self.home:
            home = import_module(self.home)
            for module in sorted(pkgutil.iter_modules(home.__path__), key=lambda m: m.name):
                import_module(f"{self.home}.{module.name}")
        for entry in entry_points(group=self.group):
            self._enter(entry)

    def _enter(self, entry: EntryPoint) -> None:
        try:
            entry.load()
        except PysmpiError:
            raise
        except Exception as error:
            owner = entry.dist.name if entry.dist is not None else "a distribution"
            raise UsageError(
                f"{owner}: entry point {entry.name} = {entry.value} of group {self.group}: "
                f"expected a module that registers a {self.kind}, "
                f"got {type(error).__name__}: {error}"
            ) from error

    def known(self) -> dict[str, P]:
        """All of them by name."""
        self._load()
        return self._known

    def names(self) -> list[str]:
        """Their names."""
        return list(self.known())

    def __iter__(self) -> Iterator[P]:
        return iter(self.known().values())

    def __contains__(self, name: object) -> bool:
        return name in self.known()

    def find(self, name: str, where: str = "") -> P:
        """The one called `name`.

        UsageError, which begins with `where` (an option, a file), names those that there are.
        """
        known = self.known()
        found = known.get(name)
        if found is None:
            place = where or f"{self.kind} {name}"
            raise UsageError(
                f"{place}: no such {self.kind}; {suggestion(name, known)}"
                f"there are {', '.join(known)}"
            )
        return found
