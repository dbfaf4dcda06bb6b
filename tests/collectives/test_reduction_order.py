"""The order in which algorithms combine: every rank once, and the order of the textbook."""

from __future__ import annotations

import numpy as np
import pytest

import pysmpi
from pysmpi.collectives import registry
from pysmpi.collectives.call import REDUCING, Call
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.order import Order, follow
from pysmpi.collectives.selection import Selection
from pysmpi.errors import PysmpiError

ALL = [(op, name) for op in sorted(REDUCING) for name in registry.algorithms_of(op)]
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 23)
COUNTS = (1, 5, 64, 3000, 70_001)


def calls(op: str, size: int, count: int, root: int = 0, **more) -> list[Call]:
    result = []
    for rank in range(size):
        if op == "reduce_scatter":
            more["recv_counts"] = tuple((count * (i % 3)) // 2 + i % 2 for i in range(size))
        result.append(Call(op, rank, size, root, count, 8, **more))
    return result


@pytest.mark.parametrize(("op", "name"), ALL, ids=[f"{op}-{name}" for op, name in ALL])
def test_every_rank_is_combined_once(op: str, name: str) -> None:
    for i, size in enumerate(SIZES):
        for count in COUNTS if size < 6 else (COUNTS[i % 5], COUNTS[(i + 3) % 5]):
            for root in {0, size // 2, size - 1} if op == "reduce" else {0}:
                order = follow(calls(op, size, count, root), name)
                if op == "allreduce":
                    for pieces in order.results:
                        assert sum(last - first for first, last, _ in pieces) == 8 * count


@pytest.mark.parametrize(("op", "name"), ALL, ids=[f"{op}-{name}" for op, name in ALL])
def test_on_nodes(op: str, name: str) -> None:
    for size, per_node in ((8, 4), (12, 3), (7, 2)):
        nodes = Nodes(rank // per_node for rank in range(size))
        for count in (3, 10_000):
            follow(calls(op, size, count, size - 1 if op == "reduce" else 0, nodes=nodes), name)


def shown(order: Order, node: int) -> str:
    """A tree with parentheses."""
    if node < order.trees.ranks:
        return str(node)
    left, right = order.trees.pairs[node - order.trees.ranks]
    return f"({shown(order, left)} {shown(order, right)})"


@pytest.mark.parametrize(
    ("op", "name", "size", "expected"),
    [
        ("reduce", "default", 4, "(((0 1) 2) 3)"),
        ("reduce", "ompi_basic_linear", 4, "(0 (1 (2 3)))"),
        ("reduce", "binomial", 4, "((0 1) (2 3))"),
        ("reduce", "NTSL", 4, "(0 (1 (2 3)))"),
        ("reduce", "mvapich2_knomial", 5, "((((0 3) 2) 1) 4)"),
        ("allreduce", "rdb", 8, "(((0 1) (2 3)) ((4 5) (6 7)))"),
        ("allreduce", "rdb", 5, "(((0 1) 2) (3 4))"),
        ("allreduce", "rab1", 4, "((0 2) (1 3))"),
        ("scan", "default", 3, "(1 (0 2))"),
        ("scan", "linear", 3, "((0 1) 2)"),
    ],
)
def test_known_orders(op: str, name: str, size: int, expected: str) -> None:
    order = follow(calls(op, size, 64), name)
    last = order.results[0 if op == "reduce" else size - 1]
    assert {shown(order, node) for _, _, node in last} == {expected}


def test_a_ring_combines_every_piece_from_another_rank_on() -> None:
    order = follow(calls("allreduce", 4, 64), "lr")
    found = [shown(order, node) for _, _, node in order.results[2]]
    # Piece i begins at rank i + 1; received data is the left operand.
    assert found == ["(((1 2) 3) 0)", "(((2 3) 0) 1)", "(((3 0) 1) 2)", "(((0 1) 2) 3)"]


def test_silent_algorithms_are_refused() -> None:
    @registry.algorithm("reduce", "test_silent", "a chain in halves that says nothing")
    def silent(s, c):
        for half in (c.nbytes // 2, c.nbytes - c.nbytes // 2):
            if c.rank + 1 < c.size:
                s.recv(c.rank + 1, half)
                s.reduce(half)
            if c.rank:
                s.send(c.rank - 1, half)

    try:
        with pytest.raises(PysmpiError, match="does not name its bytes"):
            follow(calls("reduce", 4, 10), "test_silent")
    finally:
        registry.COLLECTIVES.find("reduce").algorithms.discard("test_silent")


def program(count: int) -> dict:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rng = np.random.default_rng(comm.rank)
    mine = rng.standard_normal(count) * 10.0 ** rng.integers(-8, 8, count)
    results = {"mine": mine}
    total = np.empty(count)
    comm.Allreduce(mine, total)
    results["allreduce"] = total.copy()
    comm.Reduce(mine, total, root=1)
    results["reduce"] = total.copy()
    comm.Scan(mine, total)
    results["scan"] = total.copy()
    comm.Exscan(mine, total)
    results["exscan"] = total.copy()
    block = np.empty(count // comm.size)
    comm.Reduce_scatter_block(mine[: len(block) * comm.size], block)
    results["block"] = block
    request = comm.Iallreduce(mine, total)
    request.Wait()
    results["again"] = total.copy()
    first = MPI.Op.Create(lambda a, b, t: b.__setitem__(slice(None), a), commute=False)
    comm.Allreduce(mine, total, op=first)
    results["ordered"] = total.copy()
    return results


def evaluate(order: Order, contributions: list[np.ndarray], rank: int) -> np.ndarray:
    def value(node: int) -> np.ndarray:
        if node < order.trees.ranks:
            return contributions[node]
        left, right = order.trees.pairs[node - order.trees.ranks]
        return value(left) + value(right)

    pieces = order.results[rank]
    return np.concatenate([value(node)[a // 8 : b // 8] for a, b, node in pieces])


@pytest.mark.parametrize(
    "coll",
    [
        {"allreduce": "rdb", "reduce": "binomial", "scan": "recursive_doubling"},
        {"allreduce": "lr", "reduce": "ompi_pipeline", "exscan": "linear"},
        {"allreduce": "rab_rdb", "reduce": "scatter_gather", "reduce_scatter": "ompi_ring"},
        {"allreduce": "smp_rsag", "reduce": "arrival_pattern_aware"},
    ],
)
def test_programs_see_the_order(coll: dict) -> None:
    size, count = 7, 3000
    chosen = Selection("default", coll)
    common = {"compute": "none", "coll": coll, "selector": "default", "map_by": "node"}
    plain = pysmpi.run(program, size, args=(count,), **common).returns
    common["reduction_order"] = "algorithm"
    result = pysmpi.run(program, size, args=(count,), **common).returns
    data = [values["mine"] for values in result]
    in_order = data[0].copy()
    for other in data[1:]:
        in_order += other
    assert (plain[0]["allreduce"] == in_order).all()
    order = follow(calls("allreduce", size, count, selection=chosen), coll["allreduce"])
    for rank in range(size):
        assert (result[rank]["allreduce"] == evaluate(order, data, rank)).all()
        assert (result[rank]["again"] == result[rank]["allreduce"]).all()
        assert (result[rank]["ordered"] == data[0]).all()
    order = follow(calls("reduce", size, count, 1, selection=chosen), coll["reduce"])
    assert (result[1]["reduce"] == evaluate(order, data, 1)).all()
    assert not (result[1]["reduce"] == plain[1]["reduce"]).all()
    for op in ("scan", "exscan"):
        order = follow(calls(op, size, count, selection=chosen), coll.get(op, "default"))
        for rank in range(op == "exscan", size):
            assert (result[rank][op] == evaluate(order, data, rank)).all()
    name = coll.get("reduce_scatter", "default")
    short = count // size
    one = [Call("reduce_scatter", r, size, 0, short, 8, recv_counts=(short,) * size)
           for r in range(size)]  # fmt: skip
    order = follow(one, name)
    for rank in range(size):
        assert (result[rank]["block"] == evaluate(order, data, rank)).all()


def test_wrong_option() -> None:
    with pytest.raises(pysmpi.errors.UsageError, match="reduction_order: expected rank or"):
        pysmpi.run(program, 2, args=(4,), reduction_order="random")
