"""The file descriptors that the process has open."""

from __future__ import annotations

import os

# Of the process, whichever functions a rank sees.
_fstat, _get_inheritable, _listdir = os.fstat, os.get_inheritable, os.listdir

_LISTS = ("/proc/self/fd", "/dev/fd")  # of Linux, and of other systems


def is_open(fd: int) -> bool:
    """Whether a number is that of an open descriptor."""
    try:
        _get_inheritable(fd)
    except OSError:
        return False
    return True


def open_descriptors() -> dict[int, tuple[int, int]] | None:
    """The open descriptors by number, with the device and the inode of their files.

    A number may be given to another file. None if the system has no list of them.
    """
    for directory in _LISTS:
        try:
            names = _listdir(directory)
        except OSError:
            continue
        result: dict[int, tuple[int, int]] = {}
        for number in map(int, names):
            try:
                status = _fstat(number)
            except OSError:  # the list has the descriptor with which it was read
                continue
            result[number] = status.st_dev, status.st_ino
        return result
    return None


def opened_since(before: dict[int, tuple[int, int]] | None) -> set[int] | None:
    """The descriptors that are open and were not before; None if this is unknown."""
    after = open_descriptors()
    if before is None or after is None:
        return None
    return {number for number, file in after.items() if before.get(number) != file}
