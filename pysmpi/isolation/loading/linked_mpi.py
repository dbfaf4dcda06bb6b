"""Compiled code that calls an MPI library itself; it cannot be simulated.

Such code (h5py built with MPI, petsc4py, a user's own extension) would start a real MPI with a
single process. It is detected before it is loaded, from the libraries that its file needs, directly
or through other libraries. Only ELF files are read (Linux and most Unix). Packages that look for
the loaded MPI library at run time, and then call it from compiled functions, are known by name.
"""

from __future__ import annotations

import importlib
import mmap
import os
import re
import struct
import sys
from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Any, NamedTuple

from pysmpi.errors import UsageError
from pysmpi.isolation.assumptions import KNOWN_SHARED
from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.loading.imports import ImportSystem
from pysmpi.isolation.loading.opened_mpi import OpenedLibraries
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.python.frames import current_site

# libmpi.so.40, libmpi_cxx.so, libmpi_mpifh.so.40, libmpich.so.12, libmpifort.so.12, libmpi_gnu.so
_MPI = r"lib(mpi|mpi_\w+|mpich\w*|mpifort\w*|mpicxx\w*|pmpi\w*|mpi_abi)\.(so|dylib)\b"
_NEEDED, _STRTAB, _SYMTAB, _STRSZ, _RPATH, _RUNPATH = 1, 5, 6, 10, 15, 29
_LOAD, _DYNAMIC = 1, 2
_OPENING = (b"dlopen", b"dlmopen")
# Libraries of the system that open others, but none that a program names.
_SYSTEM = re.compile(r"(libc|libdl|libpthread|libm|libstdc\+\+|libgcc_s|libpython[\d.]*|ld-.*)\.so")
_DEEPEST = 8  # libraries in a chain
# Packages that call the MPI library which mpi4py has loaded, and their alternatives.
_CALLERS = {
    "numba_mpi": "call mpi4py outside of compiled functions",
}
_USUAL = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")


class ImportsMPI(UsageError, ImportError):
    """A program imports compiled code that calls an MPI library."""


class LoadsMPI(UsageError, OSError):
    """A program loads a library that calls an MPI library, or is one."""


class _File(NamedTuple):
    """The header of a shared library."""

    needed: tuple[str, ...]
    paths: tuple[str, ...]  # the directories that it searches first
    lacks_mpi: bool  # whether it calls functions of MPI that it does not define
    defines_mpi: bool  # whether it defines some, as serial stubs of MPI do
    opens: bool  # whether it calls dlopen


