"""Loops without calls: polls of memory wait for the rank that stores, or are reported."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import pysmpi
from pysmpi.reports.result import Result
from pysmpi.time import alarms
from pysmpi.waiting.progress import spins
from pysmpi.waiting.progress.loops import poll_at

HEAD = """\
import mmap, os, struct, threading, time
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
window = MPI.Win.Allocate_shared(64 if comm.rank == 0 else 0, 8, comm=comm)
memory = window.Shared_query(0)[0]
flag = np.frombuffer(memory, "i8")
def store():
    flag[2] = 5  # changes nothing that the loop reads
    time.sleep(0.05)
    flag[0] = 1
    open("flag", "w").close()
class Holder: pass
holder = Holder()
holder.flag = flag
comm.Barrier()
"""
POLLS = {
    "element": "while flag[0] == 0: pass",
    "counter": "n = 0\nwhile flag[0] != 1:\n    n += 1",
    "sync": "while flag[0] != 1: window.Sync()",
    "all": "while not np.all(flag[:1] == 1): pass",
    "endless": "while True:\n    if flag[0]: break",
    "copied": "while True:\n    value = flag[0]\n    if value == 1: break",
    "continue": "while True:\n    if not flag[0]: continue\n    print(1); break",
    "function": "def set(): return flag[0] == 1\nwhile not set(): pass",
    "attribute": "while not holder.flag[0]: pass",
    "bytes": "while memory[0] == 0: pass",
    "unpacked": "while struct.unpack_from('q', memory)[0] == 0: pass",
    "in a function": "def poll():\n    mine = flag\n    while not mine[0]: pass\npoll()",
    "sleep in a branch": "while not flag[0]:\n    if flag[1]: time.sleep(1)",
    "file": "while not os.path.exists('flag'): pass",
    "clock aside": "while not flag[0]:\n    date = time.perf_counter()",
}
# Loops that do more: under native compute their time passes, so that the others go on.
OTHERS = {
    "bounded": "n = 0\nwhile flag[0] == 0 and n < 10**9: n += 1",
    "clock": "end = time.time() + 1e3\nwhile not flag[0] and time.time() < end: pass",
    "call": "def look():\n    x = [flag[0]]\n    return x[0]\nwhile not look(): pass",
    "for": "while not flag[0]:\n    for i in range(1000): pass",
}
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spins, "LOOK", 0.02)

    def run(program: str, ranks: int = 2, compute: str = "none", head: str = HEAD) -> Result:
        path = tmp_path / "prog.py"
        path.write_text(head + textwrap.dedent(program))
        return pysmpi.run(str(path), ranks, compute=compute, check=False)

    return run


def split(poll: str) -> str:
    return f"if comm.rank == 0:\n{textwrap.indent(poll, '    ')}\nelse:\n    store()\n"


@pytest.mark.parametrize("kind", POLLS)
def test_a_poll_ends_when_another_rank_stores(run: Run, kind: str):
    found = run(split(POLLS[kind]) + "assert 0.05 <= MPI.Wtime() < 0.06, MPI.Wtime()")
    assert found.exit_status == 0, found.error


@pytest.mark.parametrize("kind", ["element", *OTHERS])
def test_others_go_on_while_a_rank_computes(run: Run, kind: str):
    found = run(split((POLLS | OTHERS)[kind]), compute="native")
    assert found.exit_status == 0, found.error


@pytest.mark.parametrize("compute", ["none", "20us"])
@pytest.mark.parametrize("kind", ["clock", "clock aside"])
def test_a_loop_that_reads_clocks_lets_others_go_on_at_the_same_time_in_each_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, kind: str, compute: str
):
    seconds = set()
    # A reading takes 10 ns.
    head = HEAD.replace("time.sleep(0.05)", "time.sleep(2e-4)")
    for look in (0.002, 0.02, 1000.0):
        monkeypatch.setattr(spins, "LOOK", look)
        found = run(split((POLLS | OTHERS)[kind]), compute=compute, head=head)
        assert found.exit_status == 0, found.error
        seconds.add((found.seconds, str(found.report()["blocks"])))
    assert len(seconds) == 1, seconds
    assert 2e-4 <= found.seconds < 0.05


@pytest.mark.parametrize("kind", ["element", "counter", "copied", "function"])
def test_a_poll_that_nobody_ends_is_reported(run: Run, kind: str):
    found = run(split(POLLS[kind]).replace("    store()", "    comm.recv()"))
    assert found.exit_status == 3
    report = str(found.error)
    assert re.search(r"rank 0  waits in a loop that polls memory +prog.py:", report), report
    assert "why: rank 0 polls memory that no other rank can still change at prog.py:" in report


def test_a_variable_that_a_thread_sets(run: Run):
    found = run("""
        import threading, time
        done = False
        def work():
            global done
            time.sleep(2)
            done = True
        threading.Thread(target=work).start()
        while not done: pass
        assert 2 <= time.time() - 946684800 < 2.1
    """, 1, head="")  # fmt: skip
    assert found.exit_status == 0, found.error


def test_memory_of_a_child_is_polled_in_real_time(run: Run):
    found = run("""
        import mmap, os, time
        shared = mmap.mmap(-1, 4096)
        pid = os.fork()
        if pid == 0:
            time.sleep(0.3)
            shared[0] = 1
            os._exit(0)
        while shared[0] == 0: pass
        os.waitpid(pid, 0)
    """, 1, head="")  # fmt: skip
    assert found.exit_status == 0, found.error


def test_mapped_memory_of_ranks(run: Run):
    found = run("""
        import mmap, time
        from mpi4py import MPI
        comm = MPI.COMM_WORLD
        if comm.rank == 0:
            with open("shared", "wb") as stream: stream.write(bytes(4096))
        comm.Barrier()
        with open("shared", "r+b") as stream: shared = mmap.mmap(stream.fileno(), 4096)
        if comm.rank == 0:
            while shared[0] == 0: pass
            assert MPI.Wtime() < 0.4
        else:
            time.sleep(0.3)
            shared[0] = 1
    """, head="")  # fmt: skip
    assert found.exit_status == 0, found.error


def test_a_long_computation_is_no_poll(run: Run):
    found = run("""
        total = 0
        if comm.rank == 0:
            i = 0
            while i < 1_000_000:
                total += i
                i += 1
        comm.Barrier()
        assert MPI.Wtime() < 1e-3
    """)
    assert found.exit_status == 0, found.error


@pytest.mark.parametrize(
    "loop",
    [
        "while n < 10: n += 1",
        "while flag[0] == 0: flag[1] += 1",
        "while flag[0] == 0: work()",
        "while flag[0] == 0: items.append(1)",
        "while time.perf_counter() < end: pass",
        "while flag[n] == 0:\n    n += 1",
        "while flag[0] == 0:\n    for _ in x: pass",
        "while (line := stream.readline()): pass",
        "while items.pop(): pass",
        "for _ in x: pass",
        "while not flag[0]:\n    flag = fresh()",
    ],
)
def test_loops_that_do_more_are_no_polls(tmp_path: Path, loop: str):
    path = tmp_path / "loop.py"
    path.write_text(loop)
    assert poll_at(str(path), 1) is None


BUSY = """
import signal, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
signal.signal(signal.SIGALRM, lambda *unused: None)
signal.setitimer(signal.ITIMER_REAL, 1e6)
for step in range(2):
    comm.Barrier()
    MPI.Wtime()
    end = time.process_time() + 1e-3
    total = 0
    for i in range(1_500_000 if comm.rank == 0 else 20):
        total += i
    comm.allreduce(total)
"""


@pytest.mark.parametrize("compute", ["none", "20us", "file"])
def test_looks_change_nothing_if_no_clock_measures_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compute: str
):
    path = tmp_path / "prog.py"
    path.write_text(BUSY)
    looks = []
    poll_of = spins.poll_at
    monkeypatch.setattr(spins, "poll_at", lambda *place: looks.append(place) or poll_of(*place))
    for module, name in ((spins, "LOOK"), (alarms, "_LOOK")):
        monkeypatch.setattr(module, name, 0.004)
    if compute == "file":
        # With looks, and without them when it is played back.
        compute = str(tmp_path / "compute.txt")
        recorded = pysmpi.run(str(path), 2, compute="native", record_compute=compute)
        assert looks
    frequent = pysmpi.run(str(path), 2, compute=compute)
    assert looks
    looks.clear()
    for module, name in ((spins, "LOOK"), (alarms, "_LOOK")):
        monkeypatch.setattr(module, name, 1000.0)
    seldom = pysmpi.run(str(path), 2, compute=compute)
    assert not looks
    assert frequent.seconds == seldom.seconds
    if compute.endswith("compute.txt"):
        assert seldom.seconds == pytest.approx(recorded.seconds, rel=0.2)
