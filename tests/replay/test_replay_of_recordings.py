"""A replay of a recording takes the time of the recorded run, on the machine of the recording."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.replay import Replay
from pysmpi.trace.conversion import convert
from pysmpi.trace.kinds.jsonl import LinesFormat
from pysmpi.trace.lines import read_lines
from pysmpi.trace.model import Recording

APPS = Path(__file__).parents[2] / "apps"
ARGUMENTS = {
    "dft": ["--grid", "16", "--orbitals", "7", "--iterations", "2"],
    "jacobi2d": ["--size", "61", "--iterations", "20"],
    "master_worker": ["--limit", "20000", "--task", "3000"],
    "nbody": ["--bodies", "67", "--steps", "5"],
    "npb_cg": ["--class", "S"],
    "pingpong": [],
    "npb_ep": [],
    "npb_ft": [],
    "npb_is": [],
    "npb_mg": [],
    "npb_lu": [],
    "npb_dt": ["BH"],
    "hpl": ["--size", "60", "--block", "8"],
    "sweep3d": ["--edge", "6", "--iterations", "2"],
}
RANKS = {"pingpong": 2, "npb_dt": 5}


def app_cases(machines):
    """Pairs of a program and a machine: machines take turns, unless PYSMPI_MACHINES=all."""
    if os.environ.get("PYSMPI_MACHINES") == "all":
        return list(itertools.product(ARGUMENTS, machines))
    return list(zip(ARGUMENTS, itertools.cycle(machines)))


def recorded(folder, program, nprocs=4, **options):
    """The result of a run, and the result of the replay of its recording."""
    path = folder / "run.jsonl"
    result = pysmpi.run(program, nprocs, trace=path, **options)
    return result, Replay([(path, 0.0)]).run()


def test_all_apps_are_here():
    assert {path.stem for path in APPS.glob("*.py")} - {"npb"} == set(ARGUMENTS)


@pytest.mark.parametrize(("app", "machine"), app_cases(["graphene", "laptop"]))
def test_apps(app, machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = APPS / f"{app}.py"
    result, replay = recorded(
        tmp_path, program, RANKS.get(app, 4), args=ARGUMENTS[app], platform=machine
    )
    assert replay.seconds == pytest.approx(result.seconds, rel=1e-3)
    assert replay.messages == result.messages and replay.bytes == result.bytes
    ends = [rank["end_seconds"] for rank in result.ranks]
    assert replay.end_seconds == pytest.approx(ends, rel=1e-3)


def requests():
    """Every way to start and to end a request."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    me, size = comm.rank, comm.size
    after, before = (me + 1) % size, (me - 1) % size
    first = comm.Ibcast(np.zeros(10_000), 0)
    second = comm.Iallreduce(np.zeros(10), np.zeros(10))
    MPI.Request.Waitall([first, second])
    if me % 2:
        comm.Issend(np.zeros(10), after).Wait()
    else:
        comm.Recv(np.zeros(10), before)
    if me == 0:
        pending = [comm.Irecv(np.zeros(10_000)) for _ in range(size - 1)]
        for _ in pending:
            MPI.Request.Waitany(pending)
    elif me % 2:
        comm.Ssend(np.zeros(10_000), 0)
    else:
        comm.Send(np.zeros(10_000), 0)
    send, receive = comm.Send_init(np.zeros(9), after, 3), comm.Recv_init(np.zeros(9), before, 3)
    for _ in range(5):
        MPI.Prequest.Startall([send, receive])
        MPI.Request.Waitall([send, receive])
    barrier = comm.Barrier_init()
    barrier.Start()
    barrier.Wait()
    request = comm.Irecv(np.zeros(5), before, 8)
    sent = comm.Isend(np.zeros(5), after, 8)
    while not request.Test():
        pass
    sent.Wait()
    comm.Isendrecv(np.zeros(5), after, 0, np.zeros(5), before, 0).Wait()


