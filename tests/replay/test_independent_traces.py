"""Time-independent traces of pysmpi are replayed alike by pysmpi and by smpirun."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from test_replay_of_recordings import APPS, ARGUMENTS, RANKS, app_cases, communicators, requests

import pysmpi
from pysmpi.replay import Replay

DATA = Path(__file__).parents[1] / "data"
MACHINES = ["flat.default", "fat_tree.hybrid", "graphene.hybrid"]
smpirun = pytest.mark.skipif(
    shutil.which("smpirun") is None, reason="smpirun is not installed (Debian: simgrid)"
)


def seconds_of_smpirun(trace, machine, replay, folder):
    """The time that smpirun predicts for a trace, with the ranks on the same hosts."""
    (folder / "index").write_text(f"{trace}\n")
    hosts = [slot.host.name for slot in replay.machine.slots]
    (folder / "hosts").write_text("".join(f"{host}\n" for host in hosts))
    done = subprocess.run(
        ["smpirun", "-np", str(len(hosts)), "-platform", machine, "-hostfile", "hosts", "-replay",
         "index", "--log=smpi_replay.thresh:critical", "--cfg=smpi/display-timing:yes"],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    found = re.search(r"Simulation time ([\d.]+)|Simulated time: ([\d.]+)", done.stderr)
    assert found is not None, done.stderr[-2000:]
    return float(found[1] or found[2])


def traced(program, machine, folder, nprocs=4, **options):
    """The result of a run, its trace, and the replay of the trace."""
    trace = folder / "run.ti"
    result = pysmpi.run(program, nprocs, platform=machine, compute="10us", trace=trace, **options)
    return result, trace, Replay([(trace, 0.0)], platform=machine)


@smpirun
@pytest.mark.parametrize(("app", "machine"), app_cases(MACHINES))
def test_apps(app, machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    machine = str(DATA / "platforms" / f"{machine}.xml")
    result, trace, replay = traced(
        APPS / f"{app}.py", machine, tmp_path, RANKS.get(app, 4), args=ARGUMENTS[app]
    )
    assert replay.run().seconds == pytest.approx(result.seconds, rel=1e-3)
    there = seconds_of_smpirun(trace, machine, replay, tmp_path)
    # smpirun prints six decimals.
    assert there == pytest.approx(result.seconds, rel=1e-2, abs=1e-6)


@pytest.mark.parametrize("program", [requests, communicators])
def test_programs(program, tmp_path):
    result, _, replay = traced(program, str(DATA / "platforms" / "flat.default.xml"), tmp_path)
    # Synchronous sends become standard ones, and collective calls in the background block.
    assert replay.run().seconds == pytest.approx(result.seconds, rel=0.05)


def test_every_collective_of_the_format(tmp_path):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        size, me = comm.size, comm.rank
        one, all_of_them = np.zeros(100), np.zeros(100 * size)
        comm.Barrier()
        comm.Bcast(one, 1)
        comm.Reduce(one, one.copy(), root=2)
        comm.Allreduce(one, one.copy())
        comm.Scan(one, one.copy())
        comm.Exscan(one, one.copy())
        comm.Gather(one, all_of_them if me == 1 else None, 1)
        comm.Scatter(all_of_them if me == 1 else None, one, 1)
        comm.Allgather(one, all_of_them)
        comm.Alltoall(all_of_them, all_of_them.copy())
        comm.Reduce_scatter_block(all_of_them, one)
        counts = [10 * (rank + 1) for rank in range(size)]
        parts = np.zeros(sum(counts))
        mine = np.zeros(counts[me])
        comm.Gatherv(mine, [parts, counts] if me == 2 else None, 2)
        comm.Scatterv([parts, counts] if me == 2 else None, mine, 2)
        comm.Allgatherv(mine, [parts, counts])
        comm.Reduce_scatter(parts, mine, counts)
        back = np.zeros(counts[me] * size)
        comm.Alltoallv([parts, counts], [back, [counts[me]] * size])
        comm.Bcast([np.zeros(99, "i1"), 33, MPI.INT8_T.Create_contiguous(3).Commit()], 0)

    machine = str(DATA / "platforms" / "flat.default.xml")
    result, trace, replay = traced(main, machine, tmp_path)
    replayed = replay.run()
    assert replayed.seconds == pytest.approx(result.seconds, rel=1e-3)
    assert replayed.messages == result.messages and replayed.bytes == result.bytes
    actions = {line.split()[1] for line in trace.read_text().splitlines()}
    assert len(actions) == len("init finalize compute".split()) + 15 and "send" not in actions
    if shutil.which("smpirun"):
        there = seconds_of_smpirun(trace, machine, replay, tmp_path)
        assert there == pytest.approx(result.seconds, rel=1e-2, abs=1e-6)


def test_polls_of_a_collective_call_do_not_count_twice(tmp_path):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        time.sleep(0.01 * comm.rank)
        request = comm.Ibarrier()
        while not request.Test():
            pass
        comm.Barrier()

    result, _, replay = traced(main, "graphene", tmp_path)
    assert result.seconds > 0.03
    # The compute between polls remains, which begins after the wait.
    assert replay.run().seconds == pytest.approx(result.seconds, rel=0.15)
