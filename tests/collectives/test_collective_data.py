"""Every algorithm gives every rank its data: real ranks, from 1 to 33 of them, against numpy.

Two numbers of ranks for each algorithm are tried, drawn anew for each; all of them with
PYSMPI_RANKS=all pytest tests/collectives/test_collective_data.py
"""

from __future__ import annotations

import os
import random
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

import pysmpi
from pysmpi.collectives import registry
from pysmpi.collectives.call import ROOTED

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "programs"))
from collective_choices import OWN, REDUCING, blocks, data, table_of  # noqa: E402

ALL = [
    (op, name)
    for op in registry.COLLECTIVES.names()
    if not op.startswith("neighbor")
    for name in sorted(registry.algorithms_of(op))
]


def sizes_of(op: str, name: str) -> list[int]:
    """The numbers of ranks to try."""
    if os.environ.get("PYSMPI_RANKS") == "all":
        return list(range(1, 34))
    draw = random.Random(f"{op} {name}")
    return [draw.randint(1, 9), draw.randint(10, 33)]


def cases_of(op: str, size: int) -> list[dict]:
    """All forms of a call."""
    # Beyond the sizes from which algorithms cut into segments, and sends wait for receives.
    big = 20_011 if op in ("bcast", "reduce", "allreduce") else 257
    blocking = {"op": op, "form": "blocking", "counts": [3, 0, 1, 40, 2]}
    cases = []
    for in_place in (False, True):
        for root in sorted({0, size // 2, size - 1}) if op in ROOTED else [0]:
            for operator in ("SUM", OWN) if op in REDUCING else ("SUM",):
                dtype = "i8" if operator == OWN else "i4"
                for count in (0, 1, 7, big):
                    cases.append(
                        {**blocking, "count": count, "root": root, "in_place": in_place,
                         "operator": operator, "dtype": dtype}
                    )  # fmt: skip
    return cases


def combine(case: dict, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """One behind the other."""
    if case["operator"] != OWN:
        return one + other
    x, y = one.reshape(-1, 2), other.reshape(-1, 2)
    return np.stack((x[:, 0] * y[:, 0], x[:, 0] * y[:, 1] + x[:, 1]), axis=1).reshape(-1)


def expected(case: dict, size: int, rank: int) -> np.ndarray:
    """The contents of the receive buffer of a rank."""
    op, count, root = case["op"], case["count"], case["root"]
    nothing = np.full(0, 9, case["dtype"])
    counts = [case["counts"][i % len(case["counts"])] for i in range(size)]
    starts, total = blocks(counts)
    everywhere = rank == root or op not in ROOTED
    if op == "barrier":
        return nothing
    if op == "bcast":
        return data(case, root, count)
    if op in ("gather", "allgather"):
        parts = [data(case, other, count) for other in range(size)]
        return np.concatenate(parts) if everywhere else nothing
    if op in ("gatherv", "allgatherv"):
        got = np.full(total, 9, case["dtype"])
        for other, (start, n) in enumerate(zip(starts, counts)):
            got[start : start + n] = data(case, other, n)
        return got if everywhere else nothing
    if op in ("scatter", "scatterv"):
        if op == "scatter":
            begin, n, whole = rank * count, count, size * count
        else:
            begin, n, whole = starts[rank], counts[rank], total
        if case["in_place"] and rank == root:
            return np.full(n, 9, case["dtype"])
        return data(case, root, whole)[begin : begin + n]
    if op == "alltoall":
        sent = [data(case, other, size * count) for other in range(size)]
        return np.concatenate([s[rank * count : (rank + 1) * count] for s in sent])
    if op in ("alltoallv", "alltoallw"):
        table = table_of(case, size)
        taken = [table[other][rank] for other in range(size)]
        starts, total = blocks(taken)
        got = np.full(total, 9, case["dtype"])
        if case["in_place"]:
            got[:] = data(case, rank, total)
        for other, (start, n) in enumerate(zip(starts, taken)):
            theirs, whole = blocks(table[other])
            block = data(case, other, whole)[theirs[rank] : theirs[rank] + n]
            got[start : start + n] = block
        return got
    units = 2 if case["operator"] == OWN else 1
    counts = [n * units for n in counts]
    count *= units
    length = {"reduce_scatter_block": count * size, "reduce_scatter": sum(counts)}.get(op, count)
    last = {"scan": rank + 1, "exscan": rank}.get(op, size)
    parts = [data(case, other, length) for other in range(last)]
    if not parts or (op == "reduce" and rank != root):
        return nothing
    total = reduce(lambda one, other: combine(case, one, other), parts)
    if op == "reduce_scatter_block":
        return total[rank * count : (rank + 1) * count]
    if op == "reduce_scatter":
        return total[sum(counts[:rank]) : sum(counts[: rank + 1])]
    return total


def work(cases: list[dict]) -> list[np.ndarray]:
    import importlib

    from mpi4py import MPI

    perform = importlib.import_module("collective_cases").perform
    return [perform(MPI.COMM_WORLD, case) for case in cases]


@pytest.mark.parametrize(("op", "name"), ALL, ids=[f"{op}-{name}" for op, name in ALL])
def test_every_rank_gets_its_data(op: str, name: str) -> None:
    for size in sizes_of(op, name):
        cases = cases_of(op, size)
        result = pysmpi.run(work, size, args=(cases,), coll={op: name}, compute="none")
        for rank, found in enumerate(result.returns):
            for case, got in zip(cases, found, strict=True):
                want = expected(case, size, rank)
                assert got.dtype == want.dtype and np.array_equal(got, want), (size, rank, case)
