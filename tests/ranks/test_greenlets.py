"""Greenlets that a program makes inside a rank, such as those of a coroutine library."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pysmpi

TALKING = """
import sys, threading, time
from greenlet import getcurrent, greenlet
from mpi4py import MPI

comm = MPI.COMM_WORLD
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
found = []
sys.argv = [f"rank {comm.rank}"]

class Talker(greenlet):
    def __init__(self, name):
        super().__init__()
        self.name, self.state = name, "new"

    def run(self):
        for number in range(2):
            found.append(comm.sendrecv((self.name, number), right, source=left))
            assert sys.argv == [f"rank {comm.rank}"]
            self.state = f"said {number}"
            time.sleep(0.01)
            assert threading.current_thread().name == where
            self.parent.switch(number)

def talk():
    talkers = [Talker("a"), Talker("b")]
    for number in range(2):
        for talker in talkers:
            assert talker.switch() == number
            assert talker.state == f"said {number}"

where = "MainThread"
talk()
where = "second"
thread = threading.Thread(target=talk, name=where)
thread.start()
thread.join()
assert found == 2 * [("a", 0), ("b", 0), ("a", 1), ("b", 1)], found
"""

WAITING = """
import queue, threading, time
from greenlet import getcurrent, greenlet
from mpi4py import MPI

waited, here = queue.Queue(), getcurrent()

def put():
    time.sleep(0.25)
    waited.put("thing")

def hold():
    with lock:
        here.switch("held")
    return "released"

thread = threading.Thread(target=put)
thread.start()
assert greenlet(waited.get).switch() == "thing"
assert abs(MPI.Wtime() - 0.25) < 1e-3
thread.join()
lock = threading.RLock()
holder = greenlet(hold)
assert holder.switch() == "held"
assert lock.acquire(blocking=False)  # the same thread
lock.release()
assert holder.switch() == "released"
"""


@pytest.mark.parametrize("source", [TALKING, WAITING], ids=["messages", "threads"])
def test_a_greenlet_belongs_to_the_thread_that_runs_it(write, source):
    result = pysmpi.run(write("program.py", source), nprocs=3, compute="none")
    assert result.exit_status == 0


ENDING = """
import os
from greenlet import greenlet
from mpi4py import MPI
comm = MPI.COMM_WORLD

def work():
    if comm.rank == 1:
        %s
    comm.recv(source=(comm.rank + 1) %% comm.size)

greenlet(work).switch()
"""


@pytest.mark.parametrize(
    "action, status, says",
    [
        ("pass", 3, "program.py:10 in work"),
        ("comm.Abort(5)", 5, "rank 1 called MPI_Abort"),
        ("raise ValueError('bad')", 1, "ValueError: bad"),
        ("os._exit(4)", 4, "program.py:9 in work"),
    ],
)
def test_a_greenlet_ends_the_run(write, action, status, says):
    path = write("program.py", ENDING % action)
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", path],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == status
    assert says in done.stderr
    assert "Exception ignored" not in done.stderr
