"""Stacks for the Python frames of ranks; `frame_stacks.c` says why they are in C."""

from collections.abc import Callable
from types import FrameType
from typing import Any

def beginning(function: Callable[..., Any], /) -> Callable[..., Any]:
    """A callable that calls `function`.

    As the first function of a greenlet, it gives it a stack that `waiting` can fit.
    """

def waiting(function: Callable[..., Any], /) -> Callable[..., Any]:
    """A callable that calls `function`.

    If the greenlet was the latest to begin, its stack is first fitted to its frames.
    """

def room() -> list[int]:
    """The sizes of the stacks of the running greenlet (bytes), the latest first."""

def values(frame: FrameType, callee: FrameType, /) -> tuple[Any, ...] | None:
    """The values on the stack of a frame that waits for `callee`.

    They are its variables (NotImplemented: without a value), those of unfinished expressions, and
    the iterators of its loops. None if C code is between the two frames, or this version of Python
    does not tell.
    """
