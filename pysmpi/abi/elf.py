"""Executables in the ELF format: what they need, and the changes that let a process load copies."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from pysmpi.errors import UsageError

# The library of `engine.c`; names of other MPI libraries are replaced by it, so none is longer.
LIBRARY = "psm_mpich.so"
_NAMES = re.compile(rb"\0(lib(mpi|mpich|pmpi|mpi_\w+|mpifort|mpichfort)\.so[.\d]*|psm_mpich\.so)\0")
MPICH = re.compile(r"lib(mpi|mpich|pmpi)\.so\.12$|libmpi_cray\.so\.12$")
OPEN_MPI = re.compile(r"libmpi\w*\.so\.40$")
FORTRAN = re.compile(r"lib(mpifort|mpichfort|mpichf90|mpi_usempi\w*|mpi_mpifh)\.so")

MAGIC = b"\x7fELF"
MOST = 1 << 30  # bytes of an executable that are looked at
_LOAD, _DYNAMIC, _TLS = 1, 2, 7
_NEEDED, _STRTAB, _SYMTAB, _STRSZ, _FLAGS_1, _RPATH, _RUNPATH = 1, 5, 6, 10, 0x6FFFFFFB, 15, 29
_PIE = 0x08000000
_MACHINES = {62: "x86-64", 183: "aarch64"}


@dataclass
class Executable:
    """An executable: its contents as each rank loads them, and its entry point."""

    path: str
    data: bytes
    entry: int
    needed: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)  # where it looks for libraries first
    size: int = 0  # bytes of its addresses
    undefined: frozenset[str] = frozenset()  # the functions and variables of libraries that it uses


def needs_mpi(data: bytes) -> bool:
    """Whether the contents of a file are an executable that needs an MPI library."""
    return _NAMES.search(data) is not None


def read(path: str, data: bytes) -> Executable:
    """The executable in a file, ready to be loaded by ranks.

    Raises `UsageError` if ranks of one process cannot load it.
    """
    try:
        return _read(path, data)
    except UsageError:
        raise
    except (struct.error, IndexError, ValueError):
        raise _refused(path, "a damaged executable") from None


def _refused(path: str, what: str) -> UsageError:
    return UsageError(f"{path}: expected a program that ranks can load, got {what}")


def _read(path: str, data: bytes) -> Executable:
    if data[4] != 2 or data[5] != 1:
        raise _refused(path, "one that is not of 64 bits, little-endian")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if machine not in _MACHINES:
        raise _refused(path, f"one for another processor (machine {machine})")
    entry, headers = struct.unpack_from("<QQ", data, 24)
    step, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", data, headers + i * step) for i in range(count)]
    kinds = {segment[0] for segment in segments}
    if _DYNAMIC not in kinds:
        raise _refused(path, "a static one, compile it without -static")
    if kind != 3:
        raise _refused(path, "one at fixed addresses, compile it with -fPIE and link it with -pie")
    if _TLS in kinds:
        raise _refused(
            path, "one with thread-local variables, put these into a shared library (-shared)"
        )

    def place(address: int) -> int:
        for segment in segments:
            if segment[0] == _LOAD and segment[3] <= address < segment[3] + segment[5]:
                return int(segment[2] + address - segment[3])
        raise ValueError(address)

    changed = bytearray(data)
    tags: dict[int, int] = {}
    needed: list[int] = []
    searched: list[int] = []
    for segment in segments:
        if segment[0] != _DYNAMIC:
            continue
        for at in range(segment[2], segment[2] + segment[5], 16):
            tag, value = struct.unpack_from("<QQ", data, at)
            if tag == 0:
                break
            if tag == _NEEDED:
                needed.append(value)
            elif tag in (_RPATH, _RUNPATH):
                searched.append(value)
            else:
                tags[tag] = value
            if tag == _FLAGS_1:
                struct.pack_into("<Q", changed, at + 8, value & ~_PIE)
    names = place(tags[_STRTAB])

    def text(index: int) -> str:
        return data[names + index : data.index(b"\0", names + index)].decode("utf-8", "replace")

    result = Executable(path, b"", entry)
    result.size = max(part[3] + part[6] for part in segments if part[0] == _LOAD)
    libraries = [text(index) for index in needed]
    for index, name in zip(needed, libraries):
        if OPEN_MPI.match(name):
            raise _refused(path, f"one for Open MPI ({name}), compile it for MPICH (libmpi.so.12)")
        if FORTRAN.match(name):
            raise _refused(path, f"one that needs the Fortran library {name}")
        if name == LIBRARY:
            continue
        if MPICH.match(name):
            end = names + index + len(name)
            changed[names + index : end] = LIBRARY.encode().ljust(len(name), b"\0")
        else:
            result.needed.append(name)
    result.paths = [part for index in searched for part in text(index).split(":") if part]
    result.data = bytes(changed)
    result.undefined = frozenset(_undefined(data, place(tags[_SYMTAB]), names))
    return result


def _undefined(data: bytes, first: int, names: int) -> list[str]:
    """The names of symbols without a section, and of variables that are copied from libraries."""
    found = []
    for at in range(first, names - 23, 24):
        name, kind, _, section = struct.unpack_from("<IBBH", data, at)
        if section == 0 or kind & 15 == 1:
            end = data.index(b"\0", names + name)
            found.append(data[names + name : end].decode("utf-8", "replace"))
    return found
