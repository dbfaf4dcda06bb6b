"""Memory that an object exposes, and memory at an address."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

# Kinds of memory: 0 is the buffer protocol, others are DLPack's device types.
CPU, CUDA, CUDA_HOST, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 11, 13
OF_HOSTS = frozenset((0, CPU, CUDA_HOST, ROCM_HOST))
ACCESSIBLE = frozenset((0, CPU, CUDA_HOST, ROCM_HOST, CUDA_MANAGED))


class Exported(NamedTuple):
    """Memory that an object exposes.

    `memory` is a flat view of unsigned bytes, `format` the format of its elements, `itemsize` their
    size in bytes, `owner` the object that keeps the memory alive, `kind` the kind of memory.
    """

    memory: memoryview
    format: str
    itemsize: int
    owner: object
    kind: int


def at_address(address: int, nbytes: int, readonly: bool = False) -> memoryview:
    """`nbytes` bytes of this process's memory from `address` on, unchecked as in C."""
    if nbytes <= 0:
        view = memoryview(bytearray())
    else:
        view = memoryview((ctypes.c_ubyte * nbytes).from_address(address)).cast("B")
    return view.toreadonly() if readonly else view
