"""Programs of command lines: Python programs, and compiled ones."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pysmpi.errors import UsageError
from pysmpi.io.reading import open_lines
from pysmpi.isolation.loading.loader import (
    CommandProgram,
    ModuleProgram,
    RankProgram,
    ScriptProgram,
    StdinProgram,
)
from pysmpi.isolation.loading.python_flags import parse_flags


def find_program(
    target: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    command: bool = False,
    flags: Sequence[str] = (),
) -> RankProgram:
    """The program of a command line: a path, `-`, `-m target` or `-c target`.

    `flags` are those of the interpreter before it, such as `-O`.

    Raises `UsageError` if the file does not exist.
    """
    program: RankProgram
    if module:
        program = ModuleProgram(target, arguments)
    elif command:
        program = CommandProgram(target, arguments)
    elif target == "-":
        program = StdinProgram(arguments)
    elif is_compiled(target):
        from pysmpi.abi.program import CompiledProgram  # only compiled programs need it

        return CompiledProgram(target, arguments)
    else:
        program = ScriptProgram(target, arguments)
    program.flags = parse_flags(flags)
    return program


def is_compiled(path: str) -> bool:
    """Whether a file is an executable that calls MPI."""
    if not os.path.isfile(path):  # what is read from a pipe is gone
        return False
    try:
        with open_lines(path) as stream:
            magic = stream.read(4)
            if magic != b"\x7fELF":
                return False
            from pysmpi.abi import elf  # only compiled programs need it

            return elf.needs_mpi(magic + stream.read(elf.MOST))
    except (OSError, UsageError):
        return False  # the error comes when the program is read
