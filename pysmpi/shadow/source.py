"""Replacing functions in source code before it is compiled.

A decorator is added to each named definition, so it is active as soon as the program defines the
function. Line numbers do not change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from pysmpi.errors import UsageError
from pysmpi.text import similar

HOOK = "__pysmpi_shadow__"  # a name among the builtins while ranks run

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DESCRIPTORS = ("staticmethod", "classmethod", "property", "cached_property")


def _definitions(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[str, _Definition]]:
    """All definitions in `body` with their qualified names, those in functions included."""
    for node in body:
        if isinstance(node, _Definition):
            path = prefix + node.name
            yield path, node
            yield from _definitions(node.body, path + ".")
        else:
            for inner in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _definitions(getattr(node, inner, ()), prefix)


def _yields(function: ast.FunctionDef) -> bool:
    """Whether a function is a generator."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, (_Definition, ast.Lambda)):
            pending += ast.iter_child_nodes(node)
    return False


def _decorate(node: ast.FunctionDef, place: str) -> None:
    call = ast.Call(ast.Name(HOOK, ast.Load()), [ast.Constant(place)], [])
    for part in ast.walk(call):
        ast.copy_location(part, node)
    position = 0
    for index, decorator in enumerate(node.decorator_list):
        name = decorator.attr if isinstance(decorator, ast.Attribute) else ast.unparse(decorator)
        if name.rpartition(".")[2] in (*_DESCRIPTORS, "setter", "getter"):
            position = index + 1
    node.decorator_list.insert(position, call)


def _origin(tree: ast.Module, name: str) -> str | None:
    """The module from which the source imports `name`, as `numpy:dot`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return f"{node.module}:{alias.name}"
    return None


def replace(tree: ast.Module, module: str, places: dict[str, str], option: str) -> None:
    """Decorate the definitions of `tree` that `places` maps from their path to their place.

    The name of a class selects its constructor. Raises `UsageError` if there is no such function.
    """
    found: dict[str, list[_Definition]] = {}
    for path, node in _definitions(tree.body):
        found.setdefault(path, []).append(node)
    for path, place in places.items():
        nodes = found.get(path)
        if nodes is None:
            raise UsageError(f"{option} {place}: {_missing(tree, module, path, list(found))}")
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                inits = [
                    inner
                    for inner in node.body
                    if isinstance(inner, ast.FunctionDef) and inner.name == "__init__"
                ]
                if not inits:
                    raise UsageError(
                        f"{option} {place}: expected a function, got a class without __init__"
                    )
                node = inits[-1]
            if isinstance(node, ast.AsyncFunctionDef) or _yields(node):
                raise UsageError(
                    f"{option} {place}: expected a function, got a generator or coroutine at line "
                    f"{node.lineno}: its call only begins the work"
                )
            _decorate(node, place)


def _missing(tree: ast.Module, module: str, path: str, known: list[str]) -> str:
    origin = _origin(tree, path)
    if origin is not None:
        return f"{module} imports it, expected the place of its definition: {origin}"
    close = similar(path, known, 3)
    hint = f"; close to it are {', '.join(close)}" if close else ""
    return f"no function {path} is defined in {module}{hint}"


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods that can be sampled: no generators, no nested functions."""
    pending: list[tuple[str, _Definition]] = list(_definitions(tree.body))
    inside = {id(inner) for _, node in pending if not isinstance(node, ast.ClassDef)
              for inner in ast.walk(node) if inner is not node}  # fmt: skip
    for path, node in pending:
        if not isinstance(node, ast.FunctionDef) or id(node) in inside or _yields(node):
            continue
        yield path, node
