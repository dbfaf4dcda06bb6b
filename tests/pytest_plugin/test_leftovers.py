"""A test that leaves operations behind fails itself, and not the next one."""

from __future__ import annotations

import re

import pytest

import pysmpi.pytest_plugin.runner  # noqa: F401 - pytester unloads what the inner sessions load

pytest_plugins = ["pytester"]

HEAD = """
import numpy as np
import pytest
from mpi4py import MPI

pytestmark = pytest.mark.mpi(ranks=3)
x, y = np.ones(2), np.zeros(2)
"""

# What a test does, and what its report says; the next test would be disturbed.
LEFT = {
    "message": (
        "comm.rank or comm.send('x', 1, tag=5)",
        "rank 1 has not received a message of rank 0: tag 5, 16 bytes, in WORLD",
    ),
    "buffer": (
        "comm.rank == 2 and comm.Isend(x, 0, tag=6)",
        "rank 0 has not received a message of rank 2: tag 6, 16 bytes, in WORLD",
    ),
    "large_message": (
        "comm.rank or comm.Isend(np.ones(1_000_000), 1, tag=4)",
        "rank 1 has not received a message of rank 0: tag 4, 8,000,000 bytes, in WORLD",
    ),
    "receive": (
        "comm.rank or comm.Irecv(y, source=2, tag=7)",
        "rank 0 still receives from rank 2 with tag 7, in WORLD",
    ),
    "any_receive": (
        "comm.rank or comm.irecv()", "rank 0 still receives from any rank with any tag, in WORLD",
    ),
    "persistent": (
        "comm.rank or comm.Recv_init(y, source=2, tag=7).Start()",
        "rank 0 still receives from rank 2 with tag 7, in WORLD",
    ),
    "broadcast": (
        "comm.rank or comm.Bcast(x, 0)",
        "rank 0 called Bcast at test_broadcast.py:8, ranks 1-2 did not, in WORLD",
    ),
    "gather": (
        "comm.rank == 1 and comm.gather(1, root=0)",
        "rank 1 called gather at test_gather.py:8, ranks 0,2 did not, in WORLD",
    ),
    "background": (
        "comm.rank and comm.Iallreduce(x, y)",
        "ranks 1-2 called Iallreduce at test_background.py:8, rank 0 did not, in WORLD",
    ),
    "barrier": (
        "comm.rank and comm.Ibarrier()",
        "ranks 1-2 called Ibarrier at test_barrier.py:8, rank 0 did not, in WORLD",
    ),
}  # fmt: skip


def test_it_is_reported_where_it_was_left(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        **{
            f"test_{kind}": f"{HEAD}def test_{kind}(comm):\n    {left}\n"
            "def test_next(comm):\n"
            "    assert comm.allreduce(1) == 3\n"
            "    assert comm.sendrecv(1, (comm.rank + 1) % 3) == 1\n"
            for kind, (left, _) in LEFT.items()
        }
    )
    result = pytester.runpytest_inprocess("-v")
    result.assert_outcomes(passed=len(LEFT), failed=len(LEFT))
    printed = result.stdout.str()
    for kind, (_, said) in LEFT.items():
        assert re.search(rf"test_{kind}\.py::test_{kind} FAILED", printed)
        assert re.search(rf"test_{kind}\.py::test_next PASSED", printed)
        if " at " not in said:
            said = said.replace(", in WORLD", f", started at test_{kind}.py:8, in WORLD")
        own = re.split(r"^_+ test_\w+ _+$", printed.partition(f"_ test_{kind} _")[2], flags=re.M)[0]
        assert "The test has left operations " in own and f"\n  {said}\n" in own, own


def test_receives_of_fixtures_may_go_on(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + """
@pytest.fixture(scope="module")
def server(comm):
    request = comm.irecv(source=(comm.rank + 1) % 3, tag=8)
    yield
    comm.send(1, (comm.rank - 1) % 3, tag=8)
    assert request.wait() == 1

@pytest.fixture
def sender(comm):
    comm.send(1, (comm.rank - 1) % 3, tag=9)
    yield
    assert comm.recv(tag=9) == 1

def test_one(comm, server, sender):
    pass

def test_two(comm, server):
    comm.Barrier()

@pytest.mark.xfail
def test_expected(comm):
    comm.rank or comm.send(1, 1)
    assert comm.rank != 2

def test_three(comm):
    assert comm.allreduce(1) == 3
"""
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=3, xfailed=1)
