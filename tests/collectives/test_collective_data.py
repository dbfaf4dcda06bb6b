"""Every algorithm gives every rank its data: real ranks, from 1 to 33 of them, against numpy.

Two numbers of ranks for each algorithm are tried, drawn anew for each: all forms of a call on the
smaller one, and forms that take turns on the larger one. PYSMPI_RANKS=all tries all forms on all
numbers of ranks.
"""

from __future__ import annotations

import os
import random
import sys
from functools import lru_cache
from itertools import product
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


EVERYTHING = os.environ.get("PYSMPI_RANKS") == "all"
MANY = 9  # ranks, up to which all forms of a call are tried


def sizes_of(op: str, name: str) -> list[int]:
    """The numbers of ranks to try."""
    if EVERYTHING:
        return list(range(1, 34))
    draw = random.Random(f"{op} {name}")
    return [draw.randint(1, MANY), draw.randint(MANY + 1, 33)]


def cases_of(op: str, size: int) -> list[dict]:
    """The forms of a call."""
    # Beyond the sizes from which algorithms cut into segments, and sends wait for receives.
    big = 20_011 if op in ("bcast", "reduce", "allreduce") else 257
    counts = (0, 1, 7, big)
    operators = ("SUM", OWN) if op in REDUCING else ("SUM",)
    roots = sorted({0, size // 2, size - 1}) if op in ROOTED else [0]
    if size <= MANY or EVERYTHING:
        forms = list(product((False, True), roots, operators, counts))
    else:
        forms = [
            ((i + j + size) % 2 == 0, roots[(i + j) % len(roots)], operator, count)
            for i, count in enumerate(counts)
            for j, operator in enumerate(operators)
        ]
    return [
        {"op": op, "form": "blocking", "counts": [3, 0, 1, 40, 2], "count": count, "root": root,
         "in_place": in_place, "operator": operator, "dtype": "i8" if operator == OWN else "i4"}
        for in_place, root, operator, count in forms
    ]  # fmt: skip


@lru_cache(maxsize=256)
def combined(operator: str, dtype: str, count: int, length: int, last: int) -> np.ndarray:
    """The contributions of the ranks before `last`, combined one after the other."""
    one = data({"count": count, "dtype": dtype}, last - 1, length)
    if last == 1:
        return one
    before = combined(operator, dtype, count, length, last - 1)
    if operator != OWN:
        return before + one
    x, y = before.reshape(-1, 2), one.reshape(-1, 2)
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
    if not last or (op == "reduce" and rank != root):
        return nothing
    total = combined(case["operator"], case["dtype"], case["count"], length, last)
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
