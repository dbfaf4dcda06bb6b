"""The file descriptors that the process has open."""

from __future__ import annotations

import os

# Of the process, whichever functions a rank sees.
_get_inheritable, _listdir = os.get_inheritable, os.listdir

_LISTS = ("/proc/self/fd", "/dev/fd")  # of Linux, and of other systems


def is_open(fd: int) -> bool:
    """Whether a number is that of an open descriptor."""
    try:
        _get_inheritable(fd)
    except OSError:
        return False
    return True


def open_descriptors() -> frozenset[int] | None:
    """The numbers of the open descriptors; None if the system has no list of them."""
    for directory in _LISTS:
        try:
            names = _listdir(directory)
        except OSError:
            continue
        # The list has the descriptor with which it was read.
        return frozenset(filter(is_open, map(int, names)))
    return None
