"""The directories of Python and of installed packages."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES

from pysmpi.version import HOME


def directories(paths: Iterable[str | None]) -> tuple[str, ...]:
    """Directories as prefixes of the names of their files, with links and without."""
    result: dict[str, None] = {}
    for path in paths:
        if path:
            result[os.path.join(os.path.abspath(path), "")] = None
            result[os.path.join(os.path.realpath(path), "")] = None
    return tuple(result)


def site_directories() -> tuple[str, ...]:
    """The directories of installed packages."""
    found = list(getattr(site, "getsitepackages", list)())
    if hasattr(site, "getusersitepackages"):
        found.append(site.getusersitepackages())
    # Those of a distribution, and those that PYTHONPATH adds, as modules of clusters do.
    others = [path for path in sys.path if path.endswith(("dist-packages", "site-packages"))]
    return directories([*found, *others])


def standard_directories() -> tuple[str, ...]:
    """The directories of the standard library."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    compiled = os.path.join(sys.base_exec_prefix, sys.platlibdir, version)
    return directories([os.path.dirname(os.__file__), compiled])


@cache
def _all() -> tuple[str, ...]:
    return site_directories() + standard_directories() + directories([HOME])


def installed(path: str) -> bool:
    """Whether the file `path` belongs to Python, to a site directory or to pysmpi."""
    if not os.path.isabs(path):
        path = os.path.abspath(path)
    return path.startswith(_all())


def package(path: str) -> str:
    """The name of the package, or the module, that has the file `path`."""
    own = os.path.splitext(os.path.basename(path))[0]
    for places in _standard()[::-1]:  # site directories are within those of the standard library
        for place in places:
            if path.startswith(place):
                return path[len(place) :].split(os.sep)[0].removesuffix(".py")
    return own


@cache
def _standard() -> tuple[tuple[str, ...], tuple[str, ...]]:
    return standard_directories(), site_directories()


def standard(path: str) -> bool:
    """Whether the file `path` belongs to the standard library."""
    inside, outside = _standard()
    return path.startswith("<frozen") or (path.startswith(inside) and not path.startswith(outside))


def environment() -> dict[str, str]:
    """The environment of a process that imports this pysmpi, whatever its directory."""
    place, further = os.path.dirname(HOME), os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{place}{os.pathsep}{further}" if further else place}


def cache_directory() -> str:
    """The directory of pysmpi in the user's cache directory; it need not exist."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(os.path.join("~", ".cache"))
    return os.path.join(root, "pysmpi")


def compiled_elsewhere() -> str | None:
    """The directory of another pysmpi of this Python whose kernel is compiled, if there is one.

    A clone as the current directory hides the installed package from `python -m pysmpi`.
    """
    for directory in site_directories():
        package = os.path.join(directory, "pysmpi")
        kernel = os.path.join(package, "kernel", "engine" + EXTENSION_SUFFIXES[0])
        if os.path.exists(kernel) and os.path.realpath(package) != os.path.realpath(HOME):
            return package
    return None
