"""Compute of ranks and threads that share a core: it passes before any clock is read."""

from __future__ import annotations

import _thread
import asyncio
import datetime
import json
import logging
import os
import queue
import resource
import sched
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import pysmpi
from pysmpi.job import job
from pysmpi.mpi.base.ranks import current
from pysmpi.replay import Replay
from pysmpi.time.clock import EPOCH
from pysmpi.time.timing import ConstantTiming

EXACT = 1e-5  # (s): looks at clocks and calls take less


class GivenTiming(ConstantTiming):
    """Blocks take the seconds that the program has announced."""

    def timer(self, pid, speed):
        return GivenTimer()


class GivenTimer:
    def __init__(self):
        self.owed = 0.0

    def start(self):
        """A block begins, or goes on."""

    resume = start

    def stop(self):
        owed, self.owed = self.owed, 0.0
        return owed


def compute(seconds):
    """Compute in the running rank, in a run with `GivenTiming`."""
    current().timer.owed += seconds


@pytest.fixture
def given(monkeypatch):
    monkeypatch.setattr(job, "find_timing", lambda *_, **__: GivenTiming(0.0))


def machine(folder, cores):
    path = folder / f"cores{cores}.yaml"
    path.write_text(f"name: one\nhosts: [{{name: h, speed: 1Gf, cores: {cores}}}]\n")
    return str(path)


@pytest.fixture
def core(tmp_path):
    """A platform of one host with one core."""
    return machine(tmp_path, 1)


def mpi():
    from mpi4py import MPI

    return MPI


def _event_loop_time():
    loop = asyncio.new_event_loop()
    try:
        return loop.time()
    finally:
        loop.close()


CLOCKS = {
    "Wtime": lambda: mpi().Wtime(),
    "time": lambda: time.time() - EPOCH,
    "time_ns": lambda: time.time_ns() * 1e-9 - EPOCH,
    "perf_counter": lambda: time.perf_counter(),
    "perf_counter_ns": lambda: time.perf_counter_ns() * 1e-9,
    "monotonic": lambda: time.monotonic(),
    "monotonic_ns": lambda: time.monotonic_ns() * 1e-9,
    "clock_gettime": lambda: time.clock_gettime(time.CLOCK_MONOTONIC),
    "clock_gettime_ns": lambda: time.clock_gettime_ns(time.CLOCK_REALTIME) * 1e-9 - EPOCH,
    "datetime.now": lambda: datetime.datetime.now().timestamp() - EPOCH,
    "now in UTC": lambda: datetime.datetime.now(datetime.UTC).timestamp() - EPOCH,
    "datetime.today": lambda: datetime.datetime.today().timestamp() - EPOCH,
    "os.times().elapsed": lambda: os.times().elapsed,
    "event loop": _event_loop_time,
    "log record": lambda: logging.LogRecord("", 0, "", 0, "", (), None).created - EPOCH,
}
CPU_CLOCKS = {
    "process_time": lambda: time.process_time(),
    "process_time_ns": lambda: time.process_time_ns() * 1e-9,
    "thread_time": lambda: time.thread_time(),
    "thread_time_ns": lambda: time.thread_time_ns() * 1e-9,
    "CLOCK_PROCESS_CPUTIME_ID": lambda: time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID),
    "CLOCK_THREAD_CPUTIME_ID": lambda: time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID) * 1e-9,
    "os.times().user": lambda: os.times().user,
    "RUSAGE_SELF": lambda: resource.getrusage(resource.RUSAGE_SELF).ru_utime,
    "RUSAGE_THREAD": lambda: resource.getrusage(resource.RUSAGE_THREAD).ru_utime,
}


def _around(read):
    """Seconds of a block by a clock, and of the barrier that follows."""
    comm = mpi().COMM_WORLD
    comm.Barrier()
    begin = read()
    compute(0.2)
    taken = read() - begin
    before = time.perf_counter()
    comm.Barrier()
    return taken, time.perf_counter() - before


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("name", CLOCKS)
def test_a_clock_shows_the_compute_of_all_ranks_on_the_core(given, core, name, ranks):
    result = pysmpi.run(_around, ranks, args=(CLOCKS[name],), platform=core)
    for taken, waited in result.returns:
        assert taken == pytest.approx(0.2 * ranks, abs=EXACT)
        assert waited < 1e-3
    for figures in result.ranks:
        assert figures["compute_seconds"] == pytest.approx(0.2, abs=EXACT)
        assert figures["core_wait_seconds"] == pytest.approx(0.2 * (ranks - 1), abs=EXACT)


