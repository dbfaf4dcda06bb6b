"""The memory of this process, set up for many ranks and their arrays.

The GNU C library clears the memory of a new array (`numpy.zeros`) unless it knows that the system
has just provided it. When it extends the heap, it takes 128 KiB more than it needs, and forgets
that these are clear. So it writes two thirds of a new array of 200 kB. With many ranks these are
gigabytes that the program may never use.

Objects and stacks of many ranks are in huge pages, if the system has them (`huge_pages.c`).

The clearing, the return of freed memory to the system, and the time to find a page are part of a
program's compute. So nothing is changed in a run that measures compute.
"""

from __future__ import annotations

import _tracemalloc
import ctypes
import os
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # parameters of mallopt
_PAD = 16 << 10  # bytes
# A larger array is outside the heap. The library itself raises this limit to the size of an array
# that the program frees, up to this value, but not any more once a parameter is set.
_LARGEST = 32 << 20  # bytes
_MANY = 10_000  # ranks; fewer gain no time, and leave a part of their last pages empty


def adjustable() -> bool:
    """Whether this is the GNU C library, and the user has not set up its heap."""
    if "glibc.malloc." in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    if any(name.startswith("MALLOC_") and name.endswith("_") for name in os.environ):
        return False
    return os.name == "posix" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")


def extend_by_little() -> None:
    """From now on, extend the heap of this process by little more than is needed.

    Arrays of up to 32 MiB are in the heap, as in a process that has freed one of this size.
    """
    if adjustable():
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGEST)
        library.mallopt(_TRIM_THRESHOLD, 2 * _LARGEST)
        library.mallopt(_TOP_PAD, _PAD)


def _traced() -> bool:
    """Whether Python notes where its memory was allocated; at the end it restores allocators."""
    return bool(_tracemalloc.is_tracing())


def use_huge_pages(ranks: int) -> None:
    """From now on, put objects and stacks into huge pages, if there are many ranks.

    Python's own allocators stay if the user has chosen or watches them.
    """
    chosen = "PYTHONMALLOC" in os.environ or sys.flags.dev_mode
    if ranks < _MANY or chosen or _traced():
        return
    try:
        from pysmpi.job.huge_pages import install
    except ImportError:  # not on Linux, or pysmpi was installed without a C compiler
        return
    install()
