"""The lines of compiled programs, by the addresses of their calls."""

from __future__ import annotations

import os
import shutil
import subprocess

# Of the process, whichever functions a rank sees.
_read, _write, _close = os.read, os.write, os.close

SHIFT = 44  # an address of program n is `n << SHIFT | offset`
_programs: list[_Lookup] = []


class _Lookup:
    """Looks for the lines of one program, with the program `addr2line` where there is one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.process: subprocess.Popen[bytes] | None = None
        self.pipes = (-1, -1)

    def start(self) -> None:
        """Start `addr2line`, outside of ranks."""
        command = shutil.which("addr2line")
        if command is None or self.process is not None:
            return
        self.process = subprocess.Popen(
            [command, "-f", "-C", "-e", self.path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        self.pipes = self.process.stdin.fileno(), self.process.stdout.fileno()

    def stop(self) -> None:
        """End `addr2line`."""
        if self.process is not None:
            self.process.communicate()
            self.process = None

    def place(self, offset: int) -> tuple[str, int, str]:
        """The file, line and function of the call before an address."""
        if self.process is None:
            return self.path, 0, "?"
        _write(self.pipes[0], f"{offset - 1:#x}\n".encode())
        answer = b""
        while answer.count(b"\n") < 2:
            part = _read(self.pipes[1], 4096)
            if not part:
                return self.path, 0, "?"
            answer += part
        function, line = answer.decode("utf-8", "replace").splitlines()[:2]
        name, _, rest = line.rpartition(":")
        digits = rest.split()[0] if rest else ""
        known = not name.startswith("??") and digits.isdigit()
        file, number = (os.path.abspath(name), int(digits)) if known else (self.path, 0)
        return file, number, "?" if function == "??" else function


def number_of(path: str) -> int:
    """The number of a program, whose lines can be looked up from now on."""
    paths = [lookup.path for lookup in _programs]
    if path not in paths:
        paths.append(path)
        _programs.append(_Lookup(path))
    place = paths.index(path)
    _programs[place].start()
    return place + 1


def place_of(site: int) -> tuple[str, int, str]:
    """The file, line and function of a call, by its return address.

    Without debug information, the file is the program, and the line is 0.
    """
    number, offset = site >> SHIFT, site & (1 << SHIFT) - 1
    if not 0 < number <= len(_programs):
        return "<compiled code>", 0, "?"
    return _programs[number - 1].place(offset)


def forget() -> None:
    """End the lookups at the end of a run."""
    for lookup in _programs:
        lookup.stop()
