"""Programs by the words of a command line: `python [flags] script|-m module|-c code args`, or a
script by itself.

Such words start `pysmpi run` and processes that a program spawns.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pysmpi.errors import UsageError
from pysmpi.io.reading import open_lines
from pysmpi.isolation.loading.foreign import HEAD, foreign
from pysmpi.job.programs import find_program, is_compiled

if TYPE_CHECKING:
    from pysmpi.isolation.loading.loader import RankProgram

_FLAGS = frozenset("bBdEiIOPqRsSuvx")  # of python, without a value; letters may be joined
_FLAGS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_SHEBANG_BYTES = 256


def is_python(word: str) -> bool:
    """Whether a word is a Python interpreter, not a script of that name."""
    name = os.path.basename(word)
    if word == sys.executable:
        return True
    if word == name and os.path.isfile(word):
        return False
    return re.fullmatch(r"python[0-9.]*(\.exe)?", name) is not None


def after_flags(words: Sequence[str]) -> list[str]:
    """The words after the flags of a Python interpreter."""
    rest = list(words)
    while rest:
        word = rest[0]
        if word.startswith(_FLAGS_WITH_VALUE):
            alone = word in _FLAGS_WITH_VALUE
            del rest[: 2 if alone else 1]
        elif len(word) > 1 and word[0] == "-" and word[1] != "-" and _FLAGS.issuperset(word[1:]):
            del rest[0]
        else:
            break
    return rest


class Words(NamedTuple):
    """The words after an interpreter.

    `kind` is "script", "module" (`-m`) or "command" (`-c`); `target` is None if there is none.
    """

    kind: str
    target: str | None
    arguments: list[str]
    flags: list[str]


def split_program(words: Sequence[str]) -> Words:
    """Divide the words after an interpreter into flags, program and arguments."""
    rest = after_flags(words)
    flags = list(words[: len(words) - len(rest)])
    if rest and rest[0].startswith(("-m", "-c")):
        kind, attached = ("module" if rest[0][1] == "m" else "command"), rest[0][2:]
        rest = [attached, *rest[1:]] if attached else rest[1:]
        return Words(kind, (rest[0] if rest else None), rest[1:], flags)
    if rest and rest[0] == "--":
        rest = rest[1:]
    return Words("script", (rest[0] if rest else None), rest[1:], flags)


def program_of(
    command: str, arguments: Sequence[str], search: str | None = None, directory: str | None = None
) -> RankProgram:
    """The program that a command starts; UsageError if pysmpi cannot run it.

    A command without a directory in its name is looked for in `search`, directories as in PATH,
    then in `directory`. Scripts are found from `directory` (default: the working directory).
    """
    # The command line uses this module before anything runs.

    if is_python(command):
        kind, target, rest, flags = split_program(arguments)
        if target is None:
            raise UsageError(f"{command}: expected a program after it")
        if kind == "script" and target != "-":
            target = _from(directory, target)
        return find_program(
            target, rest, module=kind == "module", command=kind == "command", flags=flags
        )
    path = _located(command, search, directory)
    if path is None:
        raise UsageError(f"{command}: no such program")
    if is_compiled(path):
        return find_program(path, arguments)
    interpreter, words = _shebang(path)
    if not path.endswith((".py", ".pyz", ".pyw")) and not is_python(interpreter):
        raise UsageError(f"{command}: expected a Python program, got {_what(path)}")
    if after_flags(words):
        raise UsageError(f"{command}: expected #!{interpreter}, got {' '.join(words)} after it")
    return find_program(path, arguments, flags=words)


def on_path(command: str) -> str | None:
    """The file of a command in PATH, such as `pytest`; UsageError if it is no Python program."""
    import shutil

    path = shutil.which(command)
    if path is None:
        return None
    interpreter, _ = _shebang(path)
    if path.endswith((".py", ".pyz", ".pyw")) or is_python(interpreter) or _is_wrapped(path):
        return path
    raise UsageError(f"{command}: expected a Python program, got {path}: {_what(path)}")


def _what(path: str) -> str:
    """The kind of a program that is not Python's."""
    with open_lines(path) as stream:
        head = stream.read(HEAD)
    script = head.startswith(b"#!")
    return f"a script of {_shebang(path)[0]}" if script else foreign(head) or "another one"


def _is_wrapped(path: str) -> bool:
    """Whether a script starts Python through a shell, as installed ones with a long path do."""
    with open_lines(path) as stream:
        return b"\n'''exec' " in stream.read(_SHEBANG_BYTES)


def _from(directory: str | None, path: str) -> str:
    """A path as seen from a directory."""
    if directory is not None and not os.path.isabs(path):
        seen = os.path.join(directory, path)
        if os.path.exists(seen):
            return seen
    return path


def _located(command: str, search: str | None, directory: str | None) -> str | None:
    """The file that a command names."""
    candidates: list[str] = []
    if os.path.basename(command) == command:
        for place in search.split(os.pathsep) if search else ():
            candidates.append(os.path.join(place, command))
        candidates.append(_from(directory, command))
        for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
            candidates.append(os.path.join(place, command))
    else:
        candidates.append(_from(directory, command))
    return next((path for path in candidates if os.path.isfile(path)), None)


def _shebang(path: str) -> tuple[str, list[str]]:
    """The interpreter and its flags in the first line of a script; empty if there are none."""
    with open_lines(path) as stream:
        line = stream.read(_SHEBANG_BYTES).partition(b"\n")[0]
    if not line.startswith(b"#!"):
        return "", []
    words = os.fsdecode(line[2:]).split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if word != "-S" and "=" not in word]
    return (words[0], words[1:]) if words else ("", [])