def probes():
    """Messages that are found before they are received."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    me, size = comm.rank, comm.size
    after = (me + 1) % size
    for count in (100, 100_000):
        for find in (comm.Mprobe, comm.Improbe, comm.mprobe):
            time.sleep(1e-3 * me)
            request = comm.Isend(np.zeros(count), after, 2)
            while (message := find(MPI.ANY_SOURCE, 2)) is None:
                pass
            if me % 2:
                message.Recv(np.zeros(count))
            else:
                message.Irecv(np.zeros(count)).Wait()
            request.Wait()
        time.sleep(1e-3 * me)
        request = comm.Isend(np.zeros(count), after, 3)
        status = MPI.Status()
        comm.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        time.sleep(2e-3)
        comm.Recv(np.zeros(count), status.source, status.tag)
        request.Wait()


def partitions():
    """Partitioned messages; the other side may be known only after the first start."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    data = np.zeros(80_000, np.uint8)
    time.sleep(1e-3 * comm.rank)
    send = comm.Psend_init(data, 4, after, 5)
    receive = comm.Precv_init(data.copy(), 2, before, 5)
    for _ in range(10):
        MPI.Prequest.Startall([send, receive])
        for part in (2, 0, 3, 1):
            send.Pready(part)
        MPI.Request.Waitall([send, receive])


def communicators():
    """Collective calls on communicators of several kinds."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    size = comm.size
    half = comm.Split(comm.rank % 2, -comm.rank)
    half.Allgather(np.zeros(100), np.zeros(100 * half.size))
    half.Reduce_scatter(np.zeros(10 * half.size), np.zeros(10), [10] * half.size)
    ring = comm.Create_cart([size], [True])
    ring.Neighbor_allgather(np.zeros(5), np.zeros(10))
    inter = half.Create_intercomm(half.size - 1, comm, 1 - comm.rank % 2, 5)
    inter.Barrier()
    inter.allgather(1)
    comm.alltoall(list(range(size)))
    comm.Allgatherv(np.zeros(comm.rank), [np.zeros(6), [0, 1, 2, 3], None, MPI.DOUBLE])


def memory_of_others():
    """One-sided communication."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    target = (comm.rank + 1) % comm.size
    window = MPI.Win.Allocate(80_000, 1, comm=comm)
    window.Fence()
    window.Put(np.zeros(50_000, "u1"), target)
    window.Fence()
    window.Lock(target)
    window.Get(np.zeros(70_000, "u1"), target)
    window.Unlock(target)
    window.Free()


def other_time():
    """Time that passes without messages, and ranks that begin later."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    time.sleep(0.01 * comm.rank)
    comm.Barrier()
    if comm.rank == 0:
        line = "from mpi4py import MPI; MPI.Comm.Get_parent().Disconnect()"
        MPI.COMM_SELF.Spawn(sys.executable, ["-c", line], 2).Disconnect()
    comm.Barrier()


@pytest.mark.parametrize("machine", ["graphene", "xeon-e5-2650"])
@pytest.mark.parametrize("program", [requests, probes, communicators, memory_of_others, other_time])
def test_programs(program, machine, tmp_path):
    result, replay = recorded(tmp_path, program, platform=machine, compute="1ms")
    # The caches of the described machine hold buffers, which a replay does not have.
    within = 5e-3 if (program, machine) == (probes, "xeon-e5-2650") else 1e-3
    assert replay.seconds == pytest.approx(result.seconds, rel=within)
    assert replay.messages == result.messages


def partitions_of_two_groups():
    """Partitioned and other messages of an intercommunicator, in both directions."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    side = comm.rank // 2  # the second group has more ranks
    inter = comm.Split(side > 0).Create_intercomm(0, comm, 0 if side else 2)
    data = np.zeros(80_000, np.uint8)
    if inter.remote_size == 2:
        pairs = {0: 1, 2: 0}
        if inter.rank in pairs:
            inter.Send(data, pairs[inter.rank], 3)
            request = inter.Psend_init(data, 4, pairs[inter.rank], 5)
    else:
        pairs = {1: 0, 0: 2}
        inter.Recv(data, pairs[inter.rank], 3)
        request = inter.Precv_init(data, 2, pairs[inter.rank], 5)
    if inter.rank in pairs:
        for _ in range(3):
            request.Start()
            if inter.remote_size == 2:
                for part in (2, 0, 3, 1):
                    request.Pready(part)
            request.Wait()


