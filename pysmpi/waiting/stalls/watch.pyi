"""Notices when a thread no longer returns from C; `watch.c` says why it is in C."""

from collections.abc import Callable

def start(
    judge: Callable[[float, int, str], float], interval: float, patience: float, signals: bool, /
) -> bool:
    """Watch the calling thread; True if this is possible.

    Every `interval` (s) a thread of C looks at it. If it has not returned to Python for `patience`
    (s), and the process has hardly used a processor, the thread calls `judge(quiet, 0, call)` with
    the interpreter's lock, in a third thread. `quiet` are the seconds; the function returns those
    after which it wants to be called again. `call` is empty, or the line of `/proc` about the call
    of the operating system in which the watched thread waits, if it had to lend the lock.

    With `signals`, it is called with the number of a signal if SIGINT, SIGTERM or SIGHUP has
    arrived and Python has not called its handler for some seconds.
    """

def stop() -> None:
    """Watch it no longer."""

def returned() -> bool:
    """Whether the watched thread has returned to Python since the last look."""

def thread() -> int:
    """The number that the system has for the watched thread."""
