"""The cost of a rank before it begins, while it runs, and after it has ended."""

import gc
import subprocess
import sys
import time
import weakref

import greenlet
import pytest

import pysmpi
from pysmpi.cli.summary import interpreted
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job import heap
from pysmpi.job.job import Job
from pysmpi.job.options import Options
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot

RING = """
from mpi4py import MPI
import numpy as np
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
token = np.array([rank])
comm.Sendrecv_replace(token, (rank + 1) % size, 0, (rank - 1) % size, 0)
comm.Barrier()
total = np.empty(1, int)
comm.Allreduce(token, total)
part = comm.Split(rank % 10, rank)
assert part.allreduce(1) == size // 10
"""
MACHINE = """
name: wide
description: Enough cores for a test of many ranks.
clusters:
  - name: nodes
    hosts: node-[0-99]
    speed: 10Gf
    cores: 64
    link: {bandwidth: 100Gbps, latency: 500ns}
    loopback: {bandwidth: 8GBps, latency: 300ns}
"""
MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss)
sys.stdout.flush()
os._exit(os.waitstatus_to_exitcode(status))
"""


def peak(ranks, code, directory):
    """Peak resident bytes of a whole run."""
    machine = directory / "wide.yaml"
    machine.write_text(MACHINE)
    command = [sys.executable, "-m", "pysmpi", "run", "-n", str(ranks), "--compute", "none"]
    command += ["--platform", str(machine), "--map-by", "core", "-c", code]
    # A small process of its own starts and measures it: Linux counts the memory of the process that
    # starts a command as that of the command.
    found = subprocess.run(
        [sys.executable, "-c", MEASURE, *command], capture_output=True, timeout=100
    )
    assert found.returncode == 0, found.stderr.decode()
    return int(found.stdout) * (1 if sys.platform == "darwin" else 1024)


def test_memory_grows_in_proportion_to_the_ranks(tmp_path):
    few, some, many = (peak(ranks, RING, tmp_path) for ranks in (100, 2000, 4000))
    assert (many - few) / 3900 < (21_000 if interpreted() else 16_000)
    assert (many - some) / 2000 < 1.5 * (some - few) / 1900 + 2000


def test_ranks_that_have_ended_cost_hardly_anything(tmp_path):
    code = "from mpi4py import MPI; print(MPI.COMM_WORLD.rank)"
    few, many = (peak(ranks, code, tmp_path) for ranks in (100, 5000))
    assert (many - few) / 4900 < 5_000


ARRAYS = """
from mpi4py import MPI
import numpy as np
empty = [np.zeros(200_000, np.uint8) for _ in range(20)]
MPI.COMM_WORLD.Barrier()
"""


@pytest.mark.skipif(not heap.adjustable(), reason="needs glibc with a heap as it comes")
def test_arrays_that_ranks_do_not_use_take_no_memory(tmp_path):
    none = peak(64, ARRAYS.replace("range(20)", "range(0)"), tmp_path)
    all_of_them = 64 * 20 * 200_000
    assert peak(64, ARRAYS, tmp_path) - none < 0.2 * all_of_them


@pytest.mark.parametrize(
    "variable, value", [("MALLOC_TOP_PAD_", "131072"), ("GLIBC_TUNABLES", "glibc.malloc.check=0")]
)
def test_the_heap_stays_as_the_user_has_set_it_up(variable, value, monkeypatch):
    monkeypatch.setenv(variable, value)
    assert not heap.adjustable()


@pytest.mark.parametrize(
    "compute, last, changed",
    [("none", True, 1), ("1us", True, 1), ("native", True, 0), ("steady", True, 0),
     ("none", False, 0)],
)  # fmt: skip
def test_the_heap_of_a_measured_run_or_of_a_longer_process_stays(
    compute, last, changed, monkeypatch
):
    calls = []
    monkeypatch.setattr(heap, "extend_by_little", lambda: calls.append(1))
    job = Job(FunctionProgram(lambda: None, ()), Options(nprocs=1, compute=compute))
    job.last = last
    try:
        job.run()
    finally:
        gc.unfreeze()
    assert len(calls) == changed


# Sets a profile function that finds the largest size of a rank's frames at one time (bytes), then
# runs the ring. The rank that ends last makes no import any more.
DEPTH = """
import sys
def bytes_of(code):
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    values = len(code.co_varnames) + len(cells) + len(code.co_freevars) + code.co_stacksize
    return 8 * (values + 10)  # an interpreter frame has up to 10 words besides
most = 0
def deeper(frame, event, argument):
    global most
    if event == "call":
        total = 0
        while frame is not None:
            total += bytes_of(frame.f_code)
            frame = frame.f_back
        most = max(most, total)
