"""The modules that every rank loads for itself, and those that are loaded once for all.

| module | |
| --- | --- |
| named by `--private`, `--shared`, or the program itself | as named |
| of the standard library, of pysmpi except its plugin of pytest | shared |
| of a shared package's tests, or one that imports a tool that runs tests | private |
| of a known package of numbers, tables or plots, or of one that these need | shared, unless it was built with MPI |
| of a package with extension modules | shared, unless it knows MPI |
| imported by a shared module first | shared, unless it knows MPI |
| of any other package | private |

A package keeps state of a process in its globals: its rank, its loggers, its progress bars. It is
therefore private if this is possible and affordable. Extension modules are shared, because an
interpreter holds one copy of them, but those that call MPI: each rank loads a copy of their file. A
package knows MPI if an extension module of it calls MPI, or if it imports mpi4py anywhere in its
source, calls methods of communicators, or imports a package that does. The names and patterns,
and the reasons for them, are in `assumptions.py`.
"""  # noqa: E501

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    BuiltinImporter,
    ExtensionFileLoader,
    FrozenImporter,
    PathFinder,
)
from types import ModuleType
from typing import Any, TypeAlias
from weakref import ref

from pysmpi.isolation.assumptions import (
    BUILT_WITH_MPI,
    CALLS_MPI,
    KNOWN_PRIVATE,
    KNOWN_SHARED,
    STATEMENT,
)
from pysmpi.isolation.loading.needed_libraries import chain_to_mpi
from pysmpi.python.installed import directories, site_directories, standard_directories
from pysmpi.version import HOME

_ALWAYS = ("pysmpi", "mpi4py")  # packages that are there in any run
# All of mpi4py is shared, except the modules with the state of one process.
MPI4PY_PRIVATE = (
    "mpi4py.MPI",
    "mpi4py.futures",
    "mpi4py.util.pool",
    "mpi4py.run",
    "mpi4py.bench",
    "mpi4py.__main__",
)

_TEST_PARTS = frozenset(("tests", "test", "_tests", "testsuite", "conftest"))
_TESTS = frozenset(("tests", "test", "testing", "__pycache__", "examples", "docs"))


# Of loaded modules in earlier runs, by name: the module, what decided, and whether it was private.
_Decisions: TypeAlias = dict[str, tuple[ref[ModuleType], object, object, bool]]
_decisions: dict[tuple[object, ...], _Decisions] = {}  # with the rules of the latest run


class Rules:
    """Decides about modules by name and origin.

    `private` and `shared` name modules or packages (with all their members) for which the user
    decided; the longest matching name counts.
    """

    def __init__(self, private: Iterable[str] = (), shared: Iterable[str] = ()) -> None:
        self.ordered: dict[str, bool] = {name: True for name in private}
        self.ordered.update({name: False for name in shared})
        self.found: dict[str, bool] = dict.fromkeys(_ALWAYS, False)
        # The plugin has fixtures and exceptions of the pytest that loads it.
        self.found["pysmpi.pytest_plugin"] = True
        self.found.update({name: True for name in MPI4PY_PRIVATE})
        self.site = site_directories()
        self.standard = standard_directories()
        self.own = directories([HOME])
        self.kinds: dict[str, bool] = {}  # whether packages are private, if known
        self._knowing: dict[str, bool] = {}  # whether packages know MPI

    def by_name(self, name: str) -> bool | None:
        """Whether module `name` is private, if its name decides."""
        if name == "__main__":
            return True
        for table in (self.ordered, self.found):
            if table and (table is self.ordered or name.startswith(_ALWAYS)):
                prefix = name
                while prefix:
                    private = table.get(prefix)
                    if private is not None:
                        return private
                    prefix = prefix.rpartition(".")[0]
        return None

    def by_origin(self, name: str, spec: Any, shared: bool = False, tools: bool = True) -> bool:
        """Whether module `name` with specification `spec` is private, by its kind.

        `shared` is true if a shared module imports it, `tools` if it may have imported a tool that
        runs tests.
        """
        if spec.loader in (BuiltinImporter, FrozenImporter) or spec.origin in (
            "built-in",
            "frozen",
        ):
            return False
        places = _places(spec)
        if not places and spec.loader is not None:
            # An import hook made it: it is of the kind of the hook.
            hook = spec.loader if isinstance(spec.loader, type) else type(spec.loader)
            owner = hook.__module__.partition(".")[0]
            return self.by_name(hook.__module__) or self.kinds.get(owner, False)
        if places and all(place.startswith(self.own) for place in places):
            return False
        if places and all(self._is_standard(place) for place in places):
            return False
        root = name.partition(".")[0]
        if root in KNOWN_PRIVATE:
            return True
        kind = self.kinds.get(root)
        if kind is None and root in KNOWN_SHARED:
            kind = root in BUILT_WITH_MPI and _calls_mpi(_tree(spec, places))
            self.kinds[root] = kind
        if kind is None:
            kind = self._kind(root, name, spec, places, shared)
        return kind or _is_of_tests(name, spec, tools)

    def _kind(self, root: str, name: str, spec: Any, places: list[str], shared: bool) -> bool:
        """Whether package `root` is private, by its files."""
        if name == root and spec.origin in (None, "namespace"):
            # The parts of a namespace package may be of any kind; the package itself has no state.
            return not all(self.installed(place) for place in places)
        if name != root:
            # A namespace package: each of its parts is a separate package.
            root = ".".join(name.split(".")[:2])
            if root in self.kinds:
                return self.kinds[root]
        tree = _tree(spec, places)
        may_be_shared = shared and self.installed(tree) or _is_compiled(tree)
        self.kinds[root] = private = (
            not may_be_shared or self._knows(root, tree) or _calls_mpi(tree)
        )
        return private

    def _knows(self, root: str, tree: str | None = None) -> bool:
        """Whether a package knows MPI, itself or through its imports."""
        result = self._knowing.get(root)
        if result is not None:
            return result
        self._knowing[root] = False  # where packages import each other in a circle
        if root in sys.stdlib_module_names or root in KNOWN_SHARED:
            return False
        if tree is None:
            try:
                spec = PathFinder.find_spec(root)
            except (ImportError, AttributeError, ValueError):
                spec = None
            places = [] if spec is None else _places(spec)
            if not places:
                return False
            tree = _tree(spec, places)
        knows, imports = _examine(tree)
        knows = knows or root == "mpi4py" or any(self._knows(name) for name in imports - {root})
        self._knowing[root] = knows
        return knows

    def _is_standard(self, path: str) -> bool:
        return path.startswith(self.standard) and not path.startswith(self.site)

    def installed(self, path: str) -> bool:
        """Whether the file `path` belongs to Python, to a site directory or to pysmpi."""
        if not os.path.isabs(path):
            path = os.path.abspath(path)
        return path.startswith(self.site + self.standard + self.own)

    def decide(self, name: str, spec: object, shared: bool = False) -> bool:
        """Whether the module with specification `spec` is private.

        `shared` is true if a shared module imports it.
        """
        private = self.by_name(name)
        return self.by_origin(name, spec, shared) if private is None else private

    def private_of(self, table: dict[str, Any]) -> dict[str, Any]:
        """The modules of `table`, loaded by the caller of a run, that would be private in it."""
        # If no tool that runs tests is loaded, no module has its objects.
        tools = not KNOWN_PRIVATE.isdisjoint(table)
        rules = tools, self.site, self.own, tuple(self.ordered.items())
        if rules not in _decisions:
            _decisions.clear()
        decisions = _decisions.setdefault(rules, {})
        unknown = (lambda: None), None, None, False
        result: dict[str, Any] = {}
        for name, module in list(table.items()):
            if type(module) is ModuleType:
                space = module.__dict__
                spec, file = space.get("__spec__"), space.get("__file__")
                decided, spec_then, file_then, private = decisions.get(name, unknown)
                if not (spec_then is spec and file_then is file and decided() is module):
                    private = self._loaded(name, spec, file, tools)
                    decisions[name] = ref(module), spec, file, private
            else:
                spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None)
                private = self._loaded(name, spec, file, tools)
            if private:
                result[name] = module
        return result

    def _loaded(self, name: str, spec: Any, file: object, tools: bool) -> bool:
        private = self.by_name(name)
        if private is not None:
            return private
        if spec is None:
            return isinstance(file, str) and not self.installed(file)
        return not is_extension(spec) and self.by_origin(name, spec, tools=tools)


