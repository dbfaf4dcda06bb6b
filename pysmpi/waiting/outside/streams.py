"""Streams of the environment in which pysmpi runs, such as those of a notebook.

Code outside the program passes on the output of a rank: in a notebook, the stream waits for a real
thread. Such waits are real and are not charged. Methods of streams that are not files therefore run
outside of the rank and its clock. So does the function that sends the messages of a notebook's
kernel, such as figures: it sends none for a process that is not the kernel's.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet

from pysmpi.mpi.base import ranks
from pysmpi.patching.patches import Patches
from pysmpi.time.stopwatch import Stopwatch

_METHODS = ("write", "writelines", "flush", "close")


def _outside(real: Callable[..., object], stopwatch: Stopwatch) -> Callable[..., object]:
    """A method that runs as if no rank had called it."""

    def method(self: object, *args: object, **kwargs: object) -> Any:
        if ranks.current().program is None:
            return real(self, *args, **kwargs)
        stopwatch.pause()
        try:
            # A greenlet that belongs to no rank; nothing in it is simulated.
            nobodys: Any = greenlet(real, getcurrent())
            nobodys.rank = ranks.outside
            return nobodys.switch(self, *args, **kwargs)
        finally:
            stopwatch.resume()

    method.__name__, method.__qualname__ = real.__name__, real.__qualname__
    method.__module__, method.__doc__ = real.__module__, real.__doc__
    return method


def install(patches: Patches, stopwatch: Stopwatch | None) -> None:
    """Let streams that are no files run outside of ranks until the patches are undone."""
    clock = Stopwatch() if stopwatch is None else stopwatch
    done = set()
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        for kind in type(stream).__mro__:
            if kind in done or not kind.__flags__ & _IS_HEAP_TYPE or kind.__module__ in _OURS:
                continue
            done.add(kind)
            for name in _METHODS:
                real = vars(kind).get(name)
                if callable(real):
                    patches.set(kind, name, _outside(real, clock))
    # A kernel of the caller has loaded it; a program that starts kernels loads it in its ranks.
    session = getattr(sys.modules.get("jupyter_client.session"), "Session", None)
    if session is not None:
        patches.set(session, "send", _outside(session.send, clock))


_IS_HEAP_TYPE = 1 << 9
_OURS = {"io", "_io", "builtins", "abc", io.TextIOWrapper.__module__}
