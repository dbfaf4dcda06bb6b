"""A copy of the calling process that nothing in it notices."""

from __future__ import annotations

import _thread
import ctypes
import os
import sys
from typing import Any

# A rank has its own.
_fork = os.fork
_plain: Any = None  # the system's function, once it was found


def prepare() -> None:
    """Find the system's function, before a run that has its own `ctypes`."""
    global _plain
    if _plain is None and sys.platform == "linux":
        _plain = ctypes.PyDLL(None).fork


def copy_process() -> int:
    """Fork the process as `os.fork` does, without the functions of `os.register_at_fork`.

    They belong to forks of the program. Those of Python itself touch a megabyte of memory, which
    each child would have to copy. With other threads of Python, or without `prepare`, this is
    `os.fork`. OSError if there is no memory for another process.
    """
    if _plain is None or _thread._count() > 0:
        return _fork()
    pid: int = _plain()
    return pid if pid >= 0 else _fork()  # which says what is wrong
