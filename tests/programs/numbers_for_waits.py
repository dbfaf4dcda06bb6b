"""Print the errors of unusual numbers given to clocks, sleeps and timeouts, under any launcher.

The argument is a directory, into which every rank writes its rows as JSON.
"""
# ruff: noqa: E501 - a row, a line

import asyncio
import concurrent.futures
import decimal
import fractions
import json
import multiprocessing
import os
import queue
import re
import select
import signal
import socket
import sys
import threading
import time

import numpy
from mpi4py import MPI


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):
        return f"Index({self.value})"


class Floating:
    def __float__(self):
        return 0.0

    def __repr__(self):
        return "Floating()"


class Failing:
    def __index__(self):
        raise KeyError("index")

    def __repr__(self):
        return "Failing()"


# Errors for all of these, or an immediate return.
WRONG = [
    float("nan"), -float("nan"), "1", b"1", None, [], {}, 1j, object, Floating(), Failing(), -1, -0.5, -1e300,
    -float("inf"), -(10**30), decimal.Decimal("0"), decimal.Decimal("NaN"), fractions.Fraction(0), Index(-1),
    numpy.float32(0), numpy.float64("nan"), numpy.array([0.0]), numpy.array(0), numpy.datetime64(0, "s"),
]  # fmt: skip
# Errors where a wait would be endless.
LARGE = [float("inf"), 1e300, 1e19, 10**30, 2**63, 2**64, Index(2**70), numpy.float64("inf")]
SMALL = [0, 0.0, -0.0, False, Index(0), numpy.float64(0), numpy.int64(0), 1e-320, 1e-9]


class Held:
    """A lock that is held by another thread."""

    def __init__(self, kind):
        self.lock = kind()
        self.end = threading.Event()
        self.holds = threading.Event()
        threading.Thread(target=self.hold, daemon=True).start()
        self.holds.wait()

    def hold(self):
        with self.lock:
            self.holds.set()
            self.end.wait()


def set_event():
    event = threading.Event()
    event.set()
    return event


def owned(condition):
    condition.acquire()
    return condition


def ended_thread():
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return thread


def polling(kind):
    poll = kind()
    reading, writing = os.pipe()
    os.write(writing, b"x")
    poll.register(reading, select.EPOLLIN)
    return poll


held, held_again, gone = Held(threading.Lock), Held(threading.RLock), ended_thread()
reading, writing = os.pipe()
os.write(writing, b"x")
pair = socket.socketpair()
done = concurrent.futures.Future()
done.set_result(None)
full = queue.Queue(1)
full.put(1)
full_again = queue.SimpleQueue()
full_again.put(1)


def timer(value):
    """A thread shows the error of its wait."""
    text = []
    threading.excepthook = lambda args: text.append(repr(args.exc_value))
    one = threading.Timer(value, int)
    one.start()
    one.join()
    return text


async def waits(value):
    await asyncio.wait_for(asyncio.sleep(0), value)


def later(value):
    loop = asyncio.new_event_loop()
    try:
        handle = loop.call_later(value, int)
        handle.cancel()
        return type(handle).__name__
    finally:
        loop.close()


