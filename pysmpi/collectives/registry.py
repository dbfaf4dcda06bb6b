"""The registry of algorithms and of the selectors that choose among them.

An algorithm is a function with the signature `def name(s: Builder, c: Call) -> None`: it appends
the steps of rank `c.rank` to `s`. Every rank of the communicator runs the same function on its own
`Call`. In the schedules of all ranks, every send must match a receive. Each step includes its
bytes; `pysmpi.collectives.buffers` describes the places of the data.

    @algorithm("bcast", "star", "root sends to all, one after another; P-1 steps, m bytes each")
    def star(s, c):
        if c.rank != c.root:
            s.recv(c.root, c.nbytes, c.output)
        else:
            for peer in range(c.size):
                if peer != c.rank:
                    s.send(peer, c.nbytes, c.output)

An algorithm that depends on the ranks that have arrived is a generator instead, with the signature
`def name(c: Call, look: Lookout) -> Iterator[Builder]`; see `running`.

Algorithms and selectors of other distributions are found through the entry point group
`pysmpi.collectives`: each entry names a module that registers them when it is imported, with
`algorithm` and `add_selector`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import isgeneratorfunction
from typing import Any
from weakref import WeakValueDictionary

from pysmpi.collectives.call import Call
from pysmpi.errors import UsageError
from pysmpi.loading import LazyLoad
from pysmpi.plugins import import_plugins, suggestion

Build = Callable[[Any, Call], None]
Live = Callable[[Call, Any], Iterator[Any]]
Rule = Callable[[Call], str]

ENTRY_POINTS = "pysmpi.collectives"


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A registered algorithm.

    `summary` is one line: shape, steps, volume, constraint. `elsewhere` is set if the pattern is
    defined for 2^k ranks only: it names the algorithm for other numbers of ranks. `ordered`: a
    reduction combines in the order of ranks if the operator does not commute. `live` is the
    generator of an algorithm that decides while it runs; it has no `build`.
    """

    op: str
    name: str
    summary: str
    build: Build | None
    elsewhere: str = ""
    ordered: bool = False
    live: Live | None = None


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


_algorithms: dict[str, dict[str, Algorithm]] = {}
_with_live: set[str] = set()
_selectors: dict[str, Selector] = {}
_nonblocking: dict[str, dict[str, Rule]] = {}
# The selectors of files live as long as a selection that uses them.
_of_files: WeakValueDictionary[str, Selector] = WeakValueDictionary()


def algorithm(
    op: str, name: str, summary: str, *, elsewhere: str = "", ordered: bool = False
) -> Callable[[Any], Any]:
    """Register the decorated function as algorithm `name` of operation `op`.

    `elsewhere` restricts it to powers of two and names the algorithm for other numbers of ranks.
    `ordered` means that a reduction combines in the order of ranks if the operator does not
    commute, for every choice of nested collectives.
    """

    def register(function: Any) -> Any:
        known = _algorithms.setdefault(op, {})
        if name in known:
            raise ValueError(f"algorithm {name!r} of {op} is registered twice")
        live = isgeneratorfunction(function)
        if live:
            _with_live.add(op)
        known[name] = Algorithm(
            op,
            name,
            summary,
            None if live else function,
            elsewhere,
            ordered,
            function if live else None,
        )
        return function

    return register


@LazyLoad
def load() -> None:
    """Import the modules of algorithms: pysmpi's own, then those of entry points."""
    import_plugins("collective algorithm", ENTRY_POINTS, "pysmpi.collectives.algorithms")


def operations() -> list[str]:
    """Every operation that has an algorithm."""
    load()
    return sorted(op for op in _algorithms if op != "smp_setup")


def algorithms_of(op: str) -> dict[str, Algorithm]:
    """The algorithms of an operation by name, selectors not included."""
    load()
    if op not in _algorithms:
        raise UsageError(
            f"no collective operation named {op!r}; {suggestion(op, operations())}"
            f"operations: {', '.join(operations())}"
        )
    return _algorithms[op]


def has_live(op: str) -> bool:
    """Whether an operation has algorithms that decide while they run."""
    load()
    return op in _with_live


def fitting(op: str, name: str, size: int) -> str:
    """`name`, or its replacement if it is not defined for `size` ranks."""
    elsewhere = _algorithms[op][name].elsewhere
    return elsewhere if elsewhere and size & (size - 1) else name


def find(op: str, name: str) -> Algorithm:
    """The algorithm `name` of `op`; UsageError names the valid ones."""
    known = algorithms_of(op)
    if name not in known:
        raise UsageError(
            f"no algorithm {name!r} for {op}; {suggestion(name, known)}"
            f"algorithms: {', '.join(sorted(known))}"
        )
    return known[name]


# Selectors.

_LIBRARIES = ("default", "ompi", "mpich", "mvapich2", "impi", "ompi5", "mpich4",
              "coherence_tuned", "automatic")  # fmt: skip


@LazyLoad
def _load_selectors() -> None:
    """Import our selectors, without the algorithms that they name."""
    package = f"{__package__}.selectors"
    for module in _LIBRARIES:
        add_selector(importlib.import_module(f"{package}.{module}").SELECTOR)
    _nonblocking.update(importlib.import_module(f"{package}.nonblocking").BY_LIBRARY)


def add_selector(selector: Selector) -> None:
    """Add a selector."""
    _selectors[selector.name] = selector


def lend_selector(selector: Selector) -> Selector:
    """Register the selector of a file for the lifetime of the returned object."""
    return _of_files.setdefault(selector.name, selector)


def _selector(name: str) -> Selector | None:
    _load_selectors()
    found = _selectors.get(name) or _of_files.get(name)
    if found is None:
        load()  # other distributions have selectors too
        found = _selectors.get(name)
    return found


def is_selector(name: str) -> bool:
    """Whether there is a selector `name`, including those of files."""
    return _selector(name) is not None


def selector_names() -> list[str]:
    """The names of all selectors except those of files."""
    _load_selectors()
    return list(_selectors)


def find_selector(name: str) -> Selector:
    """The selector `name`; UsageError names the valid ones."""
    found = _selector(name)
    if found is None:
        raise UsageError(
            f"no selector or algorithm {name!r}; {suggestion(name, selector_names())}"
            f"selectors: {', '.join(selector_names())}"
        )
    return found


def choose(name: str, call: Call) -> str:
    """The choice of selector `name` for `call`: an algorithm's name, or another selector's."""
    rules = find_selector(name).rules
    if call.nonblocking:
        rules = _nonblocking.get(name, rules)
    rule = rules.get(call.op)
    if rule is None:
        return "default"
    return rule(call)


def uses_nodes(name: str, call: Call) -> bool:
    """Whether selector `name` sets up node-level communicators before this call."""
    return not call.nonblocking and find_selector(name).uses_nodes(call)
