"""Compiled code that calls an MPI library itself: each rank gets a copy, or it is refused.

Such code (h5py built with MPI, petsc4py, a user's own extension) would start a real MPI with a
single process. It is detected before it is loaded, from the libraries that its file needs, directly
or through other libraries. `pysmpi/abi` loads copies, in which pysmpi's library takes the place of
the MPI library, if that has MPICH's binary interface. Packages that look for the loaded MPI library
at run time, and then call it from compiled functions, are known by name.
"""

from __future__ import annotations

import importlib
import mmap
import os
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType
from typing import Any, NamedTuple

from pysmpi.errors import UsageError
from pysmpi.isolation.assumptions import KNOWN_SHARED
from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.loading.imports import ImportSystem
from pysmpi.isolation.loading.needed_libraries import (
    MPI_LIBRARY,
    SYSTEM,
    chain_to_mpi,
    located,
    opens_libraries,
)
from pysmpi.isolation.loading.opened_mpi import OpenedLibraries
from pysmpi.isolation.loading.registered import Registered
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.python.frames import current_site

# Packages that call the MPI library which mpi4py has loaded, and their alternatives.
_CALLERS = {
    "numba_mpi": "call mpi4py outside of compiled functions",
}

_LARGER = r"mpi4py\.MPI\.\w+ size changed"
_SHOWN = "libmpi.so.12"  # the name of a file; a rank that loads it gets pysmpi's library
_shown: list[mmap.mmap] = []


class ImportsMPI(UsageError, ImportError):
    """A program imports compiled code that calls an MPI library."""


class LoadsMPI(UsageError, OSError):
    """A program loads a library that calls an MPI library, or is one."""


class CannotCopy(Exception):
    """Ranks cannot have copies of a library; the text says why."""


class Copier(NamedTuple):
    """Gives ranks libraries that call MPI, see `pysmpi/abi`."""

    copy_for_rank: Callable[[str], str]  # loads the rank's copy of a file, and returns its path
    library: str  # the file of pysmpi's own MPI library


_copiers: list[Copier] = []


def copy_of_rank(path: str, what: str, kind: type[UsageError]) -> str | None:
    """The rank's copy of a file that needs an MPI library; None if the file needs none.

    Raises an error of a kind if ranks cannot have copies.
    """
    if here() is None:
        return None
    if re.match(MPI_LIBRARY, os.path.basename(path)):
        chain: tuple[str, ...] | None = (os.path.basename(path),)
    else:
        chain = chain_to_mpi(path)
    if chain is None:
        if not _copiers or kind is not ImportsMPI or not beside_mpi(path):
            return None
        why = "another module of its package needs MPI"
    elif not chain:
        why = "it calls functions of MPI"
    elif chain[0] == os.path.basename(path):
        why = "it is an MPI library"
    else:
        why = f"it is linked with {' -> '.join(chain)}"
    if _copiers:
        try:
            return _copiers[-1].copy_for_rank(path)
        except CannotCopy as error:
            why = f"{why}, and {error}"
    site = current_site()
    where = f" at {site}" if site is not None else ""
    raise kind(
        f"{what}{where}, cannot be simulated: {why}; use a build for MPICH or Open MPI, or "
        f"without MPI, or leave it out under pysmpi ({path})"
    )


def show_library(name: str) -> None:
    """Let a package that looks for MPI among the mappings of the process find a library there."""
    if name not in _CALLERS or here() is None:
        return
    if not _copiers:
        site = current_site()
        where = f" at {site}" if site is not None else ""
        raise ImportsMPI(
            f"package {name}, imported{where}, cannot be simulated: its compiled functions call "
            f"the MPI library of mpi4py, and a real MPI knows nothing of simulated ranks; "
            f"{_CALLERS[name]}, or leave it out under pysmpi"
        )
    if not _shown:
        from tempfile import TemporaryDirectory  # loads compression, too

        with TemporaryDirectory() as folder, open(os.path.join(folder, _SHOWN), "w+b") as stream:
            stream.truncate(mmap.PAGESIZE)
            _shown.append(mmap.mmap(stream.fileno(), 0))


def install(
    patches: Patches, imports: ImportSystem, copier: Copier | None = None
) -> dict[str, Callable[[Patches, ModuleType], object]]:
    """Give ranks copies of compiled code that calls MPI until the patches are undone.

    Without a `copier`, such code is refused. Returns the functions to call with loaded modules.
    """
    if copier is not None:
        _copiers.append(copier)
        patches.call_back(_copiers.pop)
        imports.is_own = _is_own
        imports.own_registries = Registered(imports.exchange).of_rank
    imports.announce.append(show_library)
    opened = OpenedLibraries(imports.exchange, MPI_LIBRARY)
    # What is loaded at the end of a rank has been opened by it.
    imports.at_end.append(opened.look)
    machinery: Any = importlib.import_module("_imp")
    real = machinery.create_dynamic

    def create_dynamic(spec: Any, file: Any = None, /) -> object:
        if spec.origin is not None:
            path = copy_of_rank(spec.origin, f"module {spec.name}, imported", ImportsMPI)
            if path is not None:
                return _load_copy(real, spec, path)
            if spec.name.partition(".")[0] not in KNOWN_SHARED | sys.stdlib_module_names:
                _arm(opened, spec.origin)
        return real(spec) if file is None else real(spec, file)

    patches.set(machinery, "create_dynamic", like(real, create_dynamic))
    return {
        "ctypes": partial(_patch_ctypes, opened=opened),
        "cffi.api": partial(_patch_cffi, opened=opened),
        "mpi4py._mpiabi": partial(_patch_mpiabi, opened=opened),
    }