def _places(spec: Any) -> list[str]:
    """The files or directories of a module."""
    if spec.origin is not None and spec.origin != "namespace":
        paths = [spec.origin]
    else:
        paths = list(spec.submodule_search_locations or ())
    return [place if os.path.isabs(place) else os.path.abspath(place) for place in paths]


def _is_of_tests(name: str, spec: Any, tools: bool) -> bool:
    """Whether a module of a shared package belongs to its tests, and so to the tool that runs them.

    It holds objects of the tool of its rank: marks, fixtures, settings.
    """
    if not _TEST_PARTS.isdisjoint(name.split(".")[1:]):
        return True
    if not tools or spec.origin is None or not spec.origin.endswith(".py"):
        return False
    try:
        with open(spec.origin, "rb") as stream:
            source = stream.read()
    except OSError:
        return False
    named = b"pytest" in source or b"hypothesis" in source or b"nose" in source
    return named and not KNOWN_PRIVATE.isdisjoint(_imported(source))


def _sources(tree: str) -> Iterator[str]:
    """The files of a module or package."""
    if not os.path.isdir(tree):
        yield tree
        return
    for directory, inner, files in os.walk(tree):
        inner[:] = [name for name in inner if name not in _TESTS]
        for file in files:
            yield os.path.join(directory, file)


def _tree(spec: Any, places: list[str]) -> str:
    """The directory of a package, or the file of a module."""
    inner = spec.submodule_search_locations
    return str(inner[0]) if inner else places[0]


def _is_compiled(tree: str) -> bool:
    """Whether a package has extension modules."""
    suffixes = tuple(EXTENSION_SUFFIXES)
    return any(path.endswith(suffixes) for path in _sources(tree))


def _calls_mpi(tree: str) -> bool:
    """Whether an extension module of a package calls MPI."""
    suffixes = tuple(EXTENSION_SUFFIXES)
    return any(
        path.endswith(suffixes) and chain_to_mpi(path) is not None for path in _sources(tree)
    )


def _examine(tree: str) -> tuple[bool, set[str]]:
    """Whether the Python code of a package calls MPI, and the packages that it imports."""
    imports: set[str] = set()
    for path in _sources(tree):
        if path.endswith(".py"):
            try:
                with open(path, "rb") as stream:
                    source = stream.read()
            except OSError:
                continue
            if re.search(CALLS_MPI, source):
                return True, imports
            imports.update(_imported(source))
    return False, imports


def _imported(source: bytes) -> set[str]:
    """The packages that a source imports outside of its functions and classes."""
    result: set[str] = set()
    inside = False
    for match in re.finditer(STATEMENT, source):
        indented, name, keyword = match.groups()
        if not indented:
            inside = keyword in (b"def", b"class", b"async", b"@")
        if name is not None and not inside:
            result.add(name.decode())
    return result


def is_extension(spec: Any) -> bool:
    """Whether `spec` describes a compiled module."""
    return isinstance(spec.loader, ExtensionFileLoader)
