"""Memory for the Python frames of ranks; `frame_chunks.c` says how it is saved."""

from collections.abc import Callable
from typing import Any

def begin(body: Callable[..., object], /, *arguments: object) -> Any:
    """Call `body(*arguments)` in a greenlet that has no frame yet.

    Its first frames are in a small chunk of memory. There is no frame of this function.
    """

def small() -> int | None:
    """The number of small chunks in use, None if there are none in this Python."""