@pytest.mark.parametrize("name", CPU_CLOCKS)
def test_a_cpu_clock_counts_the_compute_of_its_own_rank(given, core, name):
    result = pysmpi.run(_around, 2, args=(CPU_CLOCKS[name],), platform=core)
    for taken, waited in result.returns:
        assert taken == pytest.approx(0.2, abs=EXACT)
        assert waited < 1e-3


def test_a_date_is_broken_down_after_the_compute(given, core):
    def main():
        compute(1.5)
        return time.gmtime().tm_sec, datetime.date.today().year

    assert pysmpi.run(main, 2, platform=core).returns == [(3, 2000)] * 2


def test_the_core_is_shared_by_those_who_compute(given, core):
    """Rank 0 computes 0.3 s, rank 1 twice 0.1 s: they share the core until 0.4 s."""

    def main():
        dates = []
        for seconds in [(0.3,), (0.1, 0.1)][mpi().COMM_WORLD.rank]:
            compute(seconds)
            dates.append(time.monotonic())
        return dates

    result = pysmpi.run(main, 2, platform=core)
    assert result.returns[0] == pytest.approx([0.5], abs=EXACT)
    assert result.returns[1] == pytest.approx([0.2, 0.4], abs=EXACT)
    assert [rank["end_seconds"] for rank in result.ranks] == pytest.approx([0.5, 0.4], abs=EXACT)


MODES = ["constant", "recorded"]


@pytest.mark.parametrize("mode", MODES)
def test_blocks_of_every_mode_share_the_core(core, tmp_path, mode):
    def main():
        dates = []
        for _ in range(3):
            dates.append(mpi().Wtime())
        return dates

    path = tmp_path / "blocks.txt"
    lines = "".join(f"{rank} 100000000\n" * 4 for rank in (0, 1))
    path.write_text(f"# pysmpi compute 1, nanoseconds of blocks on a core of flop/s: 1e9\n{lines}")
    how = 0.1 if mode == "constant" else str(path)
    result = pysmpi.run(main, 2, platform=core, compute=how)
    for dates in result.returns:
        assert dates == pytest.approx([0.2, 0.4, 0.6], abs=EXACT)
    assert result.seconds == pytest.approx(0.8, abs=EXACT)


@pytest.mark.parametrize("mode", ["native", "steady"])
def test_measured_compute_shares_the_core(burn, core, mode):
    def main():
        comm = mpi().COMM_WORLD
        comm.Barrier()
        begin = mpi().Wtime()
        burn(10_000_000 * (1 + comm.rank))
        return mpi().Wtime() - begin

    result = pysmpi.run(main, 2, platform=core, compute=mode, host_speed="1Gf")
    assert result.returns == pytest.approx([0.02, 0.03], abs=EXACT)


def test_sampled_compute_shares_the_core(burn, core):
    def main():
        begin = time.monotonic()
        for _ in pysmpi.sample(range(40), iters=4, precision=0.5):
            burn(1_000_000)
        return time.monotonic() - begin

    result = pysmpi.run(main, 2, platform=core, host_speed="1Gf")
    assert result.shadow is not None
    assert result.returns == pytest.approx([0.08, 0.08], abs=EXACT)


def test_without_compute_ranks_look_at_the_clock_in_turn(core):
    def main():
        while time.monotonic() < 1e-5:
            pass
        return time.monotonic()

    result = pysmpi.run(main, 2, platform=core, compute="none")
    assert result.returns == pytest.approx([1e-5, 1e-5], rel=0.01)
    assert pysmpi.run(main, 2, platform=core, compute="none").returns == result.returns


