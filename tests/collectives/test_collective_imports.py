"""The modules of collectives import each other in one direction, types and functions included."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pysmpi.collectives

ROOM = Path(pysmpi.collectives.__file__).parent


def imported(path: Path) -> set[str]:
    """The modules of the room that a module imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pysmpi.coll"):
            for alias in node.names:
                for name in (f"{node.module}.{alias.name}", node.module):
                    if is_module(name):
                        found.add(name)
                        break
    return found - {"pysmpi.collectives"}


def is_module(name: str) -> bool:
    path = ROOM.parents[1].joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def test_no_circle() -> None:
    graph = {}
    for path in ROOM.rglob("*.py"):
        parts = path.relative_to(ROOM.parents[1]).with_suffix("").parts
        graph[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = imported(path)
    graph.pop("pysmpi.collectives")
    order = list(TopologicalSorter(graph).static_order())
    assert len(order) > 40
    place = {name: i for i, name in enumerate(order)}
    # The definition of a call does not depend on its algorithms.
    assert graph["pysmpi.collectives.call"] == {"pysmpi.collectives.layout"}
    assert place["pysmpi.collectives.registry"] < place["pysmpi.collectives.selection"]
