"""Views of the contiguous memory of a message.

`flat_views.c` has the same functions, for a package with compiled code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flat_view(
    spec: Any, writable: bool, formats: Mapping[str, tuple[object, int]]
) -> tuple[memoryview, tuple[object, int]] | None:
    """A view of the bytes of contiguous memory, and the value of its format in `formats`.

    None if it is not contiguous, has no such format, or is read-only and must be `writable`.
    """
    try:
        view = memoryview(spec)
        entry = formats[view.format]
        if writable and view.readonly:
            return None
        if view.format == "B" and view.ndim == 1 and view.c_contiguous:
            return view, entry
        return view.cast("B"), entry
    except (TypeError, ValueError, KeyError, BufferError):
        return None


def copy_view(source: object, target: object) -> bool:
    """Copy between two views of equally many bytes; False, without an effect, if they are not."""
    return False


try:
    from pysmpi.mpi.buffers.flat_views import copy as copy
    from pysmpi.mpi.buffers.flat_views import flat as flat
except ImportError:
    copy, flat = copy_view, flat_view
