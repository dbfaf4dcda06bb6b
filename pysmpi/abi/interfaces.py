"""The binary interfaces that compiled programs are made for, and pysmpi's library for each.

A program needs MPI libraries by their names. Copies of it need pysmpi's instead, whose names are no
longer than those that they replace.
"""

from __future__ import annotations

import ctypes
import re
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, NamedTuple

from pysmpi.mpi.base.handles import MPICH_FORM, CForm, Handle

MPICH = "psm_mpich.so"  # the library of the engine, which the others need


class Interface(NamedTuple):
    """A binary interface: the names of its libraries, and pysmpi's libraries for C and Fortran."""

    name: str
    c: re.Pattern[str]
    c_library: str
    fortran: re.Pattern[str]
    fortran_library: str


INTERFACES = {
    "mpich": Interface(
        "MPICH",
        re.compile(r"lib(mpi|mpich|pmpi|mpi_cray|mpi_gnu\w*)\.so(\.12\b|$)"),
        MPICH,
        re.compile(r"lib(mpifort|mpichfort|mpichf90|mpifort_cray)\.so(\.12\b|$)"),
        "psm_fort.so",
    ),
    "openmpi": Interface(
        "Open MPI",
        re.compile(r"libmpi\.so\.40\b"),
        "psm_ompi.so",
        re.compile(r"libmpi_(mpifh|usempi\w*?)(-\w+)?\.so\.40\b"),
        "psm_ompi.so",
    ),
    "standard": Interface(
        "the standard ABI",
        re.compile(r"libmpi_abi\.so\.[01]$"),
        "psm_std.so",
        re.compile(r"(?!)"),
        "",
    ),
}
# Names of any MPI library. Those of MPI-2's classes in C++ call that of C: they are as others.
ANY = re.compile(
    r"lib(mpi|mpi_(?!cxx\b)\w+|mpi_mpifh-\w+|mpi_usempi\w*-\w+|mpich(?!cxx\b)\w*|mpifort\w*|pmpi)"
    r"\.so[.\d]*$"
)
# pysmpi's libraries beside the engine: the names of their files, without the ending.
FILES = {"psm_fort.so": "fortran", "psm_ompi.so": "openmpi", "psm_std.so": "standard"}
_loaded: dict[str, Any] = {}


class UnservedError(ValueError):
    """The name of an MPI library that pysmpi has no library for."""


def interface_of(name: str) -> tuple[str, str] | None:
    """The interface of an MPI library, and the library of pysmpi's that replaces it.

    None if the name is not that of an MPI library. Raises `UnservedError` if there is none.
    """
    for key, interface in INTERFACES.items():
        if interface.c.match(name) or name == interface.c_library:
            return key, interface.c_library
        if interface.fortran.match(name) or name == interface.fortran_library:
            return key, interface.fortran_library
    if ANY.match(name):
        raise UnservedError(name)
    return None


def file_of(library: str) -> Path:
    """The file of a library beside the engine."""
    folder = Path(__file__).parent
    stem = FILES.get(library, "engine")
    return folder / (stem + EXTENSION_SUFFIXES[0])


def attach(libraries: set[str], core: int) -> None:
    """Load libraries of other interfaces, once for a process, and connect them with the engine.

    `core` is the address of its functions. Raises `OSError` if a library is missing.
    """
    for library in sorted(libraries - {MPICH} - _loaded.keys()):
        loaded = ctypes.CDLL(str(file_of(library)))
        loaded.psm_attach(ctypes.c_void_p(core))
        _loaded[library] = loaded


class PointerForm(CForm):
    """Handles of an interface that has pointers: the functions of its library translate them."""

    cell = ctypes.c_uint64

    status_ignore = 0

    def __init__(self, library: Any, letters: dict[str, str]) -> None:
        kind, number, pointer = ctypes.c_char, ctypes.c_uint32, ctypes.c_uint64
        self.letters = {name: letter.encode() for name, letter in letters.items()}
        self._out = ctypes.CFUNCTYPE(pointer, kind, number)(("psm_out", library))
        self._into = ctypes.CFUNCTYPE(number, kind, pointer)(("psm_into", library))
        self._fortran_out = ctypes.CFUNCTYPE(number, kind, number)(("psm_fortran_out", library))
        self._fortran_into = ctypes.CFUNCTYPE(number, kind, number)(("psm_fortran_into", library))

    def out(self, family: type[Handle], number: int) -> int:
        """The pointer that stands for an integer."""
        return int(self._out(self.letters[family.__name__], number))

    def into(self, family: type[Handle], handle: int) -> int:
        """The integer of a pointer."""
        return int(self._into(self.letters[family.__name__], handle))

    def fortran_out(self, family: type[Handle], number: int) -> int:
        """The handle in Fortran of an integer, without a sign."""
        return int(self._fortran_out(self.letters[family.__name__], number))

    def fortran_into(self, family: type[Handle], handle: int) -> int:
        """The integer of a handle in Fortran."""
        return int(self._fortran_into(self.letters[family.__name__], handle & 0xFFFFFFFF))


class OpenMPIForm(PointerForm):
    """Open MPI's handles and statuses, whose number of bytes has 64 bits."""

    status = (2, 3, 4, "cancelled", 0, "more")


class StandardForm(PointerForm):
    """The handles and statuses of the standard interface."""

    status = (2, 3, 4, 0, 1, "unused", "unused", "unused")


# The MPI libraries that have the interfaces, for those who choose something by their names.
VENDORS = {"mpich": ("MPICH", (4, 0, 0)), "openmpi": ("Open MPI", (5, 0, 0))}
_forms: dict[str, CForm] = {"mpich": MPICH_FORM}


def form_of(key: str, core: int, letters: dict[str, str]) -> CForm:
    """The handles of an interface; `letters` are the kinds of their families."""
    if key not in _forms:
        library = INTERFACES[key].c_library
        attach({library}, core)
        kind = OpenMPIForm if key == "openmpi" else StandardForm
        _forms[key] = kind(_loaded[library], letters)
    return _forms[key]
