"""Imports: in one direction only, and at the top of modules."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pysmpi"

# The rooms and modules that may import inside functions, and why.
LATE = {
    "pysmpi": "`pysmpi --version` and annotations of programs load no simulator",
    "pysmpi.__main__": "signals are handled before the rest is loaded",
    "pysmpi.frames": "annotations of plain programs load nothing more",
    "pysmpi.hints": "numpy is needed only for shared arrays",
    "pysmpi.cli": "a command loads what it needs, so help and completion are quick",
    "pysmpi.calibrate": "an MPI library, matplotlib (extra)",
    "pysmpi.trace.formats": "only the format of this run is loaded",
    "pysmpi.collectives.registry": "algorithms are loaded once somebody asks for one",
    "pysmpi.memory.transfer.choice": "models of memory are loaded if a host is described",
    "pysmpi.memory.primitives.steady": "scipy (extra)",
    "pysmpi.platform": "networkx (extra), numpy, and the reader of the format of the file",
    "pysmpi.runtime": "modules of the standard library that few programs need",
    "pysmpi.trace.tables": "pyarrow (extra)",
    "pysmpi.analysis": "the page and its drawings are loaded if they are written",
    "pysmpi.explore": "loaded only in explorations",
    "pysmpi.checkers": "loaded only if asked for",
    "pysmpi.faults": "loaded only if asked for",
    "pysmpi.debugging": "loaded only if asked for",
    "pysmpi.record": "loaded only under a real MPI",
    "pysmpi.replay": "recordings and traces are different readers",
    "pysmpi.pytest_plugin": "pytest loads the plugin in every session",
    "pysmpi.sweeps": "Dask, matplotlib and pyarrow (extras)",
    "pysmpi.api": "loaded if an option asks for it",
}


def modules() -> dict[str, ast.Module]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text())
    return found


MODULES = modules()


def imports(name: str):
    """The modules of pysmpi that a module imports, with whether that is in a function."""

    def walk(node, late):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, late, child.lineno) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and not child.level:
                for alias in child.names:
                    full = f"{child.module}.{alias.name}"
                    yield full if full in MODULES else child.module, late, child.lineno
            inner = late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, inner)

    yield from walk(MODULES[name], False)


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected parts of a graph that have several members."""
    reached = {}

    def reach(start):
        if start not in reached:
            seen, pending = set(), [start]
            while pending:
                for other in graph[pending.pop()]:
                    if other not in seen:
                        seen.add(other)
                        pending.append(other)
            reached[start] = seen
        return reached[start]

    found = {
        frozenset({name} | {other for other in reach(name) if name in reach(other)})
        for name in list(graph)
        if name in reach(name)
    }
    return [set(part) for part in found]


def test_circles_are_found():
    graph = defaultdict(set, a={"b"}, b={"c"}, c={"b"}, d={"a"})
    assert circles(graph) == [{"b", "c"}]


def test_modules_import_each_other_in_one_direction():
    """Imports in functions and for types count, too."""
    graph = defaultdict(set)
    for name in MODULES:
        for other, _, _ in imports(name):
            if other in MODULES and other != name and not name.startswith(f"{other}."):
                graph[name].add(other)
    found = circles(graph)
    assert not found, "\n".join(" ".join(sorted(part)) for part in found)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_in_functions_have_a_reason(name):
    late = [(line, other) for other, inside, line in imports(name) if inside]
    rooms = [one for one in LATE if name.startswith(f"{one}.") and one != "pysmpi"]
    assert not late or name in LATE or rooms, late
