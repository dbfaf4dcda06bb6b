"""Strategies make the choices that MPI leaves open, and their schedules repeat runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import pysmpi
from pysmpi.explore.schedule import Decisions
from pysmpi.explore.strategy import STRATEGIES, make_strategy
from pysmpi.kernel.choices import MATCH, Alternative

REPEATS = int(os.environ.get("PYSMPI_REPEATS", "1"))  # seeds of each program and strategy
CONTROLLED = ["random", "urw", "pct:2", "pct:3", "delay:1", "delay:2", "portfolio"]


def run(main: Callable[[], Any], nprocs: int, **options: Any) -> pysmpi.Result:
    return pysmpi.run(main, nprocs, compute="none", check=False, **options)


def gather() -> list[int] | None:
    """Rank 0 receives from all others, in any order."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        comm.send(comm.rank, dest=0)
        return None
    return [comm.recv(source=MPI.ANY_SOURCE) for _ in range(comm.size - 1)]


def waitany() -> list[int] | None:
    """Rank 0 learns which request is complete first."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        comm.send(comm.rank, dest=0)
        return None
    requests = [comm.irecv(source=peer) for peer in range(1, comm.size)]
    return [MPI.Request.waitany(requests)[0] for _ in requests]


def polling() -> list[int] | None:
    """Rank 0 asks for messages until it has all."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        comm.send(comm.rank, dest=0)
        return None
    found: list[int] = []
    while len(found) < comm.size - 1:
        status = MPI.Status()
        if comm.iprobe(source=MPI.ANY_SOURCE, status=status):
            found.append(comm.recv(source=status.source))
    return found


def mprobe() -> list[int] | None:
    """Rank 0 takes messages with matched probes."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        comm.send(comm.rank, dest=0)
        return None
    return [comm.mprobe(source=MPI.ANY_SOURCE).recv() for _ in range(comm.size - 1)]


def locks() -> list[int] | None:
    """Each rank replaces the number under a lock; the last one stays."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    last = numpy.zeros(comm.size, "i")
    win = MPI.Win.Create(last, 4, comm=comm)
    comm.Barrier()
    if comm.rank:
        win.Lock(0)
        count = numpy.zeros(comm.size, "i")
        win.Get([count, comm.size, MPI.INT], 0)
        win.Flush(0)
        place = int(numpy.count_nonzero(count))
        win.Put([numpy.array([comm.rank], "i"), 1, MPI.INT], 0, [place, 1, MPI.INT])
        win.Unlock(0)
    comm.Barrier()
    win.Free()
    return None if comm.rank else [int(rank) for rank in last[:-1]]


def counter() -> list[int] | None:
    """Ranks draw tickets."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    memory = numpy.zeros(1, "i")
    win = MPI.Win.Create(memory, 4, comm=comm)
    win.Lock_all()
    ticket = numpy.zeros(1, "i")
    if comm.rank:
        win.Fetch_and_op(numpy.ones(1, "i"), ticket, 0)
        win.Flush(0)
    win.Unlock_all()
    tickets = comm.gather(int(ticket[0]))
    win.Free()
    if comm.rank:
        return None
    return [1 + rank for rank in numpy.argsort(tickets[1:], kind="stable")]


def pointer(path: str) -> list[int] | None:
    """Ranks append to a file with its shared pointer."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
    if comm.rank:
        file.Write_shared(bytes([comm.rank]))
    comm.Barrier()
    data = bytearray(comm.size - 1)
    file.Read_at(0, data)
    file.Close()
    return None if comm.rank else list(data)


PROGRAMS = [gather, waitany, polling, mprobe, locks, counter]


@pytest.mark.parametrize("program", PROGRAMS)
def test_random_schedules_reach_every_order(program: Callable[[], Any]) -> None:
    seen: set[tuple[int, ...]] = set()
    for seed in range(150):
        result = run(program, 4, schedule="random", seed=seed)
        assert result.exit_status == 0, result.error
        seen.add(tuple(result.returns[0]))
        if len(seen) == 6:
            return
    raise AssertionError(f"only {sorted(seen)}")


def test_random_schedules_reach_every_order_of_a_shared_pointer(tmp_path: Any) -> None:
    seen = set()
    for seed in range(30):
        result = run(pointer, 3, args=[str(tmp_path / "data")], schedule="random", seed=seed)
        assert result.exit_status == 0, result.error
        seen.add(tuple(result.returns[0]))
    assert seen == {(1, 2), (2, 1)}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("schedule", CONTROLLED)
def test_a_schedule_repeats_the_run(program: Callable[[], Any], schedule: str) -> None:
    begin = PROGRAMS.index(program)  # so that programs have different seeds
    for seed in range(begin, begin + REPEATS):
        first = run(program, 4, schedule=schedule, seed=seed)
        assert first.exit_status == 0, first.error
        assert first.schedule is not None
        again = run(program, 4, schedule=schedule, seed=seed)
        assert (again.returns, again.schedule) == (first.returns, first.schedule)
        replayed = run(program, 4, replay_schedule=first.schedule)
        assert (replayed.returns, replayed.schedule) == (first.returns, first.schedule)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_default_schedule_is_the_order_of_posting(program: Callable[[], Any]) -> None:
    result = run(program, 4, replay_schedule="default")
    assert sorted(result.returns[0]) in ([1, 2, 3], [0, 1, 2])


