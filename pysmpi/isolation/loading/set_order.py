"""The order of sets, which differs between processes: for each rank its own, under checkers.

Python seeds the hashes of texts at its start, so processes iterate over equal sets of texts in
different orders. A program that sends or calls collectives in this order is wrong, but in one
interpreter all ranks have one order. Here the source of the program's modules is changed: where it
iterates over an expression, a set with elements of such hashes comes in an order of the rank. The
order follows from `--seed`, the rank and the elements, so it is the same in each run.

A set gets an order in `for` statements, comprehensions, unpacking, `set.pop`, and as argument of
`list`, `tuple`, `iter`, `enumerate`, `zip`, `map`, `filter`, `sorted`, `min`, `max`, `deque`,
`dict.fromkeys`, `str.join` and `list.extend`.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import datetime
import enum
import operator
import os
import pathlib
import sys
import zlib
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from pysmpi.isolation.kinds.rank_environment import RankEnvironment, here
from pysmpi.patching.patches import Patches

# Names that the changed source uses.
_ORDERED, _POP = "__pysmpi_ordered__", "__pysmpi_pop__"
# The variable that tells a hash seed of `--seed` from one of the user.
SEEDED = "PYSMPI_SEEDED"

_CALLS = frozenset(
    ("list", "tuple", "iter", "enumerate", "zip", "map", "filter", "sorted", "min", "max", "deque")
)
_METHODS = frozenset(("join", "extend", "fromkeys"))
_MIXER = 0x9E3779B1  # odd: places of different checksums stay different
_DEEPEST = 100_000  # frames
_BY_ADDRESS = (type, FunctionType, BuiltinFunctionType, ModuleType)
_NUMBERS = (int, float, complex)


def is_fixed() -> bool:
    """Whether the user has given all processes one order (`PYTHONHASHSEED`)."""
    seed = os.environ.get("PYTHONHASHSEED", "random")
    return seed not in ("", "random") and SEEDED not in os.environ


class OrderingTransformer(ast.NodeTransformer):
    """Lets the code of a module ask for the order of a set wherever it iterates over one."""

    def __init__(self, tree: ast.AST) -> None:
        stored = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        defined = {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        self.calls = _CALLS - stored - defined

    def _ordered(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.JoinedStr):
            return value
        return self._call(_ORDERED, value)

    @staticmethod
    def _call(name: str, value: ast.expr) -> ast.expr:
        function = ast.copy_location(ast.Name(name, ast.Load()), value)
        return ast.copy_location(ast.Call(function, [value], []), value)

    def visit_For(self, node: ast.For) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        node.iter = self._ordered(node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = self._ordered(node.iter)
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        node.value = self._ordered(node.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._ordered(node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            node.value = self._ordered(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Name) and function.id in self.calls:
            first = 1 if function.id in ("map", "filter") else 0
            if function.id not in ("min", "max") or len(node.args) == 1:
                node.args[first:] = [
                    one if isinstance(one, ast.Starred) else self._ordered(one)
                    for one in node.args[first:]
                ]
        elif isinstance(function, ast.Attribute) and node.args and function.attr in _METHODS:
            if not isinstance(node.args[0], ast.Starred):
                node.args[0] = self._ordered(node.args[0])
        elif isinstance(function, ast.Attribute) and function.attr == "pop":
            if not node.args and not node.keywords:
                return ast.copy_location(self._call(_POP, function.value), node)
        return node


def transform(tree: ast.Module) -> None:
    """Change the tree of a module."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEEPEST))  # the parser takes deeper trees than a visitor
    try:
        OrderingTransformer(tree).visit(tree)
        ast.fix_missing_locations(tree)
    finally:
        sys.setrecursionlimit(limit)


def _text(element: Any) -> bytes | None:
    """The key that orders an element whose hash differs between processes; None for others."""
    kind = type(element)
    if kind is str:
        return str(element).encode("utf-8", "surrogatepass")
    if kind is bytes:
        return bytes(element)
    if isinstance(element, _NUMBERS) and not isinstance(element, enum.Enum):
        return None
    if kind in (tuple, frozenset):
        parts = [_text(part) for part in element]
        if all(part is None for part in parts):
            return None
        return b"\0".join(
            sorted(map(_or_hash, element, parts))
            if kind is frozenset
            else map(_or_hash, element, parts)
        )
    if isinstance(element, enum.Enum):
        return element.name.encode()
    if isinstance(element, str | bytes | pathlib.PurePath | datetime.date | datetime.time):
        return str(element).encode("utf-8", "surrogatepass")
    if isinstance(element, _BY_ADDRESS):
        return getattr(element, "__qualname__", element.__name__).encode()
    if dataclasses.is_dataclass(element) and not isinstance(element, type):
        return _text(tuple(getattr(element, field.name) for field in dataclasses.fields(element)))
    by_address: bool = vars(object)["__hash__"] is getattr(kind, "__hash__", None)
    return kind.__qualname__.encode() if by_address else None


def _or_hash(element: object, text: bytes | None) -> bytes:
    return str(hash(element)).encode() if text is None else text


def _in_order(elements: Iterable[Any], environment: RankEnvironment) -> list[Any] | None:
    """The elements of a set in the order of a rank; None if processes have one order."""
    items = list(elements)
    texts = [_text(element) for element in items]
    if all(text is None for text in texts):
        return None
    seed = environment.distinct_seed
    places = [
        (zlib.crc32(_or_hash(element, text), seed) * _MIXER & 0xFFFFFFFF, number)
        for number, (element, text) in enumerate(zip(items, texts))
    ]
    return [items[number] for _, number in sorted(places)]


class _OrderedSet:
    """Iterates over a set in the order of a rank; the set must not change meanwhile."""

    __slots__ = ("things", "elements", "size")

    def __init__(self, things: Any, elements: list[Any]) -> None:
        self.things = things
        self.size = len(things)
        self.elements = iter(elements)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if len(self.things) != self.size:
            raise RuntimeError("Set changed size during iteration")
        return next(self.elements)

    def __length_hint__(self) -> int:
        return operator.length_hint(self.elements)


def ordered(things: Any) -> Any:
    """A set in the order of the running rank; anything else as it is."""
    kind = type(things)
    if kind is not set and kind is not frozenset or len(things) < 2:
        return things
    environment = here()
    elements = None if environment is None else _in_order(things, environment)
    return things if elements is None else _OrderedSet(things, elements)


def pop(things: Any) -> Any:
    """`things.pop()`, for a set the first element in the order of the running rank."""
    if type(things) is not set or len(things) < 2:
        return things.pop()
    environment = here()
    elements = None if environment is None else _in_order(things, environment)
    if elements is None:
        return things.pop()
    things.remove(elements[0])
    return elements[0]


def install(patches: Patches) -> None:
    """Provide the names that the changed source uses until the patches are undone."""
    patches.set(builtins, _ORDERED, ordered)
    patches.set(builtins, _POP, pop)