sys.setprofile(deeper)
"""


@pytest.mark.skipif(interpreted(), reason="only compiled calls take no frames of the interpreter")
def test_a_rank_has_few_frames(tmp_path):
    """At any time in its calls; a rank that waits has less."""
    (tmp_path / "prog.py").write_text(
        DEPTH + RING + "sys.setprofile(None)\nif rank == size - 1: print(most)\n"
    )
    command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "20", "--compute", "none"]
    done = subprocess.run(
        [*command, "prog.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    header = 24  # bytes of a chunk
    assert 1000 < int(done.stdout) <= 3072 - header


class Thing:
    """An object of a rank."""


THINGS: StateSlot[Rank, list[Thing]] = StateSlot(Rank, list)


def test_a_rank_lets_go_of_what_it_had():
    things = []
    left = []

    def main():
        from mpi4py import MPI

        thing = Thing()
        things.append(weakref.ref(thing))
        THINGS.of(current()).append(thing)
        del thing
        if MPI.COMM_WORLD.rank == 3:
            MPI.COMM_WORLD.recv(source=0)
            left.extend(current().universe.ranks)
            assert [each() is None for each in things] == [True, True, True, False]
        elif MPI.COMM_WORLD.rank == 0:
            MPI.COMM_WORLD.send(None, dest=3)

    pysmpi.run(main, nprocs=4, compute="none")
    assert [rank.fiber for rank in left] == [None] * 4
    assert [rank.program for rank in left] == [None] * 4


def test_ranks_begin_when_it_is_their_turn():
    begun = []

    def main():
        rank = current()
        begun.append([other.fiber is not None for other in rank.universe.ranks])

    pysmpi.run(main, nprocs=3, compute="none")
    assert begun == [[True, False, False], [False, True, False], [False, False, True]]


def test_a_rank_that_never_begins_is_stopped():
    def main():
        if current().index == 0:
            current().abort(7)

    with pytest.raises(pysmpi.ProgramError) as caught:
        pysmpi.run(main, nprocs=3, compute="none")
    states = [rank["state"] for rank in caught.value.result.ranks]
    assert states == ["stopped", "stopped", "stopped"]
    assert caught.value.result.exit_status == 7


WAITING = """
from mpi4py import MPI
from pysmpi.kernel.requests import KernelRequest
from pysmpi.mpi.base.ranks import current
rank = current()
if MPI.COMM_WORLD.rank:
    print(rank.universe.ranks[0].fiber._stack_saved)
    rank.universe.processes[0].pending()[0].complete(rank.engine.now)
else:
    rank.process.wait([KernelRequest()])  # the fewest compiled functions below a wait
"""


def test_a_switch_copies_no_stack_of_nested_interpreters(tmp_path):
    """The program of a rank runs in the interpreter loop that its greenlet began."""
    hub = greenlet.getcurrent()
    nested = greenlet.greenlet(lambda: exec("hub.switch()", {"hub": hub}))
    nested.switch()
    program = tmp_path / "waiting.py"
    program.write_text(WAITING)
    command = [sys.executable, "-m", "pysmpi", "run", "-n", "2", "--quiet", str(program)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert 0 < int(found.stdout) < nested._stack_saved


def test_ranks_in_a_split_share_the_columns_of_their_schedules():
    found = []

    def main():
        from mpi4py import MPI

        rank = current()
        if rank.index == 0:
            time.sleep(1.0)  # the others wait for the values of rank 0
            found.extend(process.schedule for process in rank.universe.processes[1:])
        MPI.COMM_WORLD.Split(0)

    pysmpi.run(main, nprocs=20, compute="none")
    for name in ("codes", "sizes", "tags", "amounts"):
        columns = [getattr(schedule, name) for schedule in found]
        different = len({tuple(column) for column in columns})
        # Those of the first rank are only compared with those of the second.
        assert different <= len({*map(id, columns)}) <= different + 1 < len(columns), name


def test_the_messages_of_an_alltoall_cause_no_search_for_cycles(tmp_path):
    """They exist together and are no garbage: a search would look at all of them in vain."""
    seen = []
    machine = tmp_path / "thin.yaml"
    machine.write_text(
        MACHINE.replace("99", "255").replace("cores: 64", "cores: 1").replace("100G", "1G")
    )

    def searched(phase, details):
        seen.append(phase)

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        sent, received = bytearray(comm.size), bytearray(comm.size)
        comm.Barrier()
        if comm.rank == 0:
            seen.append("begin")
        comm.Alltoall(sent, received)
        if comm.rank == 0:
            seen.append("end")

    gc.callbacks.append(searched)
    try:
        pysmpi.run(
            main, nprocs=256, compute="none", platform=machine, coll={"alltoall": "basic_linear"}
        )
    finally:
        gc.callbacks.remove(searched)
    assert seen[seen.index("begin") : seen.index("end")] == ["begin"]