def exchange() -> None:
    """Head-to-head sends: they rely on buffers."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.send(b"x", dest=1 - comm.rank)
    comm.recv(source=1 - comm.rank)


def test_sends_are_buffered_or_not() -> None:
    ends = Counter(run(exchange, 2, schedule="random", seed=seed).exit_status for seed in range(20))
    assert set(ends) == {0, 3}
    failed = run(exchange, 2, replay_schedule="s")
    assert failed.deadlock is not None
    assert failed.repeat is not None and "replay_schedule='s:" in failed.repeat


def test_noise_keeps_the_clock_and_depends_on_the_seed() -> None:
    found = {run(gather, 4, schedule="noise:300", seed=seed).seconds for seed in range(5)}
    assert len(found) == 5 and min(found) > 0.0
    again = run(gather, 4, schedule="noise:300", seed=3)
    assert again.seconds in found


def crowd() -> None:
    """Rank 0 sends to ranks 1 and 2; ranks 3 and 4 send to rank 1."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = [bytearray(1_000_000) for _ in range(3)]
    if comm.rank == 0:
        MPI.Request.Waitall([comm.Isend(data[0], dest=1), comm.Isend(data[0], dest=2)])
    elif comm.rank == 1:
        MPI.Request.Waitall([comm.Irecv(data[i], source=(0, 3, 4)[i]) for i in range(3)])
    elif comm.rank == 2:
        comm.Recv(data[0], source=0)
    else:
        comm.Send(data[0], dest=1)


def test_noise_keeps_the_penalties_of_model_ib() -> None:
    # The message to rank 2 shares a link with one other, but leaves a host with a crowded receiver.
    ends = {
        (model, schedule): run(crowd, 5, platform="cluster", model=model, schedule=schedule).ranks[
            2
        ]["end_seconds"]
        for model in ("ib", "fluid")
        for schedule in ("time", "noise:0.0001")
    }
    assert ends["ib", "time"] > 1.05 * ends["fluid", "time"]
    assert ends["ib", "noise:0.0001"] == pytest.approx(ends["ib", "time"], rel=1e-3)


def test_the_guarantee_of_pct_is_right() -> None:
    result = run(gather, 4, schedule="pct:2", seed=1)
    # Two steps have a choice: three messages, then two.
    assert result.schedule_note is not None
    assert "n=4 ranks, k=2 steps" in result.schedule_note
    assert f"at most {1 - 1 / (4 * 2):.4g}" in result.schedule_note


def test_priorities_change_at_any_step_of_the_longest_run() -> None:
    """Each of the k steps is as likely as the others, as the guarantee assumes."""
    steps, runs = 10, 2000
    options = [Alternative(MATCH, f"{pid}", pid, "", 0) for pid in (0, 1)]
    strategy = make_strategy("pct:2", 1)
    strategy.begin(0, 2)
    strategy.end([0] * steps)  # so long was a run
    changes: Counter[int] = Counter()
    for number in range(1, runs):
        strategy.begin(number, 2)
        pids = [strategy.pick(MATCH, options) for _ in range(steps)]
        changes.update(i for i in range(1, steps) if pids[i] != pids[i - 1])
    assert set(changes) == set(range(1, steps))  # one at step 0 decides who begins
    assert all(0.7 < changes[i] * steps / runs < 1.3 for i in changes)


def test_every_strategy_has_a_line() -> None:
    assert {"random", "urw", "pct", "delay", "noise", "portfolio"} <= set(STRATEGIES.names())
    assert all(kind.line for kind in STRATEGIES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "pct:x"}, "--schedule pct:x: expected pct:D"),
        ({"schedule": "radnom"}, "did you mean random?"),
        ({"schedule": "random:3"}, "expected random without an argument"),
        ({"schedule": "noise:-1"}, "expected noise:PERCENT"),
        ({"replay_schedule": "what"}, "--replay-schedule: expected a schedule"),
        ({"schedule": "urw", "replay_schedule": "default"}, "expected no --schedule"),
    ],
)
def test_wrong_schedules_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(pysmpi.UsageError) as caught:
        run(gather, 2, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "schedule",
    [
        Decisions(),
        Decisions(3, None, {12: 2, 4: 1}, "00ff"),
        Decisions(0, frozenset({4, 1}), {}),
    ],
)
def test_schedules_are_text(schedule: Decisions) -> None:
    assert Decisions.parse(str(schedule)) == schedule


PROGRAM = """
import random, threading
from mpi4py import MPI
comm = MPI.COMM_WORLD
names = {str(i) for i in range(20)}
def work():
    comm.send(sorted(names)[comm.rank], dest=0, tag=1)
if comm.rank:
    thread = threading.Thread(target=work)
    thread.start()
    comm.send(random.random(), dest=0)
    thread.join()
else:
    print([comm.recv(source=MPI.ANY_SOURCE) for _ in range(2 * comm.size - 2)])
"""


def test_the_same_seed_gives_the_same_run_in_every_process(tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    outputs = set()
    for hash_seed, interpreted in (("0", ""), ("7", ""), ("7", "1"), ("random", "1")):
        variables = {"PYTHONHASHSEED": hash_seed, "PYSMPI_INTERPRETED": interpreted}
        command = [sys.executable, "-m", "pysmpi", "run", "-n", "3", "--schedule", "random"]
        command += ["--seed", "5", "--report", "-", str(program)]
        ended = subprocess.run(
            command,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        outputs.add(ended.stdout)
    assert len(outputs) == 1
