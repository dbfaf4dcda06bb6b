"""Runs a command, and ends all that the command leaves behind.

`python subreaper.py COMMAND...` has the exit status of the command. Processes that outlive their
parent become children of this one (PR_SET_CHILD_SUBREAPER of prctl(2)), whatever group or session
they are in. They are killed when the command ends, at SIGTERM, and when the thread that started
this process ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def end(number: int, frame: FrameType | None) -> None:
    kill_all()
    os._exit(128 + number)


def main(command: list[str]) -> int:
    """Run `command`; the exit status of a command that a signal ended is 128 and its number."""
    signal.signal(signal.SIGTERM, end)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    process = os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGTERM])
    pid = 0
    while pid != process:
        pid, status = os.waitpid(-1, 0)  # the others would stay as zombies
    kill_all()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def kill_all() -> None:
    """Kill all descendants, also those that are born meanwhile, and wait for their ends."""
    this = psutil.Process()
    with suppress(ChildProcessError):
        while True:
            for process in this.children(recursive=True):
                with suppress(psutil.Error):
                    process.kill()
            os.waitpid(-1, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