# name: (function of a value, values that may wait long are given)
CALLS = {
    "time.sleep": (time.sleep, True),
    "Lock.acquire": (lambda v: held.lock.acquire(True, v), True),
    "free Lock.acquire": (lambda v: threading.Lock().acquire(timeout=v), True),
    "Lock.acquire(False)": (lambda v: held.lock.acquire(False, v), True),
    "Lock.acquire(blocking)": (lambda v: threading.Lock().acquire(v), True),
    "RLock.acquire": (lambda v: held_again.lock.acquire(timeout=v), True),
    "free RLock.acquire": (lambda v: threading.RLock().acquire(True, v), True),
    "Event.wait": (lambda v: set_event().wait(v), True),
    "unset Event.wait": (lambda v: threading.Event().wait(v), False),
    "Condition.wait": (lambda v: owned(threading.Condition()).wait(v), False),
    "Semaphore.acquire": (lambda v: threading.Semaphore(0).acquire(timeout=v), False),
    "Thread.join": (gone.join, True),
    "Queue.get": (lambda v: queue.Queue().get(timeout=v), False),
    "Queue.put": (lambda v: full.put(1, timeout=v), False),
    "SimpleQueue.get": (lambda v: queue.SimpleQueue().get(timeout=v), False),
    "Barrier.wait": (lambda v: threading.Barrier(2).wait(v), False),
    "Timer": (timer, False),
    "select": (lambda v: len(select.select([reading], [], [], v)[0]), True),
    "poll": (lambda v: len(polling(select.poll).poll(v)), True),
    "epoll": (lambda v: len(polling(select.epoll).poll(v)), True),
    "epoll.maxevents": (lambda v: len(polling(select.epoll).poll(0, v)), True),
    "sigtimedwait": (lambda v: signal.sigtimedwait([signal.SIGUSR2], v), False),
    "setitimer": (lambda v: signal.setitimer(signal.ITIMER_REAL, v) and signal.setitimer(signal.ITIMER_REAL, 0) and None, False),
    "interval": (lambda v: signal.setitimer(signal.ITIMER_REAL, 0, v) and None, False),
    "which": (lambda v: signal.setitimer(v, 0, 0) and None, False),
    "getitimer": (signal.getitimer, False),
    "alarm": (lambda v: signal.alarm(v) and None, False),
    "settimeout": (lambda v: pair[0].settimeout(v), True),
    "setdefaulttimeout": (lambda v: socket.setdefaulttimeout(v) or socket.setdefaulttimeout(None), True),
    "Future.result": (lambda v: done.result(v), True),
    "as_completed": (lambda v: len(list(concurrent.futures.as_completed([done], v))), False),
    "futures.wait": (lambda v: len(concurrent.futures.wait([done], v)[0]), True),
    "pending Future.result": (lambda v: concurrent.futures.Future().result(v), False),
    "asyncio.sleep": (lambda v: asyncio.run(asyncio.sleep(v)), False),
    "call_later": (later, True),
    "wait_for": (lambda v: asyncio.run(waits(v)), False),
    "gmtime": (lambda v: time.gmtime(v)[:3] if v is not None else 0, True),
    "localtime": (lambda v: time.localtime(v)[:1] if v is not None else 0, True),
    "ctime": (lambda v: time.ctime(v) if v is not None else 0, True),
    "strftime": (lambda v: time.strftime("%Y", v), True),
    "strftime, format": (lambda v: time.strftime(v, (2000,) * 9) , True),
    "asctime": (lambda v: time.asctime(v), True),
    "mktime": (lambda v: time.mktime(v), True),
    "clock_gettime": (lambda v: time.clock_gettime(v) and None, True),
    "clock_gettime_ns": (lambda v: time.clock_gettime_ns(v) and None, True),
    "clock_getres": (lambda v: time.clock_getres(v), True),
    "get_clock_info": (lambda v: time.get_clock_info(v), True),
    "Process.join": (lambda v: multiprocessing.Process().join(v), True),
    "switchinterval": (sys.setswitchinterval, False),
    "recursionlimit": (lambda v: sys.setrecursionlimit(v), False),
    "umask": (lambda v: os.umask(v) and None, False),
}  # fmt: skip
# A negative integer is no timeout there.
ENDLESS = ("Lock.acquire", "RLock.acquire")
# Loops in Python's own code that such numbers do not end.
LOOPS = (
    "asyncio.sleep",
    "wait_for",
    "Semaphore.acquire",
    "Queue.get",
    "Queue.put",
    "Barrier.wait",
    "Timer",
    "Condition.wait",
)
# Calls with wrong numbers of arguments, or wrong names of them.
ARGUMENTS = [
    "time.sleep()", "time.sleep(1, 2)", "time.sleep(seconds=1)", "time.time(1)", "time.perf_counter(x=1)",
    "threading.Lock(1)",
    "select.select()", "select.select([], [])",
    "signal.alarm()", "signal.setitimer(1)", "signal.sigtimedwait([])", "os.getpid(1)", "os.kill(1)",
    "time.gmtime(1, 2)", "time.strftime()", "time.clock_gettime()", "os.umask()", "os.chdir()",
    "threading.get_ident(1)",
    "select.select(1, [], [], 0)", "select.select([], [], [], timeout=1)", "signal.getitimer()",
]  # fmt: skip


def text(function, *arguments):
    try:
        answer = repr(function(*arguments))
    except BaseException as error:
        answer = f"{type(error).__module__}.{type(error).__name__}: {error}"
    return re.sub(r"0x[0-9a-f]+|\d+\.\d+e-\d+", "0x", answer)


def main():
    umask = os.umask(0o22)
    os.umask(umask)
    rows = {}
    for name, (function, large) in CALLS.items():
        for value in [*WRONG, *SMALL, *LARGE]:
            if (
                value is None
                and not large
                or name in ENDLESS
                and repr(value) in ("-1", "Index(-1)")
            ):
                continue  # it waits for ever
            # NaN ends no such wait in CPython either.
            if name in LOOPS and (
                any(value is one for one in LARGE) or "nan" in repr(value).lower()
            ):
                continue
            rows[f"{name}({value!r})"] = text(function, value)
        os.umask(umask)
        sys.setswitchinterval(0.005)
        sys.setrecursionlimit(1000)
        signal.alarm(0)
    for call in ARGUMENTS:
        rows[call] = text(eval, call, {"os": os, "time": time, "threading": threading, "select": select, "signal": signal})  # fmt: skip
    held.end.set()
    held_again.end.set()
    MPI.COMM_WORLD.Barrier()
    with open(os.path.join(sys.argv[1], f"{MPI.COMM_WORLD.rank}.json"), "w") as file:
        json.dump(rows, file, indent=1)


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
signal.signal(signal.SIGALRM, lambda *given: None)
if __name__ == "__main__":
    main()
