"""Which modules every rank loads for itself, and which are loaded once for all.

Private are the modules of the program: whatever is neither pysmpi, nor the standard library, nor
installed in a site directory. A package in a site directory is private when it imports mpi4py
while it loads, since then it may keep what it learnt about its rank (found out by
`private.py`, as it happens). Extension modules are shared whatever their package is: an
interpreter holds one copy of them.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from importlib.machinery import BuiltinImporter, ExtensionFileLoader, FrozenImporter
from typing import Any

import pysmpi

# Of mpi4py itself, all is shared but what holds the state of one process.
MPI4PY_PRIVATE = (
    "mpi4py.MPI",
    "mpi4py.futures",
    "mpi4py.util.pool",
    "mpi4py.run",
    "mpi4py.bench",
    "mpi4py.__main__",
)


def _directories(paths: Iterable[str | None]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for path in paths:
        if path:
            found[os.path.join(os.path.abspath(path), "")] = None
            found[os.path.join(os.path.realpath(path), "")] = None
    return tuple(found)


def _site_directories() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    extra = list(getattr(site, "getsitepackages", list)())
    if hasattr(site, "getusersitepackages"):
        extra.append(site.getusersitepackages())
    distribution = [path for path in sys.path if path.endswith("dist-packages")]
    return _directories([paths["purelib"], paths["platlib"], *extra, *distribution])


def _standard_directories() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return _directories([paths["stdlib"], paths["platstdlib"], os.path.dirname(os.__file__)])


class Rules:
    """Decides about modules by name and origin.

    `private` and `shared` name modules or packages (with all that is in them) that the user
    decided about; the longest name that fits counts.
    """

    def __init__(self, private: Iterable[str] = (), shared: Iterable[str] = ()) -> None:
        self.ordered: dict[str, bool] = {name: True for name in private}
        self.ordered.update({name: False for name in shared})
        self.found: dict[str, bool] = {"pysmpi": False, "mpi4py": False}
        self.found.update({name: True for name in MPI4PY_PRIVATE})
        self.site = _site_directories()
        self.standard = _standard_directories()
        self.own = _directories([os.path.dirname(pysmpi.__file__)])

    def by_name(self, name: str) -> bool | None:
        """Whether module `name` is private, as far as its name tells."""
        if name == "__main__":
            return True
        for table in (self.ordered, self.found):
            if table:
                prefix = name
                while prefix:
                    verdict = table.get(prefix)
                    if verdict is not None:
                        return verdict
                    prefix = prefix.rpartition(".")[0]
        return None

    def knows_rank(self, name: str) -> bool:
        """Whether module `name` is mpi4py, or found out to import it."""
        if name.partition(".")[0] == "mpi4py":
            return True
        found = self.found
        while name:
            if found.get(name):
                return True
            name = name.rpartition(".")[0]
        return False

    def by_origin(self, spec: Any) -> bool:
        """Whether the module that `spec` describes is private, as far as its origin tells."""
        if spec.loader in (BuiltinImporter, FrozenImporter) or spec.origin in (
            "built-in",
            "frozen",
        ):
            return False
        places: list[str] = []
        if spec.origin is not None:
            places.append(spec.origin)
        elif spec.submodule_search_locations is not None:
            places.extend(spec.submodule_search_locations)
        return any(not self.installed(place) for place in places)

    def installed(self, path: str) -> bool:
        """Whether the file `path` belongs to Python, to a site directory or to pysmpi."""
        if not os.path.isabs(path):
            path = os.path.abspath(path)
        return path.startswith(self.site + self.standard + self.own)

    def decide(self, name: str, spec: Any) -> bool:
        """Whether the module that was found as `spec` is private."""
        verdict = self.by_name(name)
        return self.by_origin(spec) if verdict is None else verdict

    def already_loaded(self, name: str, module: Any) -> bool:
        """Whether a module that the caller of a run has loaded would be private in it."""
        verdict = self.by_name(name)
        if verdict is not None:
            return verdict
        spec = getattr(module, "__spec__", None)
        if spec is not None:
            return not is_extension(spec) and self.by_origin(spec)
        file = getattr(module, "__file__", None)
        return isinstance(file, str) and not self.installed(file)


def is_extension(spec: Any) -> bool:
    """Whether `spec` describes a compiled module."""
    return isinstance(spec.loader, ExtensionFileLoader)
