"""The process that simulates: children that ranks fork continue without a simulation."""

from __future__ import annotations

import os

_getpid = os.getpid  # a rank has a number of its own
_process = _getpid()


def begin() -> None:
    """Make the calling process the simulator."""
    global _process
    _process = _getpid()


def process() -> int:
    """The number of the simulator's process."""
    return _process


def simulates() -> bool:
    """Whether the calling process is this one, and not the child of a rank."""
    return _getpid() == _process