@cache
def _read(path: str, symbols: bool) -> _File | None:
    """Read a file, optionally with its symbols; None if it is not a suitable shared library."""
    try:
        with (
            open(path, "rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return _parse(data, symbols)
    except (OSError, ValueError, struct.error, IndexError):
        return None


def _parse(data: Any, symbols: bool) -> _File | None:
    if data[:5] != b"\x7fELF\x02":
        return None
    order = "<" if data[5] == 1 else ">"
    (offset,) = struct.unpack_from(order + "Q", data, 32)
    size, count = struct.unpack_from(order + "HH", data, 54)
    segments = [
        struct.unpack_from(order + "IIQQQQQQ", data, offset + i * size) for i in range(count)
    ]

    def place(address: int) -> int:
        for kind, _, start, virtual, _, length, _, _ in segments:
            if kind == _LOAD and virtual <= address < virtual + length:
                return int(start + address - virtual)
        raise ValueError(address)

    needed: list[int] = []
    paths: list[int] = []
    tables: dict[int, int] = {}
    for kind, _, start, _, _, length, _, _ in segments:
        if kind != _DYNAMIC:
            continue
        for tag, value in struct.iter_unpack(order + "QQ", data[start : start + length]):
            if tag == 0:
                break
            if tag == _NEEDED:
                needed.append(value)
            elif tag in (_RPATH, _RUNPATH):
                paths.append(value)
            else:
                tables[tag] = value
    if _STRTAB not in tables:
        return None
    begin = place(tables[_STRTAB])
    end = begin + tables.get(_STRSZ, 0)

    def text(index: int) -> str:
        return os.fsdecode(data[begin + index : data.find(b"\0", begin + index)])

    lacks = defines = False
    if symbols and _SYMTAB in tables and data.find(b"\0MPI_", begin, end) >= 0:
        # The table of symbols ends at the beginning of their names.
        first = place(tables[_SYMTAB])
        for name, _, _, section, _, _ in struct.iter_unpack(
            order + "IBBHQQ", data[first : first + (begin - first) // 24 * 24]
        ):
            if data[begin + name : begin + name + 4] == b"MPI_":
                lacks = lacks or section == 0
                defines = defines or section != 0
    found = [part for index in paths for part in text(index).split(":") if part]
    opens = _SYMTAB in tables and any(
        _calls(data, order, (place(tables[_SYMTAB]), begin), (begin, end), name)
        for name in _OPENING
    )
    return _File(tuple(map(text, needed)), tuple(found), lacks, defines, opens)


def _calls(
    data: Any, order: str, symbols: tuple[int, int], names: tuple[int, int], name: bytes
) -> bool:
    """Whether a file refers to a function of another library."""
    at = data.find(b"\0" + name + b"\0", *names)
    if at < 0:
        return False
    entry = struct.pack(order + "I", at + 1 - names[0])
    first, last = symbols
    while (first := data.find(entry, first, last)) >= 0:
        if (first - symbols[0]) % 24 == 0:
            return bool(struct.unpack_from(order + "IBBH", data, first)[3] == 0)
        first += 1
    return False


def located(name: str, paths: tuple[str, ...], origin: str) -> str | None:
    """The file of a library that one in the directory `origin` needs."""
    multiarch = getattr(sys.implementation, "_multiarch", "")
    places = [path.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for path in paths]
    places += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    places += [os.path.join(sys.prefix, "lib"), f"/lib/{multiarch}", f"/usr/lib/{multiarch}"]
    for place in (*places, *_USUAL):
        path = os.path.join(place, name)
        if place and os.path.isfile(path):
            return os.path.realpath(path)
    return None


def chain_to_mpi(path: str) -> tuple[str, ...] | None:
    """The libraries through which a compiled file needs MPI, MPI's own last; None if it does not.

    The chain is empty for a file that calls functions of MPI without naming a library.
    """
    return _chain(os.path.realpath(path))[0]


def opens_libraries(path: str) -> bool:
    """Whether a compiled file, or a library that it needs, can open libraries."""
    return _chain(os.path.realpath(path))[1]


@cache
def _chain(path: str) -> tuple[tuple[str, ...] | None, bool]:
    first = _read(path, True)
    if first is None:
        return None, False
    opens = first.opens
    seen = {path}
    pending: list[tuple[_File, str, tuple[str, ...], tuple[str, ...]]]
    pending = [(first, os.path.dirname(path), (), first.paths)]
    defined = False
    while pending:
        file, origin, chain, inherited = pending.pop(0)
        for name in file.needed:
            if re.match(_MPI, os.path.basename(name)):
                return (*chain, name), opens
            found = located(name, inherited, origin)
            if found is None or _SYSTEM.match(os.path.basename(found)):
                continue
            if found in seen or len(chain) == _DEEPEST:
                continue
            seen.add(found)
            further = _read(found, first.lacks_mpi)
            if further is not None:
                defined = defined or further.defines_mpi
                opens = opens or further.opens
                paths = (*further.paths, *inherited)
                pending.append((further, os.path.dirname(found), (*chain, name), paths))
    return () if first.lacks_mpi and not defined else None, opens


def refuse(path: str, what: str, kind: type[UsageError]) -> None:
    """Raise an error of a kind if a rank is about to load a file that needs an MPI library."""
    if here() is None:
        return
    if re.match(_MPI, os.path.basename(path)):
        chain: tuple[str, ...] | None = (os.path.basename(path),)
    else:
        chain = chain_to_mpi(path)
    if chain is None:
        return
    site = current_site()
    where = f" at {site}" if site is not None else ""
    if not chain:
        why = "it calls functions of MPI"
    elif chain[0] == os.path.basename(path):
        why = "it is an MPI library"
    else:
        why = f"it is linked with {' -> '.join(chain)}"
    raise kind(
        f"{what}{where}, cannot be simulated: {why}, and a real MPI knows nothing of simulated "
        f"ranks; use a build without MPI, or leave it out under pysmpi ({path})"
    )


def refuse_caller(name: str) -> None:
    """Raise an error if a rank is about to import a package that calls mpi4py's MPI library."""
    if name not in _CALLERS or here() is None:
        return
    site = current_site()
    where = f" at {site}" if site is not None else ""
    raise ImportsMPI(
        f"package {name}, imported{where}, cannot be simulated: its compiled functions call the "
        f"MPI library of mpi4py, and a real MPI knows nothing of simulated ranks; "
        f"{_CALLERS[name]}, or leave it out under pysmpi"
    )


def install(
    patches: Patches, imports: ImportSystem
) -> dict[str, Callable[[Patches, ModuleType], object]]:
    """Refuse compiled code that calls MPI in ranks until the patches are undone.

    Returns the functions to call with loaded modules.
    """
    imports.announce.append(refuse_caller)
    opened = OpenedLibraries(imports.exchange, _MPI)
    # What is loaded at the end of a rank has been opened by it.
    imports.at_end.append(opened.look)
    machinery: Any = importlib.import_module("_imp")
    real = machinery.create_dynamic

    def create_dynamic(spec: Any, file: Any = None, /) -> object:
        if spec.origin is not None:
            refuse(spec.origin, f"module {spec.name}, imported", ImportsMPI)
            if spec.name.partition(".")[0] not in KNOWN_SHARED | sys.stdlib_module_names:
                _arm(opened, spec.origin)
        return real(spec) if file is None else real(spec, file)

    patches.set(machinery, "create_dynamic", like(real, create_dynamic))
    return {
        "ctypes": partial(_patch_ctypes, opened=opened),
        "cffi.api": partial(_patch_cffi, opened=opened),
        "mpi4py._mpiabi": partial(_patch_mpiabi, opened=opened),
    }


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
            _look(name, mode, module.RTLD_GLOBAL, "ctypes", opened)
        handle = real(name, mode)
        if _names_mpi(name):
            opened.begin()
        return handle

    patches.set(module, "_dlopen", like(real, dlopen))


def _patch_cffi(patches: Patches, module: ModuleType, opened: OpenedLibraries) -> None:
    real = module._load_backend_lib

    def _load_backend_lib(backend: object, name: Any, flags: Any) -> object:
        _look(name, flags or 0, getattr(os, "RTLD_GLOBAL", 0), "cffi", opened)
        library = real(backend, name, flags)
        if name is None or not isinstance(name, str) or _SYSTEM.match(os.path.basename(name)):
            if here() is not None:
                opened.arm()
        if _names_mpi(name):
            opened.begin()
        return library

    patches.set(module, "_load_backend_lib", like(real, _load_backend_lib))


def _names_mpi(name: object) -> bool:
    if not isinstance(name, (str, bytes, os.PathLike)):
        return False
    return re.match(_MPI, os.path.basename(os.fsdecode(name))) is not None


def _look(name: object, mode: int, everybody: int, how: str, opened: OpenedLibraries) -> None:
    """Look at a library that a program loads by its name."""
    if here() is None or not isinstance(name, (str, bytes, os.PathLike)):
        return
    path = os.fsdecode(name)
    if re.match(_MPI, os.path.basename(path)):
        # Global symbols are for other libraries; these are detected when they are loaded.
        if everybody and mode & everybody:
            return
    elif os.sep not in path:
        path = located(path, (), "") or path
    refuse(path, f"library {os.path.basename(path)}, loaded by {how}", LoadsMPI)
    if not _SYSTEM.match(os.path.basename(path)):
        _arm(opened, path)
