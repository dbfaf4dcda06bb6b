"""`pysmpi fc`: compiles programs in Fortran with pysmpi's own `mpif.h` and modules.

The modules `mpi` and `mpi_f08` are compiled by the same compiler, once.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import click

from pysmpi.cli.cc import _NOT_LINKED, SETTINGS, cached, choose_interface, library, run
from pysmpi.errors import UsageError

COMPILERS = ("gfortran", "flang", "ifx")
# Calls of one function with buffers of several types are errors for gfortran otherwise.
_MISMATCH = "-fallow-argument-mismatch"


def compiler() -> list[str]:
    """The command of the compiler: of FC, or the first that there is."""
    chosen = os.environ.get("FC")
    if chosen:
        return shlex.split(chosen)
    for name in COMPILERS:
        if shutil.which(name):
            return [name]
    raise UsageError(f"no compiler: there is no command {' or '.join(COMPILERS)}; set FC")


def modules(command: list[str], interface: str) -> tuple[Path, list[str]]:
    """The directory of `mpif.h` and the compiled modules, and options that the compiler needs."""
    from pysmpi.abi import fortran_header

    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    mark = hashlib.sha256("\0".join([*command, done.stdout]).encode()).hexdigest()[:12]
    place = cached(
        f"fortran-{interface}-{mark}",
        {
            "mpif.h": fortran_header.mpif_h(interface),
            "mpi.f90": fortran_header.mpi_module(),
            "mpi_f08.f90": fortran_header.f08_module(interface),
        },
    )
    options = [_MISMATCH] if "GNU Fortran" in done.stdout else []
    for name in ("mpi", "mpi_f08"):
        target, source = place / f"{name}.o", place / f"{name}.f90"
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        words = [*command, "-c", "-fPIC", source.name, "-o", target.name]
        made = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
        if made.returncode:
            raise UsageError(f"{source}: {command[0]} cannot compile it: {made.stderr.strip()}")
    return place, options


def line(kind: str, words: list[str]) -> list[str]:
    """The command of the compiler for the arguments of the wrapper."""
    from pysmpi.abi.interfaces import INTERFACES

    interface, words = choose_interface(words)
    if interface == "standard":
        raise UsageError("--abi: expected mpich or openmpi for Fortran, got standard")
    command = compiler()
    place, options = modules(command, interface)
    before = [*command, "-fPIE", *options, f"-I{place}"]
    if not words or any(word in _NOT_LINKED for word in words):
        return [*before, *words]
    names = dict.fromkeys((INTERFACES[interface].fortran_library, INTERFACES[interface].c_library))
    kind_of_result = [] if "-shared" in words else ["-pie"]
    # The libraries need Python, which programs are not linked with.
    return [
        *before, *words, str(place / "mpi_f08.o"), *kind_of_result, *map(library, names),
        "-Wl,--allow-shlib-undefined",
    ]  # fmt: skip


@click.command("fc", context_settings=SETTINGS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENT]...")
def command(words: tuple[str, ...]) -> int:
    """Compile a program in Fortran for `pysmpi run`, as mpifort does.

    The arguments are those of the compiler, which FC names. Programs may include mpif.h or use the
    modules mpi and mpi_f08. -show prints the command, -compile-info and -link-info the parts of it.
    With --abi openmpi, the program has the binary interface of Open MPI instead of MPICH's.
    """
    return run("fc", words, line)
