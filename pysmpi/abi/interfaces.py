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
# Names of any MPI library.
ANY = re.compile(
    r"lib(mpi|mpi_\w+|mpi_mpifh-\w+|mpi_usempi\w*-\w+|mpich\w*|mpifort\w*|mpicxx|pmpi)\.so[.\d]*$"
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
