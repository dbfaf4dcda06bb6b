"""Locks, queues and timers of ranks answer as CPython's own do, also where these are odd."""

# ruff: noqa: B023 - each function is called before the next turn of its loop
from __future__ import annotations

import re

import pysmpi

NUMBERS = [
    -1e-12, -1e-10, -6e-10, -1e-9, -1e-7, -1e-6, -0.0, 0, -1, 1.5e-9, 5e-7, 1.4, 1.6, True,
    float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 2**63, -(2**63), "a", None, b"",
]  # fmt: skip


def answers():
    """The result or the exception of each call."""
    import _thread
    import copy
    import pickle
    import queue
    import signal
    import threading

    found = {}

    def ask(name, function):
        try:
            found[name] = repr(function())
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"

    before = signal.signal(signal.SIGALRM, lambda *_: None)
    for number in NUMBERS:
        short = not isinstance(number, (int, float)) or number < 0.01
        if short and number is not None:
            ask(f"SimpleQueue.get {number}", lambda: queue.SimpleQueue().get(True, number))
            ask(f"Event.wait {number}", lambda: threading.Event().wait(number))
        if short or number < 2:
            ask(f"setitimer {number}", lambda: signal.setitimer(signal.ITIMER_REAL, number))
            signal.setitimer(signal.ITIMER_REAL, 0)
            ask(f"interval {number}", lambda: signal.setitimer(signal.ITIMER_REAL, 0, number))
            ask(f"no timer {number}", lambda: signal.setitimer(99, number))
        ask(f"acquire {number}", lambda: threading.Lock().acquire(timeout=number))
        ask(f"stack_size {number}", lambda: threading.stack_size(number))
    ask("alarm", lambda: (signal.alarm(True), signal.alarm(0), signal.alarm(0)))
    signal.signal(signal.SIGALRM, before)
    ask("stack_size", lambda: (threading.stack_size(0), threading.stack_size()))
    ask("stack_size of two", lambda: threading.stack_size(1, 2))
    kinds = {
        "lock": type(threading.Lock()), "RLock": type(threading.RLock()),
        "_thread.RLock": _thread.RLock, "SimpleQueue": queue.SimpleQueue,
        "local": threading.local, "Condition": threading.Condition,
    }  # fmt: skip
    for name, kind in kinds.items():
        one = threading.Lock() if name == "lock" else kind()
        ask(f"{name} kind", lambda: (isinstance(one, kind), type(one) is kind, kind.__name__))
        if name != "Condition":
            ask(f"{name} state", one.__getstate__)
            ask(f"{name} doc", lambda: kind.__doc__)
        ask(f"{name} copy", lambda: type(copy.copy(one)))
        ask(f"{name} pickle", lambda: pickle.dumps(one))
        for number in range(6):
            ask(f"{name} reduce {number}", lambda: one.__reduce_ex__(number)[0])

        def plain():
            return type("Plain", (kind,), {"__init__": lambda self, text=None: None})

        def stateful():
            names = {"__getstate__": lambda self: 7, "__setstate__": lambda self, state: None}
            return type("Stateful", (kind,), names)

        ask(f"{name} plain", lambda: plain()("text").__class__.__name__)
        if name != "Condition":
            ask(f"{name} plain state", lambda: plain()().__getstate__())
            ask(f"{name} plain copy", lambda: copy.copy(plain()()))
            ask(f"{name} plain pickle", lambda: pickle.dumps(plain()()))
        ask(f"{name} stateful", lambda: type(copy.copy(stateful()())).__name__)
        ask(f"{name} stateful reduce", lambda: stateful()().__reduce_ex__(2)[1:])

        def usable():
            other = plain()()
            other.more = 3
            if hasattr(other, "get"):
                other.put(1)
                return other.get(), other.empty(), other.__getstate__()
            with other:
                return other.acquire(), other.release(), other.more, other.__getstate__()

        if name not in ("Condition", "local"):
            ask(f"{name} usable", usable)
    one, again = threading.Lock(), threading.RLock()
    ask("Lock is its class", lambda: type(one) is threading.Lock)
    ask("Lock makes locks", lambda: isinstance(one, threading.Lock))
    ask("Lock acquires", lambda: (threading.Lock.acquire(one), one.locked(), one.release()))
    ask("LockType", lambda: isinstance(one, _thread.LockType))
    if hasattr(again, "locked"):  # from Python 3.14 on
        ask("RLock.locked", lambda: (again.acquire(), again.locked(), again.release()))
        ask("a free RLock", again.locked)
    return {name: re.sub("0x[0-9a-f]+", "0x", text) for name, text in found.items()}


def test_all_answers_are_cpythons():
    real = answers()
    for rank in pysmpi.run(answers, 2, compute="none").returns:
        for name, answer in real.items():
            assert rank[name] == answer, name


def names():
    """The names of objects that ranks have in the place of CPython's."""
    import _thread
    import queue
    import threading

    things = {
        "Lock": threading.Lock(), "RLock": threading.RLock(), "SimpleQueue": queue.SimpleQueue(),
        "local": threading.local(), "main thread": threading.main_thread(),
    }  # fmt: skip
    if hasattr(_thread, "_ThreadHandle"):
        things["handle"] = _thread._ThreadHandle()
    return {kind: sorted(dir(thing)) for kind, thing in things.items()}


def test_no_name_is_missing():
    """A new version of Python adds methods, which its own modules then call."""
    real = names()
    (rank,) = pysmpi.run(names, 1, compute="none").returns
    assert {kind: sorted({*real[kind]} - {*rank[kind]}) for kind in real} == {
        kind: [] for kind in real
    }