def _is_own(path: str) -> bool:
    """Whether each rank loads an extension module for itself."""
    return here() is not None and (chain_to_mpi(path) is not None or beside_mpi(path))


def beside_mpi(path: str) -> bool:
    """Whether an extension module is in a package of which another one needs MPI.

    Extension modules of a package know the classes of each other, so a rank has all or none.
    """
    first = folder = os.path.dirname(path)
    top = None
    while os.path.exists(os.path.join(folder, "__init__.py")):
        top, folder = folder, os.path.dirname(folder)
    name = os.path.basename(top or "")
    if top is None or name == "mpi4py":
        return False
    # Large packages that rarely are built with MPI: only the modules beside this one.
    return _contains_mpi(first, False) if name in KNOWN_SHARED else _contains_mpi(top, True)


@cache
def _contains_mpi(folder: str, below: bool) -> bool:
    """Whether an extension module in a folder, or also below it, needs MPI."""
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(tuple(EXTENSION_SUFFIXES)):
                if chain_to_mpi(os.path.join(place, name)) is not None:
                    return True
        if not below:
            break
    return False


def _load_copy(real: Callable[..., object], spec: Any, path: str) -> object:
    """Create an extension module from the rank's copy of its file."""
    # Handles are larger than those of mpi4py, and begin in the same way.
    filters = warnings.filters
    if not any(each[1] is not None and each[1].pattern == _LARGER for each in filters):
        warnings.filterwarnings("ignore", _LARGER, RuntimeWarning)
    origin = spec.origin
    spec.origin = path
    flags = sys.getdlopenflags()
    # Global symbols of one rank's libraries would serve those of the others.
    sys.setdlopenflags(flags & ~os.RTLD_GLOBAL)
    try:
        module: Any = real(spec)
    finally:
        sys.setdlopenflags(flags)
        spec.origin = origin
    if getattr(module, "__file__", None) == path:
        module.__file__ = origin
    return module


def _arm(opened: OpenedLibraries, path: str) -> None:
    if not opened.armed and here() is not None and opens_libraries(path):
        opened.arm()


_searches: list[None] = []  # of mpi4py for the library of its compiled module; it calls none


def _patch_mpiabi(patches: Patches, module: ModuleType, opened: OpenedLibraries) -> None:
    real = module._dlopen_libmpi

    def _dlopen_libmpi(libmpi: object = None) -> object:
        _searches.append(None)
        try:
            return real(libmpi)
        finally:
            _searches.pop()
            opened.begin()

    patches.set(module, "_dlopen_libmpi", like(real, _dlopen_libmpi))


def _patch_ctypes(patches: Patches, module: ModuleType, opened: OpenedLibraries) -> None:
    real = module._dlopen
    kind = module.CDLL
    real_get = kind.__getitem__

    def __getitem__(self: Any, name_or_ordinal: Any) -> object:
        if name_or_ordinal in ("dlopen", "dlmopen") and here() is not None:
            opened.arm()
        return real_get(self, name_or_ordinal)

    patches.set(kind, "__getitem__", like(real_get, __getitem__))

    def dlopen(name: object, mode: int = 0) -> object:
        if not _searches:
            path = _look(name, mode, module.RTLD_GLOBAL, "ctypes", opened)
            if path is not None:  # its functions are for the rank alone
                return real(path, mode & ~module.RTLD_GLOBAL)
        handle = real(name, mode)
        if _names_mpi(name):
            opened.begin()
        return handle

    patches.set(module, "_dlopen", like(real, dlopen))


def _patch_cffi(patches: Patches, module: ModuleType, opened: OpenedLibraries) -> None:
    real = module._load_backend_lib

    def _load_backend_lib(backend: object, name: Any, flags: Any) -> object:
        everybody = getattr(os, "RTLD_GLOBAL", 0)
        path = _look(name, flags or 0, everybody, "cffi", opened)
        if path is not None:
            return real(backend, path, (flags or 0) & ~everybody)
        library = real(backend, name, flags)
        if name is None or not isinstance(name, str) or re.match(SYSTEM, os.path.basename(name)):
            if here() is not None:
                opened.arm()
        if _names_mpi(name):
            opened.begin()
        return library

    patches.set(module, "_load_backend_lib", like(real, _load_backend_lib))


def _names_mpi(name: object) -> bool:
    if not isinstance(name, (str, bytes, os.PathLike)):
        return False
    return re.match(MPI_LIBRARY, os.path.basename(os.fsdecode(name))) is not None


def _look(name: object, mode: int, everybody: int, how: str, opened: OpenedLibraries) -> str | None:
    """Look at a library that a program loads by its name; the path of the rank's copy, if any."""
    if here() is None or not isinstance(name, (str, bytes, os.PathLike)):
        return None
    path = os.fsdecode(name)
    if _copiers and path == _copiers[-1].library:  # `MPI.__file__`
        return _copiers[-1].copy_for_rank(path)
    if re.match(MPI_LIBRARY, os.path.basename(path)):
        # Global symbols are for other libraries; these are detected when they are loaded.
        if everybody and mode & everybody:
            try:
                return _copiers[-1].copy_for_rank(path) if _copiers else None
            except CannotCopy:
                return None
    elif os.sep not in path:
        path = located(path, (), "") or path
    what = f"library {os.path.basename(path)}, loaded by {how}"
    copy = copy_of_rank(path, what, LoadsMPI)
    if copy is None and not re.match(SYSTEM, os.path.basename(path)):
        _arm(opened, path)
    return copy
