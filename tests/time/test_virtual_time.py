"""Module `time` and its relatives, inside and outside of ranks."""

from __future__ import annotations

import gc
import time

import pytest
from ranks_by_hand import run

from pysmpi.isolation.loading.loader import CommandProgram, FunctionProgram, ScriptProgram
from pysmpi.time.clock import EPOCH, POLL_COST


def test_sleeping_takes_virtual_time_only(write):
    path = write(
        "program.py",
        """
        import time
        from time import sleep, perf_counter as clock
        begin = clock()
        sleep(3600)
        time.sleep(1.5)
        assert 3601.5 <= clock() - begin < 3601.6
        """,
    )
    begin = time.perf_counter()
    members = run(ScriptProgram(path), 2)
    assert time.perf_counter() - begin < 60
    assert [round(member.seconds, 3) for member in members] == [3601.5, 3601.5]


def test_all_clocks_agree():
    def main():
        time.sleep(86400 + 3723.25)
        seconds = time.monotonic()
        assert time.perf_counter() == pytest.approx(seconds)
        assert time.time() == pytest.approx(EPOCH + seconds)
        assert time.time_ns() == pytest.approx((EPOCH + seconds) * 1e9)
        assert time.monotonic_ns() == pytest.approx(seconds * 1e9)
        assert time.clock_gettime(time.CLOCK_MONOTONIC) == pytest.approx(seconds)
        assert time.clock_gettime_ns(time.CLOCK_REALTIME) == pytest.approx(time.time_ns())
        assert time.gmtime()[:6] == (2000, 1, 2, 1, 2, 3)
        assert time.gmtime(0)[0] == 1970
        assert time.strftime("%Y") == "2000"
        assert time.strftime("%Y", time.gmtime(0)) == "1970"
        assert time.ctime() == time.asctime() == time.ctime(time.time())
        assert time.localtime() == time.localtime(time.time())

    run(FunctionProgram(main), 1)


def test_looking_at_the_clock_costs_a_little():
    def main():
        while time.time() < EPOCH + 1e-4:
            pass

    (member,) = run(FunctionProgram(main), 1)
    # The date has no more digits than doubles have in this century.
    assert member.seconds == pytest.approx(1e-4, abs=2e-7 + POLL_COST)
    (member,) = run(FunctionProgram(lambda: time.monotonic()), 1, poll_cost=0.25)
    assert member.seconds == 0.25


def test_callbacks_of_the_garbage_collector_look_at_the_clock_for_nothing():
    looks = []

    def callback(phase, info):
        looks.append((phase, time.monotonic()))

    def main():
        gc.collect()

    gc.callbacks.insert(0, callback)
    try:
        (member,) = run(FunctionProgram(main), 1, poll_cost=0.25)
    finally:
        gc.callbacks.remove(callback)
    assert [phase for phase, _ in looks][:2] == ["start", "stop"]
    assert member.seconds == 0.0


def test_modules_that_hold_the_functions_already_speak_virtual_time():
    import queue
    import threading
    import timeit

    def main():
        time.sleep(100)
        return threading._time(), queue.time(), timeit.default_timer()

    (member,) = run(FunctionProgram(main), 1)
    assert member.result == pytest.approx((100, 100, 100))
    assert queue.time is time.monotonic is threading._time


def test_dates_are_those_of_the_simulation():
    import datetime
    import pickle

    class Mine(datetime.datetime):
        pass

    def main():
        time.sleep(3600)
        now = datetime.datetime.now()
        assert type(now) is datetime.datetime
        assert pickle.loads(pickle.dumps(now)) == now
        assert datetime.datetime.now(datetime.UTC).hour == 1
        assert datetime.datetime.utcnow() == datetime.datetime(2000, 1, 1, 1)
        assert datetime.datetime.today() == now
        assert datetime.date.today().year == 2000
        assert type(Mine.now()) is Mine and Mine.now() == now

    before = datetime.datetime.now
    run(FunctionProgram(main), 1)
    assert datetime.datetime.now == before
    assert datetime.datetime.now().year > 2000
    assert type(Mine.now()) is Mine


def test_outside_of_ranks_time_is_real():
    seen = []

    def main():
        time.sleep(1000)

    class Watching(FunctionProgram):
        def prepare(self):
            seen.append(time.time())

    before = time.time()
    run(Watching(main), 1)
    assert before <= seen[0] <= time.time()


def test_sleeping_backwards_is_an_error():
    with pytest.raises(ValueError, match="non-negative"):
        run(CommandProgram("import time; time.sleep(-1)"), 1)
    with pytest.raises(TypeError):
        run(CommandProgram("import time; time.sleep('1')"), 1)


def test_errors_of_arguments_name_the_function(write, capsys):
    path = write(
        "program.py",
        """
        import os, time
        from mpi4py import MPI
        for function in (time.time, time.sleep, os.getpid):
            try:
                function(1, 2, 3)
            except TypeError as error:
                print(str(error).partition("(")[0])
        """,
    )
    run(ScriptProgram(path), 1)
    assert capsys.readouterr().out.splitlines() == ["time.time", "time.sleep", "posix.getpid"]


DEFAULTS = """
import time

def function(sleep=time.sleep, now=time.monotonic):
    begin = now()
    sleep(50)
    return now() - begin

def keyword(*, sleep=time.sleep, now=time.perf_counter):
    return function(sleep, now)

class Clock:
    def __init__(self, sleep=time.sleep, now=time.time):
        self.given = sleep, now

    def method(self):
        return function(*self.given)

    @classmethod
    def of_class(cls, sleep=time.sleep, now=lambda: time.monotonic_ns() / 1e9):
        return function(sleep, now)

    @staticmethod
    def static(sleep=time.sleep, *, now=time.monotonic):
        return function(sleep, now)
"""


def test_clocks_that_are_defaults_of_functions_loaded_before(tmp_path, monkeypatch):
    """As those of `sched.scheduler`, in a process that has loaded the module before the run."""
    import sched

    import pysmpi

    (tmp_path / "clocks_as_defaults.py").write_text(DEFAULTS)
    monkeypatch.syspath_prepend(tmp_path)
    import clocks_as_defaults as module

    def main():
        import sched

        import clocks_as_defaults as module

        begin = time.monotonic()
        calendar = sched.scheduler()
        calendar.enter(50, 1, int)
        calendar.run()
        return [
            time.monotonic() - begin, module.function(), module.keyword(),
            module.Clock().method(), module.Clock.of_class(), module.Clock.static(),
        ]  # fmt: skip

    for _ in range(2):
        found = pysmpi.run(main, 2, compute="none").returns
        assert found == [pytest.approx([50] * 6, rel=1e-6)] * 2
    assert module.function.__defaults__ == (time.sleep, time.monotonic)
    assert module.keyword.__kwdefaults__ == {"sleep": time.sleep, "now": time.perf_counter}
    assert sched.scheduler.__init__.__defaults__ == (time.monotonic, time.sleep)