def test_looks_at_the_clock_do_not_switch_where_each_rank_has_its_core(given, tmp_path):
    order = []

    def main():
        for _ in range(3):
            compute(0.1)
            time.monotonic()
            order.append(mpi().COMM_WORLD.rank)

    pysmpi.run(main, 2, platform=machine(tmp_path, 2))
    assert order == [0, 0, 0, 1, 1, 1]


def test_events_come_in_their_order_whoever_looks_at_the_clock(given, core):
    """A rank continues after a look when no event is earlier."""
    seen = []

    def main():
        rank = mpi().COMM_WORLD.rank
        for step in (0.1, 0.3, 0.2)[rank:]:
            compute(step)
            seen.append(time.monotonic())

    pysmpi.run(main, 3, platform=core)
    assert seen == sorted(seen)


# Waits begin after the compute before them.


def _wait_for_socket():
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(0.5)
        with pytest.raises(TimeoutError):
            one.recv(1)


def _wait_in_scheduler():
    one = sched.scheduler(time.monotonic, time.sleep)
    one.enter(0.5, 1, lambda: None)
    one.run()


def _wait_for_alarm():
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    signal.pause()
    signal.signal(signal.SIGALRM, before)


def _wait_for_queue():
    with pytest.raises(queue.Empty):
        queue.Queue().get(timeout=0.5)


def _wait_for_lock():
    lock = threading.Lock()
    lock.acquire()
    assert not lock.acquire(timeout=0.5)


WAITS = {
    "time.sleep": lambda: time.sleep(0.5),
    "Event.wait": lambda: threading.Event().wait(0.5),
    "Lock.acquire": _wait_for_lock,
    "Queue.get": _wait_for_queue,
    "asyncio.sleep": lambda: asyncio.run(asyncio.sleep(0.5)),
    "sched": _wait_in_scheduler,
    "socket": _wait_for_socket,
    "alarm": _wait_for_alarm,
}


@pytest.mark.parametrize("name", WAITS)
def test_a_timeout_begins_when_the_compute_before_it_has_passed(given, core, name):
    def main():
        compute(0.2)
        WAITS[name]()
        return time.monotonic()

    result = pysmpi.run(main, 2, platform=core)
    assert result.returns == pytest.approx([0.9, 0.9], abs=2e-3)


def test_a_message_leaves_when_the_compute_before_it_has_passed(given, core):
    """The receiver gets the date of the send, and sees the message after it."""

    def main():
        comm = mpi().COMM_WORLD
        if comm.rank == 0:
            compute(0.2)
            comm.send(time.monotonic(), 1)
            return 0.0
        if comm.rank == 1:
            sent = comm.recv(source=0)
            return time.monotonic() - sent
        compute(0.4)
        return time.monotonic()

    result = pysmpi.run(main, 3, platform=core)
    assert result.returns[1] < 1e-3
    assert result.returns[2] == pytest.approx(0.6, abs=1e-3)


def test_a_file_is_read_when_the_compute_before_it_has_passed(given, core, tmp_path):
    def main():
        comm = mpi().COMM_SELF
        file = mpi().File.Open(comm, str(tmp_path / f"f{mpi().COMM_WORLD.rank}"), 5)
        begin = time.monotonic()
        compute(0.2)
        file.Write(bytearray(8))
        taken = time.monotonic() - begin
        file.Close()
        return taken

    result = pysmpi.run(main, 2, platform=core)
    assert min(result.returns) > 0.4 - EXACT


# Threads.


def _in_thread(kind, body):
    """Run a function in a thread to its end."""
    if kind == "executor":
        with ThreadPoolExecutor(1) as pool:
            pool.submit(body)
        return
    if kind == "low":
        done = threading.Lock()
        done.acquire()
        _thread.start_new_thread(lambda: (body(), done.release()), ())
        done.acquire()
        return
    if kind == "Timer":
        thread = threading.Timer(0.0, body)
    else:
        thread = threading.Thread(target=body, daemon=kind == "daemon")
    thread.start()
    if kind == "is_alive":
        while thread.is_alive():
            pass
    thread.join()


