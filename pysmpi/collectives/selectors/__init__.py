"""Selectors: a library's choice for an operation, a number of ranks and a size.

A selector is data: tables of algorithms by size, with a few lines that compute the arguments of a
table. Each module of this package holds one library.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from pysmpi.collectives.call import Call
from pysmpi.errors import UsageError

Rule = Callable[[Call], str]


def _never(call: Call) -> bool:
    return False


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Selector:
    """A library's choice.

    `rules` has, by operation, the function from a call to the name of an algorithm or of another
    selector. Other operations use the algorithm `default`. `uses_nodes` tells whether the library
    sets up its node-level communicators for a call.
    """

    name: str
    summary: str
    rules: dict[str, Rule]
    uses_nodes: Callable[[Call], bool] = _never


_MODULES = ("default", "ompi", "mpich", "mvapich2", "impi", "ompi5", "mpich4", "coherence_tuned",
            "automatic")  # fmt: skip
_selectors: dict[str, Selector] = {}
# Those of selection files live as long as a selection that uses them.
_of_files: WeakValueDictionary[str, Selector] = WeakValueDictionary()


def _all() -> dict[str, Selector]:
    if not _selectors:
        for module in _MODULES:
            found = importlib.import_module(f"{__name__}.{module}").SELECTOR
            _selectors[found.name] = found
    return _selectors


def register(selector: Selector) -> None:
    """Add a selector."""
    _all()[selector.name] = selector


def lend(selector: Selector) -> Selector:
    """Register the selector of a file for the lifetime of the returned object."""
    return _of_files.setdefault(selector.name, selector)


def is_known(name: str) -> bool:
    """Whether there is a selector `name`, including those of files."""
    return name in _all() or name in _of_files


def names() -> list[str]:
    """The names of all selectors except those of files."""
    return list(_all())


def find(name: str) -> Selector:
    """The selector `name`; UsageError names the valid ones."""
    known = _all()
    found = known.get(name) or _of_files.get(name)
    if found is None:
        raise UsageError(f"no selector or algorithm {name!r}; selectors: {', '.join(known)}")
    return found


def choose(name: str, call: Call) -> str:
    """The choice of selector `name` for `call`: an algorithm's name, or another selector's."""
    selector = find(name)
    rules = selector.rules
    if call.nonblocking:
        from pysmpi.collectives.selectors.nonblocking import BY_LIBRARY

        rules = BY_LIBRARY.get(name, rules)
    rule = rules.get(call.op)
    if rule is None:
        return "default"
    return rule(call)


def uses_nodes(name: str, call: Call) -> bool:
    """Whether selector `name` sets up node-level communicators before this call."""
    return not call.nonblocking and find(name).uses_nodes(call)
