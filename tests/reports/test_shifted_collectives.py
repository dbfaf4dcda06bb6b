"""Ranks whose collective calls part: the report names the call, its number and its lines."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import pysmpi

HEAD = """\
import numpy as np
from mpi4py import MPI
world = comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
x, y, z = np.ones(2), np.zeros(2), np.zeros(2 * size)
"""

# A call that rank `r` makes alone, and can leave or begin before the others enter.
EARLY = {
    "Bcast(x, 0)": 0,
    "Scatter(z, y)": 0,
    "Scatterv(z, y)": 0,
    "Reduce(x, None)": 1,
    "Gather(x, None)": 1,
    "Gatherv(x, None)": 1,
    "Scan(x, y)": 0,
    "Exscan(x, y)": 0,
    "bcast(1)": 0,
    "scatter([1] * size)": 0,
    "gather(1)": 1,
    "reduce(1)": 1,
    "Ibcast(x, 0).Wait()": 0,
    "Igather(x, None).Wait()": 1,
    "Ireduce(x, None).Wait()": 1,
    "Ibarrier()": 0,
    "Iallreduce(x, y)": 0,
    "Ialltoall(z, z.copy())": 1,
    "Iscan(x, y)": 1,
}

# A call that rank 0 makes in the place of Barrier, and in which it waits.
WAITING = [
    "Allreduce(x, y)", "Allgather(x, z)", "Alltoall(z, z.copy())", "allgather(1)", "allreduce(1)",
    "alltoall([1] * size)", "Reduce_scatter_block(z, y)", "exscan(1)", "Dup()", "Split(0)",
    "Create(comm.group)", "Create_cart([size])", "Iallreduce(x, y).Wait()", "Idup()[1].Wait()",
    "Create_dist_graph_adjacent([0], [0])",
]  # fmt: skip


def stuck(tmp_path: Path, program: str, nprocs: int = 3) -> str:
    """The report of a program that deadlocks."""
    path = tmp_path / "prog.py"
    path.write_text(HEAD + textwrap.dedent(program))
    result = pysmpi.run(str(path), nprocs, check=False, compute="none")
    assert result.exit_status == 3, result.error
    return str(result.error)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File names in reports are relative to the directory."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("call", EARLY)
def test_a_call_that_one_rank_makes_alone(call: str, tmp_path: Path) -> None:
    alone = EARLY[call]
    found = stuck(
        tmp_path,
        f"""\
        comm.allreduce(rank)
        comm.Barrier()
        if rank == {alone}:
            request = comm.{call}
        comm.Allgather(x, z)
        """,
    )
    name = re.match(r"\w+", call)
    assert name is not None
    others = "1-2" if alone == 0 else "0,2"
    here = f"ranks {others} are in Allgather at prog.py:10"
    there = rf"rank {alone} (called|is in) {name[0]} at prog\.py:9"
    (line,) = [line for line in found.splitlines() if "as call number" in line]
    assert "as call number 3 of WORLD: every rank must make the same collective calls" in line
    assert here in line and re.search(there, line)
    if "called" in line:
        assert f"rank {alone} is now in Allgather at prog.py:10, call number 4" in found
    assert "have not entered" not in found


@pytest.mark.parametrize("call", WAITING)
def test_another_call_in_one_rank(call: str, tmp_path: Path) -> None:
    found = stuck(
        tmp_path,
        f"""\
        comm.bcast(rank)
        if rank == 0:
            comm.{call}
        else:
            comm.Barrier()
        """,
    )
    name = re.match(r"\w+", call)
    assert name is not None
    line = (
        f"rank 0 is in {name[0]} at prog.py:8, ranks 1-2 are in Barrier at prog.py:10, as call "
        "number 2 of WORLD: every rank must make the same collective calls in the same order"
    )
    assert line in found


def test_a_loop_with_one_round_more(tmp_path: Path) -> None:
    found = stuck(
        tmp_path,
        """\
        for i in range(3 if rank == 0 else 2):
            comm.Allreduce(x, y)
        comm.Reduce(x, y if rank == 0 else None)
        comm.Barrier()
        """,
    )
    assert (
        "rank 0 is in Allreduce at prog.py:7, ranks 1-2 called Reduce at prog.py:8, "
        "as call number 3 of WORLD"
    ) in found
    assert "ranks 1-2 are now in Barrier at prog.py:9, call number 4" in found


def test_gathers_of_objects_count_once(tmp_path: Path) -> None:
    found = stuck(
        tmp_path,
        """\
        for i in range(4 if rank == 0 else 5):
            comm.gather(i, root=0)
        comm.allreduce(1)
        """,
    )
    assert (
        "rank 0 is in allreduce at prog.py:8, ranks 1-2 called gather at prog.py:7, "
        "as call number 5 of WORLD"
    ) in found


def test_a_call_that_raised_was_not_made(tmp_path: Path) -> None:
    found = stuck(
        tmp_path,
        """\
        try:
            comm.Bcast(b"ab", root=0)
        except BufferError:
            pass
        comm.Allreduce(x, y)
        """,
    )
    assert (
        "rank 0 called Bcast at prog.py:7, ranks 1-2 are in Allreduce at prog.py:10, "
        "as call number 1 of WORLD"
    ) in found
    assert "rank 0 is now in Allreduce at prog.py:10, call number 2" in found


def test_a_sub_communicator(tmp_path: Path) -> None:
    found = stuck(
        tmp_path,
        """\
        row = comm.Split(rank // 2)
        if row.rank == 0 and rank:
            row.Bcast(x, 0)
        row.Allreduce(x, y)
        """,
        4,
    )
    assert (
        "rank 2 called Bcast at prog.py:8, rank 3 is in Allreduce at prog.py:9, as call number 1 "
        "of comm of ranks 2-3 (Split at prog.py:6)"
    ) in found


def test_both_sides_of_an_intercommunicator(tmp_path: Path) -> None:
    found = stuck(
        tmp_path,
        """\
        half = comm.Split(rank // 2)
        inter = half.Create_intercomm(0, comm, 2 - 2 * (rank // 2))
        if rank == 0:
            inter.Bcast(x, MPI.ROOT)
        inter.Barrier()
        """,
        4,
    )
    assert (
        "rank 0 called Bcast at prog.py:9, ranks 1-3 are in Barrier at prog.py:10, as call number "
        "1 of intercomm of ranks 0-1 and 2-3 (Create_intercomm at prog.py:7)"
    ) in found
    assert found.count("as call number") == 1


def test_neighbours_that_are_done_with_the_first_part(tmp_path: Path) -> None:
    found = stuck(
        tmp_path,
        """\
        ring = comm.Create_cart([4], periods=[True])
        if rank == 2:
            ring.Barrier()
        else:
            ring.neighbor_alltoall([1, 2])
        """,
        4,
    )
    assert (
        "ranks 0-1,3 are in neighbor_alltoall at prog.py:10, rank 2 is in Barrier at prog.py:8, "
        "as call number 1 of comm of ranks 0-3 (Create_cart at prog.py:6)"
    ) in found


def test_roots_that_differ_in_calls_that_were_left(tmp_path: Path) -> None:
    found = stuck(
        tmp_path,
        """\
        if rank == 2:
            comm.Gather(x, None, root=0)
        else:
            comm.Gather(x, z, root=1)
        comm.Barrier()
        """,
    )
    assert (
        "roots differ in Gather: rank 0 called Gather(root=1), rank 1 is in Gather(root=1) at "
        "prog.py:9, rank 2 called Gather(root=0), as call number 1 of WORLD"
    ) in found


def test_the_numbers_of_calls_of_ranks_that_have_finished(tmp_path: Path) -> None:
    found = stuck(
        tmp_path,
        """\
        if rank == 0:
            comm.Allreduce(x, y)
        comm.Allreduce(x, y)
        """,
    )
    assert (
        "ranks 1-2 have finished without entering Allreduce of WORLD, call number 2: they made 1"
    ) in found
