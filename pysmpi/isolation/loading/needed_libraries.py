"""The libraries that a compiled file needs, and whether an MPI library is among them.

Only ELF files are read (Linux and most Unix).
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import sys
from functools import cache
from typing import Any, NamedTuple

# libmpi.so.40, libmpi_mpifh.so.40, libmpich.so.12, libmpifort.so.12, libmpi_gnu.so; psm_ names are
# those of `pysmpi cc`. The libraries of C++ are as others that need MPI.
MPI_LIBRARY = (
    r"(lib(mpi|mpi_(?!cxx\b)\w+|mpich(?!cxx\b)\w*|mpifort\w*|pmpi\w*|mpi_abi)\.(so|dylib)\b"
    r"|psm_\w+\.so)"
)
_NEEDED, _STRTAB, _SYMTAB, _STRSZ, _RPATH, _RUNPATH = 1, 5, 6, 10, 15, 29
_LOAD, _DYNAMIC = 1, 2
_OPENING = (b"dlopen", b"dlmopen")
# Libraries of the system that open others, but none that a program names. The patterns are compiled
# at their first use.
SYSTEM = r"(libc|libdl|libpthread|libm|libstdc\+\+|libgcc_s|libpython[\d.]*|ld-.*)\.so"
_PLUG_IN = r"(?i)mpi.*\.so$"
_DEEPEST = 8  # libraries in a chain
_USUAL = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")


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


@cache
def plug_in(path: str) -> str | None:
    """The library with MPI that a file may open, which lies beside it; None if there is none.

    Some libraries (NEURON, Netgen) open an MPI library when they are asked to, and then one of
    their own that was compiled for it.
    """
    file = _read(path, True)
    if file is None or not file.opens:
        return None
    folder = os.path.dirname(path)
    try:
        names = sorted(name for name in os.listdir(folder) if re.search(_PLUG_IN, name))
    except OSError:
        return None
    for name in names:
        other = _read(os.path.join(folder, name), True)
        if other is not None and other.lacks_mpi and not other.defines_mpi:
            return name
    return None


def opens_libraries(path: str) -> bool:
    """Whether a compiled file, or a library that it needs, can open libraries."""
    return _chain(os.path.realpath(path))[1]


@cache
def _chain(path: str) -> tuple[tuple[str, ...] | None, bool]:
    first = _read(path, True)
    if first is None:
        return None, False
    opens = first.opens
    other = plug_in(path)
    if other is not None:
        return (other,), opens
    seen = {path}
    pending: list[tuple[_File, str, tuple[str, ...], tuple[str, ...]]]
    pending = [(first, os.path.dirname(path), (), first.paths)]
    defined = False
    while pending:
        file, origin, chain, inherited = pending.pop(0)
        for name in file.needed:
            if re.match(MPI_LIBRARY, os.path.basename(name)):
                return (*chain, name), opens
            found = located(name, inherited, origin)
            if found is None or re.match(SYSTEM, os.path.basename(found)):
                continue
            if found in seen or len(chain) == _DEEPEST:
                continue
            seen.add(found)
            further = _read(found, first.lacks_mpi)
            if further is not None:
                other = plug_in(found) if further.opens else None
                if other is not None:
                    return (*chain, name, other), opens
                defined = defined or further.defines_mpi
                opens = opens or further.opens
                paths = (*further.paths, *inherited)
                pending.append((further, os.path.dirname(found), (*chain, name), paths))
    return () if first.lacks_mpi and not defined else None, opens
