"""Collective calls with Python objects, and neighbourhood collectives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forms import FORMS, perform
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import simulate

from pysmpi.collectives.selection import Selection
from pysmpi.mpi.communicators.intracomm import COMM_WORLD
from pysmpi.mpi.operators.operators import PREDEFINED as OPS
from pysmpi.mpi.processes import environment

words = st.text("abc", max_size=3)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[str], list[float], int, bool]:
    """The contribution and arrival of each rank, a root, and whether reductions are fast."""
    size = draw(st.integers(1, 9))
    items = draw(st.lists(words, min_size=size, max_size=size))
    delays = draw(st.lists(st.sampled_from((0.0, 1e-6, 1e-3)), min_size=size, max_size=size))
    return items, delays, draw(st.integers(0, size - 1)), draw(st.booleans())


def join(x: str, y: str) -> str:
    """Associative, not commutative."""
    return x + y


@settings(max_examples=40, deadline=None)
@given(worlds(), st.sampled_from(("default", "ompi", "mpich")))
def test_objects(world: tuple[list[str], list[float], int, bool], selector: str) -> None:
    items, delays, root, fast = world
    size = len(items)

    def main(rank: Any) -> list[Any]:
        me = rank.pid
        environment.of_rank().options.fast_reduce = fast
        rank.sleep(delays[me])
        comm = COMM_WORLD
        mine = items[me]
        seen = [
            comm.bcast(mine, root),
            comm.gather(mine, root),
            comm.scatter([(root, item) for item in items] if me == root else None, root),
            comm.allgather(mine),
            comm.alltoall([f"{mine}>{i}" for i in range(size)]),
            comm.reduce(mine, join, root),
            comm.allreduce(mine, join),
            comm.scan(mine, join),
            comm.exscan(mine, join),
            comm.allreduce((len(mine), me), OPS["MAXLOC"]),
        ]
        comm.barrier()
        return seen

    longest = max(range(size), key=lambda i: (len(items[i]), -i))
    prefixes = list(accumulate(items, join))
    for me, seen in enumerate(simulate(size, main, Selection(selector))):
        assert seen == [
            items[root],
            items if me == root else None,
            (root, items[me]),
            items,
            [f"{item}>{me}" for item in items],
            "".join(items) if me == root else None,
            "".join(items),
            prefixes[me],
            prefixes[me - 1] if me else None,
            (len(items[longest]), longest),
        ]


def test_what_arrives_is_a_copy() -> None:
    def main(rank: Any) -> Any:
        mine = [rank.pid]
        got = COMM_WORLD.bcast(mine)
        mine.append("changed")
        return got

    assert simulate(3, main) == [[0]] * 3


def test_a_list_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="expecting 1 items, got 2"):
        COMM_WORLD.scatter([1, 2])
    with pytest.raises(ValueError, match="expecting 1 items, got 0"):
        COMM_WORLD.alltoall([])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("periodic", [False, True])
def test_a_grid_exchanges_with_both_sides(size: int, periodic: bool, form: str) -> None:
    def main(rank: Any) -> Any:
        grid = COMM_WORLD.Create_cart([size], [periodic])
        me = grid.Get_rank()
        rank.sleep(1e-5 * (me % 3))
        send = np.array([10 * me, 10 * me + 1])
        received = [np.full(2, -1), np.full(2, -1), np.full(2, -1)]
        perform(grid, form, "Neighbor_alltoall", send, received[0])
        perform(grid, form, "Neighbor_alltoallv", [send, [1, 1]], [received[1], [1, 1]])
        objects = grid.neighbor_alltoall(send.tolist())
        perform(grid, form, "Neighbor_allgather", send[:1], received[2])
        copies = grid.neighbor_allgather(me)
        send[:] = -7
        return [array.tolist() for array in received], objects, copies

    for me, (arrays, objects, copies) in enumerate(simulate(size, main)):
        left, right = me - 1, me + 1
        known = [periodic or left >= 0, periodic or right < size]
        left, right = left % size, right % size
        # A message sent to the right arrives from the left.
        pairs = [10 * left + 1, 10 * right]
        assert arrays[0] == arrays[1] == [x if k else -1 for x, k in zip(pairs, known)]
        assert objects == [x if k else None for x, k in zip(pairs, known)]
        assert arrays[2] == [10 * r if k else -1 for r, k in zip((left, right), known)]
        assert copies == [r if k else None for r, k in zip((left, right), known)]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=14),
        )
    ),
    st.sampled_from(FORMS),
)
def test_a_graph_exchanges_along_its_edges(graph: Any, form: str) -> None:
    size, edges = graph

    def main(rank: Any) -> Any:
        me = rank.pid
        sources = [a for a, b in edges if b == me]
        targets = [b for a, b in edges if a == me]
        comm = COMM_WORLD.Create_dist_graph_adjacent(sources, targets)
        counts_in = [1 + a for a in sources]
        counts_out = [1 + me] * len(targets)
        send = np.repeat(np.arange(len(targets)) + 100 * me, 1 + me)
        received = np.full(sum(counts_in), -1)
        perform(comm, form, "Neighbor_alltoallv", [send, counts_out], [received, counts_in])
        send[:] = -7
        objects = comm.neighbor_allgather(me)
        return received.tolist(), objects

    for me, (received, objects) in enumerate(simulate(size, main)):
        expected = []
        for i, (a, b) in enumerate(edges):
            if b == me:
                position = [e for e in edges[:i] if e[0] == a]
                expected += [100 * a + len(position)] * (1 + a)
        assert received == expected
        assert objects == [a for a, b in edges if b == me]


@pytest.mark.slow
def test_warnings_of_operations_name_the_line_of_the_program(tmp_path: Path) -> None:
    program = tmp_path / "prog.py"
    lines = [
        "comm.allreduce(big)",
        "comm.reduce(big, op=MPI.PROD)",
        "comm.scan(big)",
        "for i in range(2): MPI.SUM(big, big)",
        "import warnings; warnings.simplefilter('always')",
        "for i in range(2): MPI.SUM(big, big)",
        "warnings.simplefilter('error')",
        "try: MPI.SUM(big, big)",
        "except RuntimeWarning: pass",
    ]
    head = [
        "import numpy", "from mpi4py import MPI", "comm = MPI.COMM_WORLD",
        "big = numpy.float64(1e308)",
    ]  # fmt: skip
    program.write_text("\n".join(head + lines) + "\n")
    # In a process of its own: pytest collects the warnings of this one.
    command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", "--compute", "none"]
    done = subprocess.run([*command, str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^(\S+):(\d+): RuntimeWarning: overflow", done.stderr, re.M)
    assert {os.path.basename(file) for file, _ in shown} == {"prog.py"}
    # As separate processes: each rank that computes a sum shows its line once, unless always.
    assert Counter(int(line) for _, line in shown) == {5: 1, 6: 1, 7: 2, 8: 3, 10: 6}
