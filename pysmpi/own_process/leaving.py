"""The end of the process of a command, without the release of its objects one by one.

That release takes a twentieth of the time of a short run, and the system takes the memory back at
once. It is left to Python where something depends on it: an open file, a thread, or a program that
runs the command line inside it.
"""

from __future__ import annotations

import _thread
import atexit
import gc
import sys

from pysmpi.own_process.descriptors import open_descriptors, opened_since
from pysmpi.python.frames import depth

_DEPTH = 4  # frames at most: `main`, its module, and two that run a module for `-m`


class QuickEnd:
    """Ends the process once Python has called all functions of `atexit`.

    `status` is the exit status. As long as it is None, Python ends the process.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self._before = open_descriptors()
        # Functions of `atexit` are called in the opposite order: the first is called last.
        if self._before is not None and atexit._ncallbacks() == 0 and not _observed():
            atexit.register(self._leave)

    def prepare(self) -> None:
        """The command has ended: spare Python its search for cycles, unless files may be in one."""
        if self._files():
            gc.unfreeze()
        else:
            gc.freeze()

    def _files(self) -> bool:
        """Whether files may be open that Python would close."""
        files = opened_since(self._before)
        return files is None or bool(files)

    def _leave(self) -> None:
        ctypes = sys.modules.get("ctypes")  # commands that are short anyway do not load it
        # Threads of Python would run on while libraries end; Python stops them.
        if self.status is None or ctypes is None or _thread._count() or self._files():
            return
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            return  # Python reports it
        engine = sys.modules.get("pysmpi.abi.engine")
        if engine is not None:
            engine.stop()
        # Writes the buffers of C, and calls what libraries have registered: without the lock of the
        # interpreter, for which their threads may wait.
        ctypes.CDLL(None).exit(self.status)


def _observed() -> bool:
    """Whether a user, a profiler or a debugger may continue after the command line."""
    return bool(sys.flags.inspect or sys.flags.dev_mode or depth() > _DEPTH)
