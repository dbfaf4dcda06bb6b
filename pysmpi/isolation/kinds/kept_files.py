"""Duplicates of descriptors, which keep the files of ranks that are not running."""

from __future__ import annotations

import os

_fstat = os.fstat


def identity_of(fd: int) -> tuple[int, int]:
    """The device and the number of the file of a descriptor."""
    status = _fstat(fd)
    return status.st_dev, status.st_ino


class Kept:
    """A duplicate of the file of a descriptor that ranks have for themselves."""

    __slots__ = ("number", "inheritable", "identity")

    def __init__(self, number: int, inheritable: bool) -> None:
        self.number = number
        self.inheritable = inheritable
        self.identity = identity_of(number)
