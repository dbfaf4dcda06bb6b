"""The sizes of messages, from the arguments that mpi4py takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpi4py import MPI


def datatype_of(given: object) -> Any:
    """A datatype, or the one that a typecode names; None for anything else."""
    if isinstance(given, MPI.Datatype):
        return given
    if isinstance(given, str):
        try:
            return MPI.Datatype.fromcode(given)
        except ValueError:
            return None
    return None


def memory_bytes(data: Any) -> tuple[int, int]:
    """The bytes of a buffer, and of one of its elements."""
    if data is None:
        return 0, 1
    try:
        view = memoryview(data)
        return view.nbytes, view.itemsize
    except TypeError:
        found = MPI.buffer.frombuffer(data)
        return len(found), found.itemsize


def message(given: object) -> tuple[int, int] | None:
    """The elements of a message and the bytes of one; None for `IN_PLACE` and None."""
    if given is None or given is MPI.IN_PLACE or isinstance(given, int):
        return None
    if not isinstance(given, (list, tuple)):
        total, size = memory_bytes(given)
        return total // size, size
    parts = list(given)
    kind = datatype_of(parts[-1]) if len(parts) > 1 else None
    if kind is not None:
        parts.pop()
    total, size = memory_bytes(parts[0])
    if kind is not None:
        size = kind.Get_size()
        extent = kind.Get_extent()[1]
    else:
        extent = size
    count = parts[1] if len(parts) > 1 else None
    if isinstance(count, (list, tuple)) and count and isinstance(count[0], int):
        count = count[0] if len(count) <= 2 else sum(count)
    if not isinstance(count, int):
        count = total // extent if extent > 0 else 0
    return count, size


def parts(given: Any, ranks: int) -> tuple[tuple[int, ...], int] | None:
    """The elements for each rank and the bytes of one; None for `IN_PLACE` and None."""
    if given is None or given is MPI.IN_PLACE:
        return None
    counts: Sequence[int] | None = None
    if isinstance(given, (list, tuple)) and len(given) > 1 and datatype_of(given[1]) is None:
        second = given[1]
        if isinstance(second, (list, tuple)) and second and not isinstance(second[0], int):
            second = second[0]
        if second is not None and not isinstance(second, int):
            counts = [int(count) for count in second][:ranks]
    whole = message(given if counts is None else [given[0], *given[2:]][:1] + _kind(given))
    if whole is None:
        return None
    if counts is None:
        each, more = divmod(whole[0], ranks)
        counts = [each + (rank < more) for rank in range(ranks)]
    return tuple(counts), whole[1]


def _kind(given: Sequence[object]) -> list[Any]:
    kind = datatype_of(given[-1])
    return [] if kind is None else [kind]
