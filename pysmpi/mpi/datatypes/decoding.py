"""Decoding of a datatype: the named arguments of the call that made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.datatypes.records import Type

#: combiner -> its name.
COMBINERS = {
    value: name.removeprefix("COMBINER_")
    for name, value in vars(c).items()
    if name.startswith("COMBINER_")
}


def parameters(record: Type, types: Sequence[object]) -> dict[str, object]:
    """The arguments that made a datatype, by name; `types` are handles of its parts."""
    read = _ARGUMENTS.get(record.combiner)
    if read is not None:
        return read(record.counts)
    if record.combiner == c.COMBINER_STRUCT:
        arguments = _lists(record.counts)
        arguments["datatypes"] = types
        return arguments
    numbers, counts = list(record.integers), list(record.counts)
    match COMBINERS[record.combiner]:
        case "SUBARRAY":
            n, order = numbers
            return {
                "sizes": counts[:n],
                "subsizes": counts[n : 2 * n],
                "starts": counts[2 * n :],
                "order": order,
            }
        case "DARRAY":
            size, rank, n, *rest = numbers
            return {
                "size": size,
                "rank": rank,
                "gsizes": counts,
                "distribs": rest[:n],
                "dargs": rest[n : 2 * n],
                "psizes": rest[2 * n : 3 * n],
                "order": rest[3 * n],
            }
        case "F90_INTEGER":
            return {"r": numbers[0]}
        case "F90_REAL" | "F90_COMPLEX":
            return {"p": numbers[0], "r": numbers[1]}
    return {}


def _strided(counts: tuple[int, ...]) -> dict[str, object]:
    return {"count": counts[0], "blocklength": counts[1], "stride": counts[2]}


def _lists(counts: tuple[int, ...]) -> dict[str, object]:
    n = counts[0]
    return {"blocklengths": list(counts[1 : n + 1]), "displacements": list(counts[n + 1 :])}


def _block_lists(counts: tuple[int, ...]) -> dict[str, object]:
    return {"blocklength": counts[1], "displacements": list(counts[2:])}


# Readers of the arguments from the counts, if the counts hold all of them.
_ARGUMENTS: dict[int, Callable[[tuple[int, ...]], dict[str, object]]] = {
    c.COMBINER_CONTIGUOUS: lambda counts: {"count": counts[0]},
    c.COMBINER_VECTOR: _strided,
    c.COMBINER_HVECTOR: _strided,
    c.COMBINER_INDEXED: _lists,
    c.COMBINER_HINDEXED: _lists,
    c.COMBINER_INDEXED_BLOCK: _block_lists,
    c.COMBINER_HINDEXED_BLOCK: _block_lists,
    c.COMBINER_RESIZED: lambda counts: {"lb": counts[0], "extent": counts[1]},
}
