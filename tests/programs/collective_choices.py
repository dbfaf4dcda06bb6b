"""The parts of collective cases: operations, datatypes, operators."""

from __future__ import annotations

import numpy as np

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
FLOATS = ("f4", "f8")
COMPLEX = ("c8", "c16")
BOOL = "?"
DTYPES = (*INTEGERS, *FLOATS, *COMPLEX, BOOL)
ARITHMETIC = ("SUM", "PROD")
ORDERED = ("MAX", "MIN")
LOGICAL = ("LAND", "LOR", "LXOR")
BITWISE = ("BAND", "BOR", "BXOR")
PAIRS = ("MAXLOC", "MINLOC")
PAIR_TYPES = {"i4": "INT_INT", "f4": "FLOAT_INT"}
OWN = "AFFINE"  # of pairs (a, b): x -> a x + b, one behind the other; it does not commute

REDUCING = ("reduce", "allreduce", "reduce_scatter_block", "reduce_scatter", "scan", "exscan")
NEIGHBOR = ("neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall",
            "neighbor_alltoallv", "neighbor_alltoallw")  # fmt: skip
OPERATIONS = ("barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather",
              "allgatherv", "alltoall", "alltoallv", "alltoallw", *REDUCING, *NEIGHBOR)  # fmt: skip
TOPOLOGIES = ("ring", "grid", "graph")
# Datatypes of two elements, as elements of the array that their extent covers; and plain ones.
EXTENTS = {"plain": 1, "contiguous": 2, "vector": 3, "backward": 3, "resized": 5}


def operators(dtype: str) -> tuple[str, ...]:
    """The operators that MPI defines on a type, and our own on 64-bit integers."""
    if dtype == BOOL:
        return LOGICAL
    found = ARITHMETIC
    if dtype not in COMPLEX:
        found += ORDERED
    if dtype in INTEGERS:
        found += LOGICAL + BITWISE
    if dtype in PAIR_TYPES:
        found += PAIRS
    if dtype == "i8":
        found += (OWN,)
    return found


def data(case, rank, count):
    """The contribution of a rank: small numbers, so that every order gives the same sum."""
    numbers = (np.arange(count) * 7 + rank * 3 + case["count"]) % 3 + 1
    if case["dtype"] == BOOL:
        numbers %= 2
    return numbers.astype(case["dtype"])


def blocks(counts):
    """Displacements with a gap of one before each block."""
    starts, at = [], 0
    for count in counts:
        starts.append(at + 1)
        at += count + 1
    return starts, at + 1


def table_of(case, size):
    """The data of each rank for each other in the v and w forms of alltoall."""
    counts = case["counts"]
    table = [[counts[(i * 5 + j * 3) % len(counts)] for j in range(size)] for i in range(size)]
    if case["in_place"]:
        table = [[table[min(i, j)][max(i, j)] for j in range(size)] for i in range(size)]
    return table


def edges(case, size):
    """The edges (from, to) of a graph topology, each rank's in order."""
    step = case["root"] % 3 + 2
    return [(i, j) for i in range(size) for j in range(size) if (i * 5 + j * 3) % step == 0]