def late_partitions(first=1e-3, receives=True):
    """One side comes while the other, which was there before, computes."""
    from mpi4py import MPI

    comm, own = MPI.COMM_WORLD, MPI.COMM_SELF
    data = np.zeros(400_000, np.uint8)
    small = np.zeros(8)
    if comm.rank > 1:
        return
    late = comm.rank == receives
    for _ in range(3):
        if late:
            time.sleep(first)
        if comm.rank == 0:
            request = comm.Psend_init(data, 4, 1, 5)
        else:
            request = comm.Precv_init(data, 4, 0, 5)
        request.Start()
        for part in range(4):
            if not late:
                own.Sendrecv(small, 0, 0, small.copy(), 0, 0)
            if comm.rank == 0:
                request.Pready(part)
        request.Wait()


def late_receives():
    late_partitions(receives=False)


def dates(path):
    """The dates at which messages and receives were posted, left and arrived."""
    return sorted(
        (one.source, one.posted, one.ready, one.start, one.end) for one in read_lines(path).messages
    )


@pytest.mark.parametrize("receives", [False, True])
@pytest.mark.parametrize("first", [1e-3, 2e-2])
def test_late_messages_on_other_cores(first, receives, tmp_path):
    """The late side is the early one there, or later still."""
    path = tmp_path / "run.jsonl"
    options = {"args": (first, receives), "platform": "graphene"}
    pysmpi.run(late_partitions, 2, trace=path, compute="1ms", **options)
    speed = read_lines(path).places[0].speed
    for factor, compute in ((0.01, "100ms"), (0.1, "10ms"), (10.0, "100us"), (100.0, "10us")):
        there = pysmpi.run(late_partitions, 2, compute=compute, **options)
        replay = Replay([(path, 0.0)], core_speed=factor * speed).run()
        assert replay.messages == there.messages
        assert replay.seconds == pytest.approx(there.seconds, rel=0.05)


@pytest.mark.parametrize(
    "program", [partitions, partitions_of_two_groups, late_partitions, late_receives]
)
@pytest.mark.parametrize("compute", ["none", "20us", "1ms"])
def test_partitioned_messages(program, compute, tmp_path):
    result, replay = recorded(tmp_path, program, 5, platform="graphene", compute=compute)
    assert replay.seconds == pytest.approx(result.seconds, rel=1e-12)
    assert replay.messages == result.messages and replay.bytes == result.bytes
    ends = [rank["end_seconds"] for rank in result.ranks]
    assert replay.end_seconds == pytest.approx(ends, rel=1e-12)
    again = Recording()
    recording = tmp_path / "again.jsonl"
    Replay([(tmp_path / "run.jsonl", 0.0)]).run(LinesFormat(str(recording)))
    for was, now in zip(dates(tmp_path / "run.jsonl"), dates(recording), strict=True):
        assert now == pytest.approx(was, rel=1e-12)
    assert Replay([(recording, 0.0)]).run(again).end_seconds == pytest.approx(ends, rel=1e-12)


def test_messages_of_two_groups_have_their_ranks(tmp_path):
    """Those of the run, of its replay, and of the replay of its time-independent trace."""
    path = tmp_path / "run.jsonl"
    pysmpi.run(partitions_of_two_groups, 5, platform="graphene", trace=path)
    convert(str(path), str(tmp_path / "run.ti"))
    recordings = [read_lines(path), Recording(), Recording()]
    Replay([(path, 0.0)]).run(recordings[1])
    Replay([(tmp_path / "run.ti", 0.0)], platform="graphene").run(recordings[2])
    for recording in recordings:
        found = Counter(
            (one.source, one.destination)
            for one in recording.messages if one.nbytes >= 40_000
        )  # fmt: skip
        assert found == {(2, 1): 7, (4, 0): 7}


SHADOWS = """
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
def field():
    return np.zeros(200_000)
def work(values):
    values += 1.0
def table():
    return np.arange(100_000.0)

table()
mine, theirs = field(), field()
after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
for _ in range(6):
    work(mine)
    comm.Sendrecv(mine, after, 0, theirs, before, 0)
    comm.Allreduce(mine[:100].copy(), theirs[:100])
"""


