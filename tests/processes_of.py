"""The processes of a command that a test runs, found by a variable that all of them inherit."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

NAME = "PYSMPI_TEST_PROCESS"


class Mark:
    """A variable of a command; `variables` are those to start it with."""

    def __init__(self) -> None:
        self.value = os.urandom(8).hex()
        self.variables: Mapping[str, str] = {**os.environ, NAME: self.value}

    def processes(self) -> dict[int, str]:
        """The processes that have the variable and have not ended, with their command lines."""
        wanted = f"{NAME}={self.value}".encode()
        found = {}
        for place in Path("/proc").iterdir():
            with suppress(OSError, ValueError, IndexError):
                number = int(place.name)
                if wanted not in (place / "environ").read_bytes().split(b"\0"):
                    continue
                if (place / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                    line = (place / "cmdline").read_bytes()
                    found[number] = line.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def left(self, seconds: float = 60.0) -> list[str]:
        """The command lines of the processes that are there after at most this time."""
        until = time.monotonic() + seconds
        while (found := self.processes()) and time.monotonic() < until:
            time.sleep(0.01)
        return sorted(found.values())

    def clear(self) -> None:
        """Kill them."""
        for number in self.processes():
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