KINDS = ["Thread", "daemon", "Timer", "exception", "exit", "executor", "low", "is_alive"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_compute_of_a_thread_is_charged(given, core, kind):
    seconds = 0.003 if kind == "is_alive" else 0.3  # a poll takes 0.1 us

    def main():
        threading.excepthook = lambda *_: None

        def body():
            compute(seconds)
            if kind in ("exception", "exit"):
                raise ValueError if kind == "exception" else SystemExit

        _in_thread(kind, body)
        dates = time.monotonic(), time.process_time()
        compute(0.1)
        return *dates, time.monotonic()

    result = pysmpi.run(main, 1, platform=core)
    assert result.returns[0] == pytest.approx([seconds, seconds, seconds + 0.1], abs=EXACT)
    (figures,) = result.ranks
    assert figures["compute_seconds"] == pytest.approx(seconds + 0.1, abs=EXACT)
    rest = figures["communication_seconds"] + figures["core_wait_seconds"]
    assert figures["compute_seconds"] + rest <= result.seconds * (1 + 1e-9)


def test_a_rank_ends_after_the_compute_of_its_threads(given, core):
    def main():
        threading.Thread(target=compute, args=(0.3,)).start()

    assert pysmpi.run(main, 1, platform=core).seconds == pytest.approx(0.3, abs=EXACT)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_thread_begins_after_the_compute_before_it(given, tmp_path, cores):
    def main():
        dates = []
        compute(0.2)
        thread = threading.Thread(target=lambda: dates.append(time.monotonic()))
        thread.start()
        thread.join()
        return dates[0]

    result = pysmpi.run(main, 1, platform=machine(tmp_path, cores))
    assert result.returns[0] == pytest.approx(0.2, abs=EXACT)


def test_threads_of_a_rank_share_its_core(given, tmp_path):
    def main():
        dates = []

        def body(seconds):
            compute(seconds)
            dates.append(time.monotonic())

        threads = [threading.Thread(target=body, args=(seconds,)) for seconds in (0.1, 0.3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return dates

    result = pysmpi.run(main, 1, platform=machine(tmp_path, 2))
    assert result.returns[0] == pytest.approx([0.2, 0.4], abs=EXACT)


def test_a_lock_is_handed_over_after_the_compute_under_it(given, core):
    def main():
        lock, dates = threading.Lock(), []

        def body():
            with lock:
                compute(0.2)
                time.sleep(0.1)
                compute(0.1)
            dates.append(time.monotonic())

        threads = [threading.Thread(target=body) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return dates

    result = pysmpi.run(main, 1, platform=core)
    assert result.returns[0] == pytest.approx([0.4, 0.8, 1.2], abs=EXACT)


def test_a_daemon_that_computes_at_the_end_of_its_rank_leaves_the_core(given, core):
    """Rank 0 ends at 0.2 s, and with it the 10 s of its daemon: rank 1 has the core alone."""

    def main():
        if mpi().COMM_WORLD.rank == 0:

            def body():
                compute(10.0)
                time.sleep(1.0)

            threading.Thread(target=body, daemon=True).start()
            time.sleep(0.2)
        else:
            time.sleep(0.2)
            compute(1.0)
        return time.monotonic()

    result = pysmpi.run(main, 2, platform=core)
    assert result.returns == pytest.approx([0.2, 1.2], abs=EXACT)
    assert result.seconds == pytest.approx(1.2, abs=EXACT)


# CPU time.


def test_cpu_time_leaves_out_sleeps_and_waits_and_counts_polling():
    """MPI tests for messages again and again; locks, sleeps, threads and pipes let the core go."""

    def main():
        comm = mpi().COMM_WORLD
        spent = [time.process_time()]
        time.sleep(1.0)
        threading.Event().wait(1.0)
        thread = threading.Thread(target=time.sleep, args=(1.0,))
        thread.start()
        thread.join()
        with pytest.raises(queue.Empty):
            queue.Queue().get(timeout=1.0)
        asyncio.run(asyncio.sleep(1.0))
        spent.append(time.process_time())
        if comm.rank == 1:
            time.sleep(1.0)
        spent.append(time.process_time())
        comm.Barrier()
        spent.append(time.process_time())
        return [b - a for a, b in zip(spent, spent[1:])], time.thread_time(), time.monotonic()

    result = pysmpi.run(main, 2, compute="none")
    for rank, (passed, thread, now) in enumerate(result.returns):
        assert passed == pytest.approx([0.0, 0.0, 0.0 if rank else 1.0], abs=1e-3)
        assert thread == pytest.approx(sum(passed), abs=1e-3)
        assert now == pytest.approx(6.0, abs=1e-2)


def test_cpu_time_of_a_process_is_that_of_its_threads(given, core):
    def main():
        spent = []

        def body():
            compute(0.2)
            time.sleep(0.5)
            compute(0.1)
            spent.append((time.thread_time(), time.process_time()))

        compute(0.4)
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        return *spent[0], time.thread_time(), time.process_time()

    result = pysmpi.run(main, 1, platform=core)
    assert result.returns[0] == pytest.approx([0.3, 0.7, 0.4, 0.7], abs=EXACT)


def test_a_loop_that_looks_at_the_clock_sees_what_a_thread_does(core):
    def main():
        done = []

        def body():
            time.sleep(0.01)
            done.append(1)

        threading.Thread(target=body).start()
        while not done:
            time.monotonic()
        return time.monotonic()

    result = pysmpi.run(main, 1, platform=core, compute="1us")
    assert result.returns == [pytest.approx(0.01, rel=0.05)]


# Records of runs.


def _exchanges():
    comm = mpi().COMM_WORLD
    ring = range(comm.size)
    for step in range(3):
        compute(0.01 * (1 + comm.rank + step))
        request = comm.isend(step, (comm.rank + 1) % comm.size)
        compute(0.005)
        comm.recv(source=ring[comm.rank - 1])
        request.wait()
        compute(0.002)
        comm.Iprobe()
        compute(0.001)
        comm.Barrier()
    compute(0.004)


def test_a_record_shows_calls_after_the_compute_before_them(given, core, tmp_path):
    def main():
        comm = mpi().COMM_WORLD
        compute(0.2)
        if comm.rank == 0:
            comm.Send(bytearray(8), 1)
        else:
            comm.Recv(bytearray(8), 0)

    path = tmp_path / "run.jsonl"
    result = pysmpi.run(main, 2, platform=core, trace=str(path))
    calls = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    found = {call[4]: call[5:7] for call in calls if call[0] == "call" and call[4]}
    assert found["Send"][0] == pytest.approx(0.4, abs=1e-3)
    assert found["Recv"][0] == pytest.approx(0.4, abs=1e-3)
    for begin, end in found.values():
        assert 0.0 <= end - begin < 1e-3
    assert result.seconds == pytest.approx(0.4, abs=1e-3)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_a_record_changes_no_time_and_accounts_for_all(given, core, tmp_path, ranks):
    plain = pysmpi.run(_exchanges, ranks, platform=core)
    path = str(tmp_path / "run.jsonl")
    recorded = pysmpi.run(_exchanges, ranks, platform=core, trace=path, explain=True)
    assert recorded.seconds == pytest.approx(plain.seconds, rel=1e-9)
    for one, other in zip(plain.ranks, recorded.ranks):
        assert other["end_seconds"] == pytest.approx(one["end_seconds"], rel=1e-9)
        assert other["compute_seconds"] == pytest.approx(one["compute_seconds"], rel=1e-9)
        parts = (other[f"{name}_seconds"] for name in ("compute", "communication", "core_wait"))
        # A test for a message is a short sleep.
        assert sum(parts) == pytest.approx(other["end_seconds"], abs=1e-3)
    assert recorded.analysis is not None
    causes = recorded.analysis["critical_path"]["causes"]
    assert sum(causes.values()) == pytest.approx(recorded.seconds, rel=1e-9)
    # One core computes all the time.
    assert causes["compute"] == pytest.approx(recorded.seconds, rel=0.01)
    assert causes["combine"] == 0.0
    replayed = Replay([(path, 0.0)], platform=core).run()
    assert replayed.seconds == pytest.approx(recorded.seconds, rel=1e-3)
