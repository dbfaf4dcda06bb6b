"""Deadlocks are found although threads, timers and polls go on; programs that end are not reported.

Each kind of beat has a program that it never ends, and the same program with a beat that ends it.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import pysmpi
from pysmpi.reports.result import Result

HEAD = """\
import asyncio, concurrent.futures, logging, logging.handlers, os, queue, sched, selectors
import signal, socket, sys, threading, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank
class Count:
    def __init__(self): self.left = LEFT
    def __call__(self):
        # Whether the beat has to act.
        self.left -= 1
        return self.left == 0
def start(function, *args):
    threading.Thread(target=function, args=args, daemon=True).start()
"""
BEATS = 40  # of a healthy program; a stretch of `MOST` beats is reported
MOST = "400"

# Programs with `acts()`, true in the last beat of a healthy one, which then calls `act()`.
ASIDE = {
    "sleep": """
        def beat():
            while True:
                time.sleep(1)
                if acts(): act()
        start(beat)
    """,
    "sleeps of two lengths": """
        def beat():
            while True:
                time.sleep(1)
                time.sleep(0.01)
                if acts(): act()
        start(beat)
    """,
    "event": """
        def beat(never):
            while not never.wait(10):
                if acts(): act()
        start(beat, threading.Event())
    """,
    "queue": """
        def beat(items):
            while True:
                try:
                    items.get(timeout=0.5)
                except queue.Empty:
                    if acts(): act()
        start(beat, queue.Queue())
    """,
    "simple queue": """
        def beat(items):
            while True:
                try:
                    items.get(timeout=0.5)
                except queue.Empty:
                    if acts(): act()
        start(beat, queue.SimpleQueue())
    """,
    "condition": """
        def beat(condition):
            with condition:
                while not condition.wait(2):
                    if acts(): act()
        start(beat, threading.Condition())
    """,
    "condition with a predicate": """
        def beat(condition):
            with condition:
                while not condition.wait_for(lambda: False, 2):
                    if acts(): act()
        start(beat, threading.Condition())
    """,
    "semaphore": """
        def beat(semaphore):
            while not semaphore.acquire(timeout=2):
                if acts(): act()
        start(beat, threading.Semaphore(0))
    """,
    "lock": """
        def beat(lock):
            lock.acquire()
            while not lock.acquire(timeout=2):
                if acts(): act()
        start(beat, threading.Lock())
    """,
    "timer": """
        def beat():
            if acts(): return act()
            timer = threading.Timer(3, beat)
            timer.daemon = True
            timer.start()
        beat()
    """,
    "class": """
        class Monitor(threading.Thread):
            def __init__(self):
                super().__init__(name="monitor", daemon=True)
                self.over = threading.Event()
                self.watched = [1, 2, 3]
            def run(self):
                while True:
                    self.over.wait(10)
                    if self.over.is_set(): return
                    for _ in self.watched:
                        pass
                    if acts(): act()
        Monitor().start()
    """,
    "listener of logging": """
        records = queue.Queue(-1)
        log = logging.getLogger("beats")
        log.addHandler(logging.handlers.QueueHandler(records))
        listener = logging.handlers.QueueListener(records, logging.NullHandler())
        listener.start()
        def beat():
            while True:
                time.sleep(1)
                log.warning("alive")
                if acts(): act()
        start(beat)
    """,
    "handler with a timer": """
        memory = logging.handlers.MemoryHandler(100, target=logging.NullHandler())
        def flush():
            memory.flush()
            if acts(): return act()
            timer = threading.Timer(1, flush)
            timer.daemon = True
            timer.start()
        flush()
    """,
    "scheduler": """
        def beat(calendar):
            def again():
                calendar.enter(5, 1, again)
                if acts(): act()
            calendar.enter(5, 1, again)
            calendar.run()
        start(beat, sched.scheduler())
    """,
    "event loop": """
        async def beat():
            while True:
                await asyncio.sleep(1)
                if acts(): act()
        start(lambda: asyncio.run(beat()))
    """,
    "two tasks": """
        async def tick(seconds):
            while True:
                await asyncio.sleep(seconds)
                if seconds == 1 and acts(): act()
        async def both():
            await asyncio.gather(tick(1), tick(3))
        start(lambda: asyncio.run(both()))
    """,
    "selector": """
        def beat(ends):
            with selectors.DefaultSelector() as selector:
                selector.register(ends[0], selectors.EVENT_READ)
                while not selector.select(0.5):
                    if acts(): act()
        start(beat, socket.socketpair())
    """,
    "pool": """
        def beat(pool):
            while True:
                try: pool.submit(time.sleep, 1).result()
                except RuntimeError: return  # at the end of the rank
                if acts(): act()
        start(beat, concurrent.futures.ThreadPoolExecutor(2))
    """,
    "future": """
        def beat(future):
            while True:
                try:
                    future.result(timeout=1)
                except concurrent.futures.TimeoutError:
                    if acts(): act()
        start(beat, concurrent.futures.Future())
    """,
    "poll of an event": """
        def beat(event):
            while not event.is_set():
                time.sleep(0.1)
                if acts(): act()
        start(beat, threading.Event())
    """,
    "join": """
        def beat(thread):
            while thread.is_alive():
                thread.join(0.1)
                if acts(): act()
        forever = threading.Thread(target=threading.Event().wait, daemon=True)
        forever.start()
        start(beat, forever)
    """,
    "two threads": """
        def beat(seconds):
            while True:
                time.sleep(seconds)
                if acts(): act()
        start(beat, 1); start(beat, 0.25)
    """,
}
# The same for threads that wake each other or start others, in programs whose computations count.
TOGETHER = {
    "items handed on": """
        first, second = queue.Queue(), queue.Queue()
        def one():
            while True:
                first.put(1)
                second.get()
                time.sleep(0.1)
        def two():
            while True:
                first.get()
                time.sleep(0.1)
                second.put(1)
                if acts(): act()
        start(one); start(two)
    """,
    "events set in turn": """
        ping, pong = threading.Event(), threading.Event()
        def one():
            while True:
                ping.set()
                pong.wait(); pong.clear()
        def two():
            while True:
                ping.wait(); ping.clear()
                time.sleep(0.1)
                if acts(): act()
                pong.set()
        start(one); start(two)
    """,
    "a condition notified": """
        turn = threading.Condition()
        def one():
            while True:
                time.sleep(0.1)
                with turn: turn.notify()
        def two():
            with turn:
                while True:
                    turn.wait()
                    if acts(): act()
        start(one); start(two)
    """,
    "timer": """
        def beat():
            if acts(): return act()
            timer = threading.Timer(0.1, beat)
            timer.daemon = True
            timer.start()
        beat()
    """,
    "threads joined": """
        def beat():
            while True:
                thread = threading.Thread(target=time.sleep, args=(0.1,))
                thread.start()
                thread.join()
                if acts(): act()
        start(beat)
    """,
    "threads that start their successors": """
        def beat():
            time.sleep(0.1)
            if acts(): return act()
            start(beat)
        start(beat)
    """,
    "pool fed": """
        pool = concurrent.futures.ThreadPoolExecutor(1)
        def work():
            if acts(): act()
        def feed():
            while True:
                try: pool.submit(work)
                except RuntimeError: return  # at the end of the rank
                time.sleep(0.1)
        start(feed)
    """,
    "pool waited for": """
        pool = concurrent.futures.ThreadPoolExecutor(2)
        def feed():
            while True:
                try: list(pool.map(time.sleep, [0.1, 0.2]))
                except RuntimeError: return  # at the end of the rank
                if acts(): act()
        start(feed)
    """,
    "computations between beats": """
        def beat():
            done = 0
            while True:
                time.sleep(1e-4)
                done += sum(range(1000))
                if acts(): act()
        start(beat)
    """,
}
# Polls of the main thread, which end when `done()` is true.
MAIN = {
    "test": "while not request.Test(): time.sleep(1e-3)",
    "iprobe": "while not comm.Iprobe(source=other, tag=5): time.sleep(1e-3)",
    "improbe": "while comm.Improbe(source=other, tag=5) is None: time.sleep(1e-3)",
    "testall": "while not MPI.Request.Testall([request]): time.sleep(1e-3)",
    "event": "event = threading.Event()\nwhile not event.wait(0.5): pass",
    "is_set": "event = threading.Event()\nwhile not event.is_set(): pass",
    "queue": """
        items = queue.Queue()
        while True:
            try: items.get(timeout=1)
            except queue.Empty: pass
    """,
    "flag": "flag = [0]\nwhile not flag[0]: time.sleep(1)",
    "alarm": """
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 1, 1)
        while True: time.sleep(10)
    """,
    "event loop": """
        async def poll():
            while not request.Test(): await asyncio.sleep(1e-3)
        asyncio.run(poll())
    """,
    "thread": """
        thread = threading.Thread(target=comm.recv, args=(None, other, 5), daemon=True)
        thread.start()
        while thread.is_alive(): thread.join(0.5)
    """,
}

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(program: str, left: int = 0, ranks: int = 2, **options: object) -> Result:
        path = tmp_path / "prog.py"
        path.write_text(HEAD.replace("LEFT", str(left)) + textwrap.dedent(program))
        options = {"cfg": {"smpi/most-polls": MOST}, "compute": "none"} | options
        return pysmpi.run(str(path), ranks, check=False, **options)

    return run


@pytest.mark.parametrize("kind", ASIDE)
def test_a_deadlock_is_found_although_threads_beat(run: Run, kind: str):
    found = run(
        "acts = lambda: False\nact = print\n"
        + textwrap.dedent(ASIDE[kind]) + "comm.recv(source=other)"
    )  # fmt: skip
    assert found.exit_status == 3, found.error
    report = str(found.error)
    assert report.startswith("PSM101 deadlock at"), report
    assert "ranks 0-1  wait in recv(source=rank+1" in report, report
    assert " in thread " in report and ("beat in " in report or "beats in " in report), report
    assert "cycle: 0 -> 1 (recv)   1 -> 0 (recv)" in report


@pytest.mark.parametrize("kind", ASIDE)
def test_a_beat_that_ends_a_wait_is_not_reported(run: Run, kind: str):
    found = run(
        "acts = Count()\ndef act(): comm.send(rank, other)\n"
        + textwrap.dedent(ASIDE[kind])
        + "assert comm.recv(source=other) == other",
        BEATS,
    )  # fmt: skip
    assert found.exit_status == 0, found.error


WAYS = itertools.cycle(["none", "native"])


@pytest.mark.parametrize("kind, compute", [*zip(TOGETHER, WAYS)])
def test_a_deadlock_is_found_although_threads_wake_others(run: Run, kind: str, compute: str):
    found = run(
        "acts = lambda: False\nact = print\n"
        + textwrap.dedent(TOGETHER[kind]) + "comm.recv(source=other)",
        compute=compute,
    )  # fmt: skip
    assert found.exit_status == 3, found.error
    report = str(found.error)
    assert report.startswith("PSM101 deadlock at"), report
    assert "ranks 0-1  wait in recv(source=rank+1" in report, report
    assert " in thread " in report, report
    assert "cycle: 0 -> 1 (recv)   1 -> 0 (recv)" in report


ENDS = itertools.cycle(["comm.send(rank, other)", "over.set()"])


@pytest.mark.parametrize("kind, end", [*zip(TOGETHER, ENDS)])
def test_threads_that_wake_others_and_end_a_wait_are_not_reported(run: Run, kind: str, end: str):
    waits = "over.wait(); comm.send(rank, other)\n" if "over" in end else ""
    found = run(
        f"acts = Count()\nover = threading.Event()\ndef act(): {end}\n"
        + textwrap.dedent(TOGETHER[kind])
        + waits
        + "assert comm.recv(source=other) == other\ncomm.Barrier()",
        BEATS,
        compute="native",
    )  # fmt: skip
    assert found.exit_status == 0, found.error


def test_a_long_sleep_may_end_a_wait_though_others_wake_each_other(run: Run):
    found = run(
        "acts = lambda: False\nact = print\n"
        + textwrap.dedent(TOGETHER["items handed on"])
        + textwrap.dedent("""
        def late():
            time.sleep(200)
            comm.send(rank, other)
        start(late)
        assert comm.recv(source=other) == other
        comm.Barrier()
        """),
        compute="native",
    )  # fmt: skip
    assert found.exit_status == 0, found.error


def test_threads_that_wake_the_main_thread_are_not_reported(run: Run):
    found = run("""
        items = queue.Queue()
        def feed():
            while True:
                time.sleep(1)
                items.put(1)
        def beat():
            while True: time.sleep(0.3)
        start(beat)
        if rank == 0:
            start(feed)
            left = 800
            while left: left -= items.get()
            comm.send(0, 1)
        else:
            comm.recv()
    """)
    assert found.exit_status == 0, found.error


@pytest.mark.parametrize("kind", MAIN)
def test_a_poll_in_vain_is_found(run: Run, kind: str):
    found = run(
        "request = comm.irecv(source=other, tag=5)\nif rank == 0:\n"
        + textwrap.indent(textwrap.dedent(MAIN[kind]), "    ")
        + "\ncomm.recv(source=0, tag=6)"
    )
    assert found.exit_status == 3, found.error
    assert "rank 1  waits in recv(source=0, tag=6)" in str(found.error), found.error
    assert "rank 0  " in str(found.error)


@pytest.mark.parametrize("kind", ["test", "iprobe", "improbe", "testall", "event loop", "thread"])
def test_a_poll_that_ends_is_not_reported(run: Run, kind: str):
    """The other rank sends late, after many polls, while it sleeps in few or many steps."""
    found = run(
        f"if '{kind}' in ('test', 'testall', 'event loop'):\n"
        "    request = comm.irecv(source=other, tag=5)\nif rank == 0:\n"
        + textwrap.indent(textwrap.dedent(MAIN[kind]), "    ")
        + "\nelse:\n    time.sleep(1)\n    for _ in range(800): time.sleep(1e-3)\n"
        + "    comm.send(1, 0, tag=5)",
        cfg={"smpi/most-polls": MOST, "smpi/grow-injected-times": "no"},
    )  # fmt: skip
    assert found.exit_status == 0, found.error


HEALTHY = {
    "a deadline": "end = time.time() + 1250\nwhile time.time() < end: time.sleep(1)",
    "a deadline of MPI's clock": "end = MPI.Wtime() + 1250\nwhile MPI.Wtime() < end: time.sleep(1)",
    "a count": "for _ in range(1250): time.sleep(1)",
    "a hidden count": """
        import itertools
        count = itertools.count()
        while next(count) < 1250: time.sleep(1)
    """,
    "a closure": """
        def counter():
            n = 0
            def more():
                nonlocal n
                n += 1
                return n < 1250
            return more
        more = counter()
        while more(): time.sleep(1)
    """,
    "a generator": """
        def steps():
            for step in range(1250):
                yield
        for _ in steps(): time.sleep(1)
    """,
    "an attribute": """
        class Work:
            left = 1250
            def more(self):
                self.left -= 1
                return self.left > 0
        work = Work()
        while work.more(): time.sleep(1)
    """,
    "an array": """
        import numpy
        left = numpy.full(3, 1250)
        while left.any():
            left -= 1
            time.sleep(1)
    """,
    "items": "items = list(range(1250))\nwhile items: items.pop(); time.sleep(1)",
    "items of a queue": """
        items = queue.Queue()
        for i in range(1250): items.put(None)
        while not items.empty(): items.get(timeout=1); time.sleep(1)
    """,
    "chance": "import random\nwhile random.random() > 8e-4: time.sleep(1)",
    "one long sleep": "start(lambda: [time.sleep(1) for _ in range(2250)])\ntime.sleep(1250)",
    "a late thread": """
        event = threading.Event()
        def late():
            time.sleep(1500)
            event.set()
        start(late)
        while not event.wait(1): pass
    """,
    "timeouts that give up": """
        tries = 0
        while tries < 1250:
            try: queue.Queue().get(timeout=1)
            except queue.Empty: tries += 1
    """,
}


@pytest.mark.parametrize("kind", HEALTHY)
def test_a_main_program_that_ends_is_not_reported(run: Run, kind: str):
    found = run(
        "if rank == 0:\n" + textwrap.indent(textwrap.dedent(HEALTHY[kind]), "    ")
        + "\n    comm.send(0, 1)\nelse:\n    comm.recv()"
    )  # fmt: skip
    assert found.exit_status == 0, found.error


def test_heartbeats_with_a_counter_are_no_progress(run: Run):
    found = run("""
        def beat():
            n = 0
            while True:
                n += 1
                time.sleep(1)
        start(beat)
        comm.Barrier() if rank else comm.recv(source=1)
    """)
    assert "PSM101 deadlock" in str(found.error)
    assert "woke no rank" in str(found.error)


def test_a_heartbeat_by_messages_is_progress(run: Run):
    found = run("""
        def beat():
            while True:
                time.sleep(1)
                comm.send("alive", 1, tag=1)
        if rank == 0:
            start(beat)
            print(comm.recv(source=1, tag=2))
        else:
            for _ in range(1250): comm.recv(source=0, tag=1)
            comm.send("enough", 0, tag=2)
    """)
    assert found.exit_status == 0, found.error


def test_beats_go_on_if_deadlocks_are_raised(run: Run):
    found = run("""
        def beat():
            while True: time.sleep(1)
        start(beat)
        try:
            comm.recv(source=other)
        except MPI.Exception as error:
            assert "beat in sleep() in thread Thread-1 (beat)" in str(error), error
        comm.Barrier()
    """, on_deadlock="raise")  # fmt: skip
    assert found.exit_status == 0, found.error


def test_no_limit(run: Run):
    found = run("""
        def beat():
            for _ in range(12_000): time.sleep(1)
            comm.send(1, other)
        start(beat)
        comm.recv(source=other)
    """, cfg={"smpi/most-polls": "0"})  # fmt: skip
    assert found.exit_status == 0, found.error


@pytest.mark.parametrize(
    ("turn", "most"), [("pass", 53_000), ("count += 1", 101_000), ("count = time.time()", 101_000)]
)
def test_daemons_with_measured_compute_are_found_soon(
    turn: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of beats does not depend on the compute between short sleeps."""
    monkeypatch.chdir(tmp_path)
    Path("prog.py").write_text(
        "import threading, time\nfrom mpi4py import MPI\n"
        "def beat():\n"
        "    count = 0\n"
        f"    while True:\n        time.sleep(0.1)\n        {turn}\n"
        "threading.Thread(target=beat, daemon=True).start()\n"
        "MPI.COMM_WORLD.recv(tag=3)\n"
    )
    result = pysmpi.run("prog.py", 1, check=False)
    assert result.exit_status == 3
    said = re.search("why: ([0-9,]+) sleeps and timeouts in a row ended and", result.error)
    assert int(said[1].replace(",", "")) <= most