@pytest.mark.parametrize("machine", ["graphene", "laptop"])
@pytest.mark.parametrize(
    "options",
    [
        {"fold": ["1MiB"]},
        {"fold": ["__main__:field"], "sample": ["__main__:work:iters=2"]},
        {"once": ["__main__:table"], "data": "1KiB"},
        {"sample": ["auto"], "data": "none"},
    ],
    ids=lambda options: "+".join(options),
)
def test_folded_memory_and_skipped_work(options, machine, tmp_path):
    """A recording has the charged time of skipped work, and messages without their data."""
    program = tmp_path / "shadows.py"
    program.write_text(SHADOWS)
    result, replay = recorded(tmp_path, str(program), 6, platform=machine, **options)
    assert replay.seconds == pytest.approx(result.seconds, rel=1e-3)
    assert replay.messages == result.messages and replay.bytes == result.bytes


def test_another_machine(tmp_path):
    """Compute is flops, and collective calls are those of the other machine's selection."""

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        for _ in range(3):
            comm.Allreduce(np.zeros(1000), np.zeros(1000))
            comm.Bcast(np.zeros(100_000), 1)
            if comm.rank == 0:
                for _ in range(comm.size - 1):
                    comm.recv()
            else:
                comm.send(bytes(1000 * comm.rank), 0)

    path = tmp_path / "run.jsonl.gz"
    pysmpi.run(main, 4, trace=path, platform="graphene", compute="none")
    for options in ({"platform": "fat-tree"}, {"platform": "graphene", "selector": "mpich"}):
        there = pysmpi.run(main, 4, compute="none", **options)
        replay = Replay([(path, 0.0)], **options).run()
        assert replay.seconds == pytest.approx(there.seconds, rel=1e-3)
    pysmpi.run(lambda: None, 1, compute="none", trace=path, platform="graphene")
    assert Replay([(path, 0.0)], core_speed=1e9).run().seconds == 0.0


def test_faster_cores(tmp_path):
    def main():
        from mpi4py import MPI

        MPI.COMM_WORLD.Barrier()

    path = tmp_path / "run.jsonl"
    result = pysmpi.run(main, 1, trace=path, compute="1s", platform="graphene")
    speed = json.loads(path.read_text().splitlines()[1])[4]
    again = tmp_path / "again.jsonl"
    half = Replay([(path, 0.0)], core_speed=speed / 2).run(LinesFormat(str(again)))
    assert half.seconds == pytest.approx(2 * result.seconds)
    computes = [
        sum(one.end - one.start for one in read_lines(name).computes()) for name in (path, again)
    ]
    assert computes == [pytest.approx(result.seconds), pytest.approx(2 * result.seconds)]


def test_two_recordings_share_a_machine(tmp_path):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank == 0:
            comm.Send(np.zeros(10_000_000), 1)
        else:
            comm.Recv(np.zeros(10_000_000), 0)

    path = tmp_path / "run.jsonl"
    result = pysmpi.run(main, 2, trace=path, compute="none", platform="graphene")
    both = Replay([(path, 0.0), (path, 7.0)], platform="graphene").run()
    assert both.instances[0]["end_seconds"] == pytest.approx(result.seconds, rel=1e-6)
    assert both.instances[1]["end_seconds"] == pytest.approx(7.0 + result.seconds, rel=1e-6)


def test_a_recording_without_its_end(tmp_path):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.Barrier()
        for _ in range(10):
            comm.Sendrecv(np.zeros(10), 1 - comm.rank, 0, np.zeros(10), 1 - comm.rank, 0)

    path = tmp_path / "run.jsonl"
    whole = pysmpi.run(main, 2, trace=path, platform="graphene", compute="1ms")
    lines = path.read_bytes().splitlines(keepends=True)
    assert Replay([(path, 0.0)]).run().instances[0]["complete"]
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:5])
    result = Replay([(path, 0.0)]).run()
    assert result.seconds == pytest.approx(whole.seconds) and not result.instances[0]["complete"]
    calls = [i for i, line in enumerate(lines) if line.startswith(b'["call"')]
    path.write_bytes(b"".join(lines[: calls[-3]]))
    with pytest.raises(UsageError, match="run.jsonl: it has no end: the run was stopped, or the"):
        Replay([(path, 0.0)]).run()
