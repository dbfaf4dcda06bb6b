"""`pysmpi cc`: compiles programs in C with pysmpi's own `mpi.h`, as `mpicc` does with another.

It is for users who have no MPI library. `pysmpi cxx` is the same for C++.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import click

from pysmpi.cli.echo import echo
from pysmpi.errors import UsageError
from pysmpi.python.installed import cache_directory
from pysmpi.version import __version__

COMPILERS = {"cc": ("cc", "gcc", "clang"), "cxx": ("c++", "g++", "clang++")}
_NOT_LINKED = ("-c", "-S", "-E", "-M", "-MM")
_SHOW = ("-show", "-show-me", "--showme")


def cached(name: str, files: dict[str, str]) -> Path:
    """The directory of this name with these files, which are written if they are not up to date."""
    place = Path(cache_directory()) / __version__ / name
    for each, text in files.items():
        file = place / each
        try:
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                file.parent.mkdir(parents=True, exist_ok=True)
                new = file.with_name(f"{file.name}.{os.getpid()}")
                new.write_text(text, encoding="utf-8")
                new.replace(file)
        except OSError as error:
            raise UsageError(f"{file}: cannot be written: {error}") from None
    return place


def include(interface: str) -> Path:
    """The directory with `mpi.h` for a binary interface, and SMPI's header for that of MPICH."""
    from pysmpi.abi import smpi
    from pysmpi.abi.header import header

    files = {"mpi.h": header(interface)}
    if interface == "mpich":
        files["smpi/smpi.h"] = smpi.HEADER
    return cached(f"include-{interface}", files)


def library(name: str) -> str:
    """The file of a library that programs are linked with."""
    from pysmpi.abi.interfaces import file_of

    file = file_of(name)
    if not file.exists():
        raise UsageError(
            "this installation has no MPI library for compiled programs; install pysmpi on Linux "
            "with a C compiler"
        )
    return str(file)


def choose_interface(words: list[str]) -> tuple[str, list[str]]:
    """The binary interface that `--abi` names, MPICH's without it, and the other arguments."""
    from pysmpi.abi.interfaces import INTERFACES

    chosen, rest = "mpich", []
    waiting = iter(words)
    for word in waiting:
        if word != "--abi" and not word.startswith("--abi="):
            rest.append(word)
            continue
        chosen = word.partition("=")[2] or next(waiting, "")
        if chosen not in INTERFACES:
            raise UsageError(f"--abi: expected {', '.join(INTERFACES)}, got {chosen or 'nothing'}")
    return chosen, rest


def compiler(kind: str) -> list[str]:
    """The command of the compiler: of CC or CXX, or the first that there is."""
    names = COMPILERS[kind]
    chosen = os.environ.get("CC") if kind == "cc" else os.environ.get("CXX")
    if chosen:
        return shlex.split(chosen)
    for name in names:
        if shutil.which(name):
            return [name]
    raise UsageError(f"no compiler: there is no command {' or '.join(names)}; set {kind.upper()}")


def line(kind: str, words: list[str]) -> list[str]:
    """The command of the compiler for the arguments of a wrapper."""
    from pysmpi.abi.interfaces import INTERFACES

    interface, words = choose_interface(words)
    before = [*compiler(kind), "-fPIE", f"-I{include(interface)}"]
    if not words or any(word in _NOT_LINKED for word in words):
        return [*before, *words]
    c_library = INTERFACES[interface].c_library
    # The library needs Python, which programs are not linked with.
    kind_of_result = [] if "-shared" in words else ["-pie"]
    return [*before, *words, *kind_of_result, library(c_library), "-Wl,--allow-shlib-undefined"]


def run(
    kind: str, words: tuple[str, ...], line: Callable[[str, list[str]], list[str]] = line
) -> int:
    """Print the command of the compiler, or carry it out; its exit status."""
    given = list(words)
    shown = [word for word in given if word in _SHOW]
    compiling = "-compile-info" in given or "-compile_info" in given
    linking = "-link-info" in given or "-link_info" in given
    rest = [word for word in given if word not in shown and not word.endswith(("-info", "_info"))]
    if compiling:
        rest.insert(0, "-c")
    command = line(kind, rest or (["-o", "a.out"] if linking else rest))
    if shown or compiling or linking:
        echo(shlex.join(command))
        return 0
    return subprocess.run(command, check=False).returncode


SETTINGS = {
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": ["--help"],
}


@click.command("cc", context_settings=SETTINGS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENT]...")
def command(words: tuple[str, ...]) -> int:
    """Compile a program in C for `pysmpi run`, as mpicc does.

    The arguments are those of the compiler. -show prints its command, -compile-info and -link-info
    the parts of it. With --abi openmpi or --abi standard, the program has the binary interface of
    Open MPI or the standard one of MPI 5.0 instead of MPICH's.
    """
    return run("cc", words)
