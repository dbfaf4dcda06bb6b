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
`algorithm` and `selector`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import isgeneratorfunction
from typing import Any
from weakref import WeakValueDictionary

from pysmpi.collectives.call import OPERATIONS, Call
from pysmpi.plugins import Registry
from pysmpi.python.records import record

Build = Callable[[Any, Call], None]
Live = Callable[[Call, Any], Iterator[Any]]
Rule = Callable[[Call], str]
Rules = dict[str, Rule]  # by operation

ENTRY_POINTS = "pysmpi.collectives"


@record(frozen=True)
class Algorithm:
    """A registered algorithm.

    `line` has its shape, steps, volume and constraint. `elsewhere` is set if the pattern is
    defined for 2^k ranks only: it names the algorithm for other numbers of ranks. `ordered`: a
    reduction combines in the order of ranks if the operator does not commute. `live` is the
    generator of an algorithm that decides while it runs; it has no `build`.
    """

    op: str
    name: str
    line: str
    build: Build | None
    elsewhere: str = ""
    ordered: bool = False
    live: Live | None = None


@record
class OperationKind:
    """A collective operation and its algorithms; `live`: some of them decide while they run."""

    name: str
    line: str
    algorithms: Registry[Algorithm]
    live: bool = False


COLLECTIVES: Registry[OperationKind] = Registry(
    "collective operation", ENTRY_POINTS, "pysmpi.collectives.algorithms"
)
for _op, _line in OPERATIONS.items():
    COLLECTIVES.add(OperationKind(_op, _line, Registry(f"algorithm of {_op}")))
# No call of a program, but a part of its first call with a node-aware algorithm.
_SETUP = OperationKind("smp_setup", "ranks find their nodes", Registry("algorithm of smp_setup"))


def _never(call: Call) -> bool:
    return False


@record(frozen=True)
class Selector:
    """A library's choice.

    `rules` has, by operation, the function from a call to the name of an algorithm or of another
    selector. Other operations use the algorithm `default`. `nonblocking` has the rules of
    non-blocking and persistent calls, if they are not the same. `uses_nodes` tells whether the
    library sets up its node-level communicators for a call.
    """

    name: str
    line: str
    rules: Rules
    uses_nodes: Callable[[Call], bool] = _never
    nonblocking: Rules | None = None

    def choose(self, call: Call) -> str:
        """The choice for a call: an algorithm's name, or another selector's."""
        rules = self.rules
        if call.nonblocking and self.nonblocking is not None:
            rules = self.nonblocking
        rule = rules.get(call.op)
        return "default" if rule is None else rule(call)

    def sets_up(self, call: Call) -> bool:
        """Whether the library sets up its node-level communicators before this call."""
        return not call.nonblocking and self.uses_nodes(call)


SELECTORS: Registry[Selector] = Registry(
    "selector", ENTRY_POINTS, f"{__package__}.selectors", apart=True
)
# The selectors of files live as long as a selection that uses them.
_of_files: WeakValueDictionary[str, Selector] = WeakValueDictionary()

# The algorithms of operations that were asked for: each rank asks for each of its calls.
_algorithms: dict[str, dict[str, Algorithm]] = {}


def algorithm(
    op: str, name: str, line: str, *, elsewhere: str = "", ordered: bool = False
) -> Callable[[Any], Any]:
    """Register the decorated function as algorithm `name` of operation `op`.

    `elsewhere` restricts it to powers of two and names the algorithm for other numbers of ranks.
    `ordered` means that a reduction combines in the order of ranks if the operator does not
    commute, for every choice of nested collectives.
    """
    operation = _SETUP if op == _SETUP.name else COLLECTIVES.registered(op)

    def register(function: Any) -> Any:
        live = isgeneratorfunction(function)
        operation.algorithms.add(
            Algorithm(
                op,
                name,
                line,
                None if live else function,
                elsewhere,
                ordered,
                function if live else None,
            )
        )
        operation.live |= live
        return function

    return register


def selector(
    name: str,
    line: str,
    *,
    uses_nodes: Callable[[Call], bool] = _never,
    nonblocking: Rules | None = None,
) -> Callable[[Callable[[], Rules]], Callable[[], Rules]]:
    """Register the rules that the decorated function returns as a selector; see `Selector`."""

    def register(rules: Callable[[], Rules]) -> Callable[[], Rules]:
        SELECTORS.add(Selector(name, line, rules(), uses_nodes, nonblocking))
        return rules

    return register


def algorithms_of(op: str) -> dict[str, Algorithm]:
    """The algorithms of an operation by name, selectors not included."""
    algorithms = _algorithms.get(op)
    if algorithms is None:
        operation = _SETUP if op == _SETUP.name else COLLECTIVES.find(op)
        algorithms = _algorithms[op] = operation.algorithms.known()
    return algorithms


def has_live(op: str) -> bool:
    """Whether an operation has algorithms that decide while they run."""
    return COLLECTIVES.find(op).live


def fitting(op: str, name: str, size: int) -> str:
    """`name`, or its replacement if it is not defined for `size` ranks."""
    elsewhere = algorithms_of(op)[name].elsewhere
    return elsewhere if elsewhere and size & (size - 1) else name


def find(op: str, name: str) -> Algorithm:
    """The algorithm `name` of `op`; UsageError names the valid ones."""
    return COLLECTIVES.find(op).algorithms.find(name, f"{op}={name}")


def lend_selector(selector: Selector) -> Selector:
    """Register the selector of a file for the lifetime of the returned object."""
    return _of_files.setdefault(selector.name, selector)


def is_selector(name: str) -> bool:
    """Whether there is a selector `name`, including those of files."""
    return name in _of_files or name in SELECTORS


def find_selector(name: str, where: str = "") -> Selector:
    """The selector `name`; UsageError names the valid ones, and begins with `where`."""
    # A file whose name is that of a selector is never read.
    return SELECTORS.asked_for(name) or _of_files.get(name) or SELECTORS.find(name, where)


def split(name: str) -> tuple[str, tuple[str, ...]]:
    """Split `NAME:LEADERS,NODE` into the name of an algorithm and those of its parts."""
    name, _, parts = name.partition(":")
    return name, tuple(parts.split(",")) if parts else ()
