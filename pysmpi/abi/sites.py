"""The lines of compiled programs, by the addresses of their calls."""

from __future__ import annotations

import os
from functools import partial

from pysmpi.python.frames import CallSite, place_later

# Of the process, whichever functions a rank sees.
_pipe, _read, _close, _spawn, _wait = os.pipe, os.read, os.close, os.posix_spawn, os.waitpid
_access = os.access
_variables = os.environ.copy()

SHIFT = 44  # an address of program n is `n << SHIFT | offset`
_UNKNOWN = "<compiled code>"
_programs: list[str] = []
_command: list[str | None] = []  # of addr2line, when it has been looked for


def number_of(path: str) -> int:
    """The number of a program, whose lines can be looked up from now on."""
    if path not in _programs:
        _programs.append(path)
    return _programs.index(path) + 1


def later(site: int) -> CallSite:
    """The place for the code of a call, which is looked up when it is shown."""
    number, offset = site >> SHIFT, site & (1 << SHIFT) - 1
    if not 0 < number <= len(_programs):
        return place_of(site)
    return place_later(f"<{_programs[number - 1]}+{offset:#x}>", partial(place_of, site))


def place_of(site: int) -> CallSite:
    """The file, line and function of a call, by its return address.

    Without debug information, the file is the program, and the line is 0.
    """
    number, offset = site >> SHIFT, site & (1 << SHIFT) - 1
    if not 0 < number <= len(_programs):
        return CallSite(_UNKNOWN, 0, "?")
    path = _programs[number - 1]
    # The call is before the address to which it returns.
    lines = _answer("-f", "-C", "-e", path, f"{offset - 1:#x}").splitlines()
    if len(lines) < 2:
        return CallSite(path, 0, "?")
    function = "?" if lines[0] == "??" else lines[0]
    name, _, rest = lines[1].rpartition(":")
    digits = rest.split()[0] if rest else ""
    if name.startswith("??") or not digits.isdigit():
        return CallSite(path, 0, function)
    return CallSite(os.path.abspath(name), int(digits), function)


def shown(site: int) -> str:
    """The line and function of a call, as messages name them."""
    return str(place_of(site))


def _on_path(command: str) -> str | None:
    """The file of a command of the process; `shutil.which` is of the rank that runs."""
    for folder in _variables.get("PATH", os.defpath).split(os.pathsep):
        file = os.path.join(folder, command)
        if _access(file, os.X_OK) and os.path.isfile(file):
            return file
    return None


def _answer(*words: str) -> str:
    """The output of addr2line; empty if there is none.

    The process has ended when this returns: a child that goes on would count as one of the rank's.
    """
    if not _command:
        _command.append(_on_path("addr2line"))
    command = _command[0]
    if command is None:
        return ""
    source, target = _pipe()
    try:
        actions = [(os.POSIX_SPAWN_DUP2, target, 1)]
        child = _spawn(command, [command, *words], _variables, file_actions=actions)
    except OSError:
        _close(source)
        return ""
    finally:
        _close(target)
    parts = []
    while part := _read(source, 65536):
        parts.append(part)
    _close(source)
    _wait(child, 0)
    return b"".join(parts).decode("utf-8", "replace")
