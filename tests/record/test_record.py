"""Runs of a real MPI library are recorded, and their recordings are replayed."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pysmpi.analysis.why import read_analysis
from pysmpi.replay import Replay
from pysmpi.trace.lines import read_lines

APPS = Path(__file__).parents[2] / "apps"
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="mpiexec of a real MPI is not installed")

PROGRAM = """
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
me, size = comm.rank, comm.size
after, before = (me + 1) % size, (me - 1) % size
requests = [comm.Irecv(np.zeros(10), source=MPI.ANY_SOURCE, tag=1)]
requests.append(comm.Isend(np.zeros(10), after, 1))
MPI.Request.Waitall(requests)
request = comm.isend({"a": 1}, after, 2)
assert comm.recv(source=before, tag=2) == {"a": 1}
request.wait()
half = comm.Split(me % 2, -me)
half.Allreduce(np.zeros(5), np.zeros(5))
assert comm.allgather(me) == list(range(size))
comm.Ibcast(np.zeros(1000), 1).Wait()
comm.Gatherv(np.zeros(me + 1), [np.zeros(6), [1, 2, 3]] if me == 0 else None)
send, receive = comm.Send_init(np.zeros(7), after, 3), comm.Recv_init(np.zeros(7), before, 3)
for _ in range(3):
    MPI.Prequest.Startall([send, receive])
    MPI.Request.Waitall([send, receive])
while not (request := comm.Ibarrier()).Test():
    request.Wait()
    break
comm.reduce(me)
comm.allreduce("x" * 100 * me, MPI.MAX)  # the longest counts
if me == 0:
    raise SystemExit
"""


def record(folder, ranks, *words):
    """Record a program; the recording."""
    path = folder / "run.jsonl"
    done = subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), sys.executable, "-m", "pysmpi.record", "-o", str(path),
         "--host-speed", "4Gf", *map(str, words)],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return path


def test_jacobi(tmp_path):
    path = record(tmp_path, 2, APPS / "jacobi2d.py", "--size", "61", "--iterations", "20")
    recording = read_lines(path)
    assert recording.complete and recording.nprocs == 2
    assert {call.name for call in recording.calls} >= {"Barrier", "Sendrecv", "Allreduce"}
    assert all(call.start <= call.end for call in recording.calls)
    site = next(call.site for call in recording.calls if call.name == "Sendrecv")
    assert "jacobi2d.py:" in site
    # Four exchanges of an edge of 61 points, of which one has a partner.
    sent = sum(call.sent for call in recording.calls if call.name == "Sendrecv")
    received = sum(call.received for call in recording.calls if call.name == "Sendrecv")
    assert sent == received == 2 * 20 * 61 * 8
    result = Replay([(path, 0.0)], platform="graphene").run()
    compute = max(
        sum(block.end - block.start for block in recording.computes() if block.rank == rank)
        for rank in (0, 1)
    )
    assert result.seconds > 0.5 * compute * 4e9 / 3.542e9
    slower = Replay([(path, 0.0)], platform="graphene", core_speed=1e9).run()
    assert slower.seconds > result.seconds
    explained(path, recording)


def explained(path, recording):
    """Check the analysis of a recording: its dates are the measured ones."""
    found = read_analysis(str(path))
    pieces = found.path.pieces
    assert pieces[0].begin == 0.0
    assert all(one.end == following.begin for one, following in zip(pieces, pieces[1:]))
    assert found.path.seconds == recording.seconds
    calls = {call.name for call in recording.calls}
    assert {site.name.partition(" ")[0] for site in found.profile.sites if site.calls} == calls
    waited, compute = sum(found.profile.waited), sum(found.profile.compute)
    assert waited > 0.0 and compute > 0.0
    assert waited + compute <= sum(recording.ends) * (1 + 1e-9)
    sends = sum(one[0] == "send" for call in recording.calls for one in call.operations)
    assert len(found.graph.record.messages) == sends


def test_requests_communicators_and_objects(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    path = record(tmp_path, 3, program)
    recording = read_lines(path)
    assert recording.complete
    counts = {name: 0 for name in ("Waitall", "isend", "recv", "Split", "allgather", "reduce")}
    for call in recording.calls:
        if call.name in counts:
            counts[call.name] += 1
    assert counts == {"Waitall": 12, "isend": 3, "recv": 3, "Split": 3, "allgather": 3, "reduce": 3}
    sizes = {operation[6] for call in recording.calls for operation in call.operations
             if operation[0] == "send"}  # fmt: skip
    assert {80, 56} < sizes
    reductions = [call for call in recording.calls if call.name == "allreduce"]
    blocks = [
        part["count"] for call in reductions for operation in call.operations
        for part in operation if isinstance(part, dict)
    ]  # fmt: skip
    assert blocks == [len(pickle.dumps("x" * 200))] * 3
    explained(path, recording)
    members = {tuple(one.members) for one in recording.communicators.values()}
    assert {(0, 1, 2), (2, 0), (1,)} <= members
    for machine in ("graphene", "laptop"):
        result = Replay([(path, 0.0)], platform=machine).run()
        assert result.instances[0]["complete"] and result.messages > 3 * 6


def test_a_program_that_is_not_there(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi.record", "none.py"], cwd=tmp_path, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2 and "no such file: none.py" in done.stderr
    assert "Traceback" not in done.stderr


SLEEPER = """
import time
from mpi4py import MPI

MPI.COMM_WORLD.Barrier()
time.sleep(0.3)
MPI.COMM_WORLD.Barrier()
end = time.thread_time() + 0.2
while time.thread_time() < end:
    pass
MPI.COMM_WORLD.Barrier()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are accounted for on Linux")
def test_a_sleep_is_no_compute(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SLEEPER)
    recording = read_lines(record(tmp_path, 2, program))
    for rank in (0, 1):
        asleep, busy = (call.operations for call in recording.calls_of(rank)[1:3])
        assert asleep[0][0] == "compute" and asleep[0][1] < 0.1
        assert asleep[1][0] == "pass" and 0.2 < asleep[1][1]
        # The computer may take the core away for longer; that is not compute.
        assert busy[0][0] == "compute" and 0.15 < busy[0][1] < 0.35
        assert all(one[0] != "pass" for one in busy)


def test_compute_takes_as_long_on_a_machine_without_speeds(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SLEEPER)
    path = record(tmp_path, 2, program)
    machine = tmp_path / "machine.yaml"
    machine.write_text(
        "name: plain\nclusters:\n- name: plain\n  hosts: plain-[0-1]\n"
        "  network: {bandwidth: 10GBps, latency: 1us}\n"
    )
    recording = read_lines(path)
    longest = max(
        sum(one[1] for call in recording.calls_of(rank) for one in call.operations
            if one[0] in ("compute", "pass"))
        for rank in (0, 1)
    )  # fmt: skip
    result = Replay([(path, 0.0)], platform=str(machine)).run()
    assert longest <= result.seconds < longest + 0.1
