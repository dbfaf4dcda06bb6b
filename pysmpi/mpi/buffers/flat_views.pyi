"""Views of the contiguous memory of a message; `flat_views.c` says why they are in C."""

from collections.abc import Mapping

def flat(
    spec: object, writable: bool, formats: Mapping[str, tuple[object, int]], /
) -> tuple[memoryview, tuple[object, int]] | None:
    """A view of the bytes of contiguous memory, and the value of its format in `formats`.

    None if it is not contiguous, has no such format, or is read-only and must be `writable`.
    """

def copy(source: object, target: object, /) -> bool:
    """Copy between two views of equally many bytes; False, without an effect, if they are not."""
