"""Executables and libraries in the ELF format, and the changes that let a process load copies."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from typing import Any, NamedTuple

from pysmpi.abi.interfaces import INTERFACES, UnservedError, interface_of
from pysmpi.errors import UsageError

_NAMES = re.compile(
    rb"\0(lib(mpi|mpich|pmpi|mpi_[\w-]+|mpifort|mpichfort)\.so[.\d]*|psm_\w+\.so)\0"
)
# Any MPI library.
MPI = re.compile(
    r"lib(mpi|mpi_(?!cxx\b)[\w-]+|mpich(?!cxx\b)\w*|mpifort\w*|pmpi\w*|mpi_abi)\.so\b|psm_\w+\.so$"
)

# Libraries for Fortran, and what programs use of their modules that ours do not have: arrays as
# descriptors, and functions and variables of the modules themselves.
_FORTRAN = re.compile(r"lib(mpifort|mpichfort|mpi_mpifh|mpi_use\w+)\.so\b")
_OF_MODULES = re.compile(r"p?mpi_\w+_f08ts_|__p?mpi_(f08\w*|sizeofs|constants|base)_MOD_\w+")
_COMPARISON = re.compile(r"__mpi_f08_types_MOD_o?mpi_\w+_(eq|neq?)(_f|_f08)?")

MAGIC = b"\x7fELF"
MOST = 1 << 30  # bytes of an executable that are looked at
_LOAD, _DYNAMIC, _TLS = 1, 2, 7
_NEEDED, _STRTAB, _SYMTAB, _STRSZ, _FLAGS_1, _RPATH, _RUNPATH = 1, 5, 6, 10, 0x6FFFFFFB, 15, 29
_SONAME, _TEXTREL, _FLAGS, _HASH, _GNU_HASH = 14, 22, 30, 4, 0x6FFFFEF5
# DT_INIT, DT_FINI, and the arrays of constructors and destructors with their sizes. In programs,
# these are the rank's: the loader does not know the tags that take their place, see `images.c`.
_CALLED, _HIDDEN = (12, 13, 25, 26, 27, 28), 0x60500000
_WEAK, _UNIQUE = 2, 10  # kinds of symbols
_PIE = 0x08000000
_MACHINES = {62: "x86-64", 183: "aarch64"}


def replacement(name: str) -> str | None:
    """The library of pysmpi that takes the place of an MPI library; None if there is none."""
    try:
        wanted = interface_of(name)
    except UnservedError:
        return None
    return None if wanted is None else wanted[1]


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
        raise refused(path, "a damaged executable") from None


def refused(path: str, what: str) -> UsageError:
    """The error for a file that ranks cannot load."""
    return UsageError(f"{path}: expected a program that ranks can load, got {what}")


def _read(path: str, data: bytes) -> Executable:
    if data[4] != 2 or data[5] != 1:
        raise refused(path, "one that is not of 64 bits, little-endian")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if machine not in _MACHINES:
        raise refused(path, f"one for another processor (machine {machine})")
    entry, headers = struct.unpack_from("<QQ", data, 24)
    step, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", data, headers + i * step) for i in range(count)]
    kinds = {segment[0] for segment in segments}
    if _DYNAMIC not in kinds:
        raise refused(path, "a static one, compile it without -static")
    if kind != 3:
        raise refused(path, "one at fixed addresses, compile it with -fPIE and link it with -pie")
    if _TLS in kinds:
        raise refused(
            path, "one with thread-local variables, put these into a shared library (-shared)"
        )

    result = Executable(path)
    _read_into(result, data)
    result.entry = entry
    result.size = max(part[3] + part[6] for part in segments if part[0] == _LOAD)
    if _FLAGS_1 in result.tags:
        at, value = result.tags[_FLAGS_1]
        result.changes.append((at + 8, struct.pack("<Q", value & ~_PIE)))
    libraries = [name for _, name in result.needed]
    result.libraries = {each for each in replacements(path, libraries) if each is not None}
    return result


def _dynamic(data: Any, table: range) -> tuple[dict[int, tuple[int, int]], list[int], list[int]]:
    """The entries of a dynamic section: offsets and values by tag, needed names, paths."""
    tags: dict[int, tuple[int, int]] = {}
    needed: list[int] = []
    searched: list[int] = []
    for at in table:
        tag, value = struct.unpack_from("<QQ", data, at)
        if tag == 0:
            break
        if tag == _NEEDED:
            needed.append(value)
        elif tag in (_RPATH, _RUNPATH):
            searched.append(value)
        else:
            tags[tag] = at, value
    return tags, needed, searched


class MappedPart(NamedTuple):
    """A part of a file that is mapped: its begin and bytes there, and its address."""

    offset: int
    size: int
    address: int
    writable: bool
    executable: bool


@dataclass
class SharedLibrary:
    """A shared library, and what copies of it change."""

    path: str
    needed: list[tuple[int, str]] = field(default_factory=list)  # names with their offsets
    soname: tuple[int, str] | None = None
    paths: list[str] = field(default_factory=list)  # where it looks for libraries first
    segments: list[MappedPart] = field(default_factory=list)
    changes: list[tuple[int, bytes]] = field(default_factory=list)  # of all copies
    kept: list[tuple[int, int]] = field(default_factory=list)  # where copies differ
    relocated_text: bool = False  # its code differs by address
    calls_mpi: bool = False  # whether it uses functions of MPI that it does not define
    size: int = 0  # bytes of its addresses
    tags: dict[int, tuple[int, int]] = field(default_factory=dict)  # of the dynamic section
    symbols: range = field(default_factory=lambda: range(0))  # offsets in the file
    names: int = 0  # of symbols: their offset in the file

    def of_program(self) -> list[tuple[int, bytes]]:
        """The tags that copies for a program hide: the rank calls constructors and destructors."""
        return [
            (self.tags[tag][0], struct.pack("<Q", _HIDDEN | tag))
            for tag in _CALLED
            if tag in self.tags
        ]


@dataclass
class Executable(SharedLibrary):
    """An executable, its entry point, and what it needs."""

    entry: int = 0
    libraries: set[str] = field(default_factory=set)  # of pysmpi's, that replace MPI libraries


def read_library(path: str) -> SharedLibrary | None:
    """The shared library in a file; None if the file is not one that this system loads."""
    try:
        with open(path, "rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as data:
            return _read_library(path, data)
    except (OSError, ValueError, struct.error, IndexError):
        return None


def _read_library(path: str, data: Any) -> SharedLibrary | None:
    kind, machine = struct.unpack_from("<HH", data, 16)
    if data[:6] != MAGIC + b"\2\1" or kind != 3 or machine not in _MACHINES:
        return None
    result = SharedLibrary(path)
    _read_into(result, data)
    return result if result.symbols else None


def _read_into(result: SharedLibrary, data: Any) -> None:
    """Read the segments, the dynamic section and the symbols of a file."""
    (headers,) = struct.unpack_from("<Q", data, 32)
    step, count = struct.unpack_from("<HH", data, 54)
    dynamic = range(0)
    for i in range(count):
        type_, flags, offset, address, _, size, memory, _ = struct.unpack_from(
            "<IIQQQQQQ", data, headers + i * step
        )
        if type_ == _LOAD:
            result.segments.append(
                MappedPart(offset, size, address, bool(flags & 2), bool(flags & 1))
            )
            result.size = max(result.size, address + memory)
        elif type_ == _DYNAMIC:
            dynamic = range(offset, offset + size, 16)

    def place(address: int) -> int:
        for segment in result.segments:
            if segment.address <= address < segment.address + segment.size:
                return segment.offset + address - segment.address
        raise ValueError(address)

    result.tags, needed, searched = _dynamic(data, dynamic)
    tags = {tag: value for tag, (_, value) in result.tags.items()}
    if _STRTAB not in tags or _SYMTAB not in tags:
        return
    first, names = place(tags[_SYMTAB]), place(tags[_STRTAB])

    def text(index: int) -> str:
        return os.fsdecode(data[names + index : data.find(b"\0", names + index)])

    result.needed = [(names + index, text(index)) for index in needed]
    if _SONAME in tags:
        result.soname = names + tags[_SONAME], text(tags[_SONAME])
    result.paths = [part for index in searched for part in text(index).split(":") if part]
    count = _symbols(data, tags, place)
    result.symbols, result.names = range(first, first + 24 * count, 24), names
    result.kept = [(first, first + 24 * count), (names, names + tags[_STRSZ])]
    result.relocated_text = _TEXTREL in tags or bool(tags.get(_FLAGS, 0) & 4)
    for at, entry in enumerate(struct.iter_unpack("<IBBHQQ", data[first : first + 24 * count])):
        index, info, _, section = entry[:4]
        if section == 0 and data[names + index : names + index + 4] == b"MPI_":
            result.calls_mpi = True
        elif info >> 4 == _UNIQUE and section:
            # All copies would have one variable: a weak one belongs to each.
            result.changes.append((first + 24 * at + 4, bytes([_WEAK << 4 | info & 15])))


def _symbols(data: Any, tags: dict[int, int], place: Callable[[int], int]) -> int:
    """The number of symbols, from the table by which the loader finds them."""
    if _HASH in tags:
        number: int = struct.unpack_from("<I", data, place(tags[_HASH]) + 4)[0]
        return number
    at = place(tags[_GNU_HASH])
    buckets, first, words = struct.unpack_from("<III", data, at)
    at += 16 + 8 * words
    last: int = max(struct.unpack_from(f"<{buckets}I", data, at), default=0)
    if last < first:
        return int(first)
    chain = at + 4 * buckets
    while not data[chain + 4 * (last - first)] & 1:  # the last one of a bucket
        last += 1
    return last + 1


def replacements(path: str, libraries: list[str]) -> list[str | None]:
    """The libraries of pysmpi's that replace those of MPI among the ones that a program needs.

    Raises `UsageError` if there is none for one of them, or if they do not belong together.
    """
    result: list[str | None] = []
    interfaces: list[str] = []
    for name in libraries:
        try:
            wanted = interface_of(name)
        except UnservedError:
            raise refused(
                path, f"one for another MPI library ({name}), compile it for MPICH or Open MPI"
            ) from None
        result.append(None if wanted is None else wanted[1])
        if wanted is not None and wanted[0] not in interfaces:
            interfaces.append(wanted[0])
    if len(interfaces) > 1:
        both = " and ".join(INTERFACES[each].name for each in interfaces)
        raise refused(path, f"one that needs two MPI libraries ({both})")
    return result


def of_modules(library: SharedLibrary) -> str | None:
    """Why ranks cannot load a file, if it needs an MPI library's own modules for Fortran."""
    if not any(_FORTRAN.match(name) for _, name in library.needed):
        return None
    names = [
        name
        for name in undefined(library)
        if _OF_MODULES.fullmatch(name) and not _COMPARISON.fullmatch(name)
    ]
    if not names:
        return None
    return (
        f"uses {min(names)}, a function of its MPI library's own module for Fortran: compile it "
        "with `pysmpi fc`"
    )


def undefined(library: SharedLibrary) -> set[str]:
    """The names of functions and variables of other libraries that a file uses."""
    names = set()
    with open(library.path, "rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as data:
        for at in library.symbols:
            name, kind, _, section = struct.unpack_from("<IBBH", data, at)
            if section == 0 or kind & 15 == 1:  # executables have copies of variables
                end = data.find(b"\0", library.names + name)
                names.add(data[library.names + name : end].decode("utf-8", "replace"))
    return names
