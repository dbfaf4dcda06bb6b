"""State of a process in containers of shared packages: options, registries, open figures.

A package that is loaded once for all ranks has one `matplotlib.rcParams`, one table of colour maps,
one list of figures. If a rank has changed their contents, they are exchanged at switches of ranks.
A registration by a package that each rank loads therefore does not conflict with that of another
rank.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.state import ProcessState
from pysmpi.isolation.versions import Versions


class Contents(ProcessState):
    """The contents of one container, for each rank that has changed them."""

    polled = True

    def __init__(self, exchange: Exchange, name: str, thing: object) -> None:
        super().__init__(exchange)
        self.name = name
        self.thing = thing
        self.add = _push if name.endswith("+") else _add
        self.common = self.shown = _copy(thing)
        self.version: Versions | None = None
        if exchange.exact and isinstance(thing, dict):
            self.version = exchange.versions()
            self.version.note(self.version.add(thing))

    def differs(self) -> bool:
        if self.version is not None:
            return self.version.differs(0)
        return not _same(self.thing, self.shown)

    def capture(self) -> object:
        if self.version is not None:
            self.version.note(0)
        return _copy(self.thing)

    def install(self, value: object) -> None:
        _fill(self.thing, value)
        if self.version is not None:
            self.version.note(0)

    # Additions of a shared module during its import, which happens once, are for all ranks.

    def begin_shared(self) -> None:
        if self.differs():
            self.record(self.exchange.shown)

    def end_shared(self) -> None:
        if not self.differs():
            return
        before = self.shown
        self.record(self.exchange.shown)
        for state in self.exchange.live:
            mine = state.own.get(self.name)
            if mine is not None and mine is not self.shown:
                self.add(mine, self.shown, before)
        if self.common is before:
            self.common = _copy(self.common)
        self.add(self.common, self.shown, before)


# Methods that a class of containers has in place of these may warn, or change the filters of
# warnings, as those of matplotlib's `rcParams` do.
def _copy(thing: Any) -> object:
    if isinstance(thing, OrderedDict):
        return dict(thing)
    if isinstance(thing, dict):
        return dict(thing if type(thing).__iter__ is dict.__iter__ else dict.items(thing))
    return list(thing) if isinstance(thing, list) else set(thing)


def _same(thing: Any, contents: Any) -> bool:
    """Whether a container has these contents."""
    kind = next(kind for kind in (dict, list, set) if isinstance(thing, kind))
    return kind.__eq__(thing, contents) is True


def _fill(thing: Any, wanted: Any) -> None:
    """Put contents into a container, past checks that its class may make."""
    if isinstance(thing, OrderedDict):
        thing.clear()
        thing.update(wanted)
    elif isinstance(thing, dict):
        dict.clear(thing)
        dict.update(thing, wanted)
    elif isinstance(thing, list):
        thing[:] = wanted
    else:
        thing.clear()
        thing.update(wanted)


def _add(mine: Any, now: Any, before: Any) -> None:
    """Add the new entries of some contents to others."""
    if isinstance(mine, dict):
        mine.update({key: value for key, value in now.items() if key not in before})
    elif isinstance(mine, list):
        mine += [item for item in now if item not in before]
    else:
        mine |= now - before


def _push(mine: Any, now: Any, before: Any) -> None:
    """Put the additions of each new item of a stack on top of another stack."""
    for number in range(len(before), len(now)):
        item = copy.copy(mine[-1])
        below, above = vars(now[number - 1]), vars(now[number])
        vars(item).update(
            {key: _joined(value, above[key], below[key]) for key, value in vars(item).items()}
        )
        mine.append(item)


def _joined(mine: Any, now: Any, before: Any) -> Any:
    """A copy of a dictionary or set, with the entries of `now` that `before` does not have."""
    if isinstance(mine, set):
        return mine | (now - before)
    if not isinstance(mine, dict):
        return now
    joined = {key: _joined(value, value, value) for key, value in mine.items()}
    for key, value in now.items():
        if isinstance(value, dict | set):
            none = type(value)()
            joined[key] = _joined(joined.get(key, none), value, before.get(key, none))
        elif key not in before:
            joined[key] = value
    return joined


def _find(module: ModuleType, path: str) -> Iterator[tuple[str, object]]:
    """The containers that a path names."""
    thing: object = module
    nested = path.endswith(".*")
    for part in path.removesuffix(".*").removesuffix("+").split("."):
        thing = getattr(thing, part, None)
    if isinstance(thing, dict | list | set):
        yield f"{module.__name__}.{path}", thing
        if nested and isinstance(thing, dict):
            yield from _inside(f"{module.__name__}.{path}", thing)


def _inside(name: str, thing: Mapping[Any, object]) -> Iterator[tuple[str, object]]:
    for key, value in thing.items():
        if isinstance(value, dict):
            yield f"{name}.{key}", value
            yield from _inside(f"{name}.{key}", value)


def watch(exchange: Exchange, imports: Any, module: ModuleType, paths: Iterable[str]) -> None:
    """Exchange the containers of a shared module that has been loaded.

    `paths` name dictionaries, lists and sets in it, see `libraries.containers`.
    """
    if module.__name__ not in exchange.shared:
        return
    for path in paths:
        again = partial(_watch_path, exchange, imports, module, path)
        again()
        if path.endswith(".*"):
            # Modules of the package that are imported later register their options in it.
            imports.end_shared.append(again)


def _watch_path(exchange: Exchange, imports: Any, module: ModuleType, path: str) -> None:
    for name, thing in _find(module, path):
        if not exchange.follows(name):
            contents = Contents(exchange, name, thing)
            contents.follow()
            imports.begin_shared.append(contents.begin_shared)
            imports.end_shared.append(contents.end_shared)
