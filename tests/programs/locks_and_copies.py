"""Print how locks, queues, threads and similar objects look, and how they copy and pickle.

The argument is a directory, into which every rank writes its rows as JSON.
"""

import _thread
import asyncio
import concurrent.futures
import contextvars
import copy
import functools
import json
import logging
import multiprocessing
import os
import pickle
import queue
import random
import re
import sched
import select
import socket
import sys
import threading
import time

import numpy
from mpi4py import MPI


class Model:
    def __init__(self):
        self.lock = threading.Lock()


class Local(threading.local):
    x = 1


class Thread(threading.Thread):
    pass


def held(lock):
    lock.acquire()
    return lock


def started():
    thread = threading.Thread(target=int, name="started")
    thread.start()
    thread.join()
    return thread


THINGS = {
    "Lock": threading.Lock,
    "held Lock": lambda: held(threading.Lock()),
    "RLock": threading.RLock,
    "held RLock": lambda: held(held(threading.RLock())),
    "allocate_lock": _thread.allocate_lock,
    "Condition": threading.Condition,
    "Condition(Lock)": lambda: threading.Condition(threading.Lock()),
    "Event": threading.Event,
    "Semaphore": threading.Semaphore,
    "BoundedSemaphore": lambda: threading.BoundedSemaphore(2),
    "Barrier": lambda: threading.Barrier(2),
    "Thread": lambda: threading.Thread(target=int, name="named"),
    "subclass of Thread": lambda: Thread(name="named"),
    "started Thread": started,
    "current_thread": threading.current_thread,
    "Timer": lambda: threading.Timer(1, int),
    "local": threading.local,
    "subclass of local": Local,
    "Queue": queue.Queue,
    "LifoQueue": queue.LifoQueue,
    "PriorityQueue": queue.PriorityQueue,
    "SimpleQueue": queue.SimpleQueue,
    "list of locks": lambda: [threading.Lock()],
    "Model": Model,
    "ContextVar": lambda: contextvars.ContextVar("x"),
    "Context": contextvars.copy_context,
    "Future": concurrent.futures.Future,
    "ThreadPoolExecutor": concurrent.futures.ThreadPoolExecutor,
    "asyncio.Lock": asyncio.Lock,
    "asyncio.Event": asyncio.Event,
    "asyncio.Queue": asyncio.Queue,
    "multiprocessing.Lock": multiprocessing.Lock,
    "multiprocessing.Queue": multiprocessing.Queue,
    "socket": socket.socket,
    "select.poll": select.poll,
    "select.epoll": select.epoll,
    "file": lambda: open(os.devnull),
    "stdout": lambda: sys.stdout,
    "logger": lambda: logging.getLogger("x"),
    "handler": logging.NullHandler,
    "scheduler": sched.scheduler,
    "Random": lambda: random.Random(1),
    "Generator": lambda: numpy.random.default_rng(1),
    "cached": lambda: functools.lru_cache(int),
    "time.sleep": lambda: time.sleep,
    "environ": lambda: type(os.environ),
    "generator": lambda: (x for x in ()),
}


def text(function, *arguments):
    try:
        answer = function(*arguments)
        answer = f"{type(answer).__module__}.{type(answer).__qualname__} {answer!r}"[:90]
    except BaseException as error:
        answer = f"{type(error).__module__}.{type(error).__name__}: {error}"
    answer = re.sub(r"owner=[1-9]\d*", "owner=N", answer)
    answer = re.sub(r"0x[0-9a-fA-F]+>?|started \d+|stopped \d+|fd=\d+|rank \d", "0x", answer)
    return re.sub(r"\(\d+, \d+, \d+\)|<\d+>|[\w/]+python[\d.]*", "", answer)


def names(thing):
    # The locks of CPython 3.11 have no `_is_owned`, which `Condition` uses.
    return sorted(name for name in dir(thing) if name[0] != "_")


def main():
    rows = {}
    for name, make in THINGS.items():
        thing = make()
        rows[name] = text(lambda thing=thing: thing)
        if name != "current_thread":
            rows[f"names of {name}"] = names(thing)
        rows[f"copy {name}"] = text(copy.copy, thing)
        rows[f"deepcopy {name}"] = text(copy.deepcopy, thing)
        for protocol in (0, 2, 5) if name != "subclass of local" else (2, 5):
            rows[f"pickle {name} {protocol}"] = text(pickle.dumps, thing, protocol)
        if name != "subclass of local":
            rows[f"reduce {name}"] = text(type(thing).__reduce__, thing)
        rows[f"send {name}"] = text(MPI.pickle.dumps, thing)
        if "ock" in name and name[0] != "l":
            rows[f"type {name}"] = [
                isinstance(thing, _thread.LockType), isinstance(thing, type(threading.Lock())),
                type(thing) is type(make()), thing == make(), bool(thing), hash(thing) == id(thing),
            ]  # fmt: skip
            with_weight = text(setattr, thing, "new", 1)
            rows[f"attribute {name}"] = with_weight.partition(":")[0]
    with open(os.path.join(sys.argv[1], f"{MPI.COMM_WORLD.rank}.json"), "w") as file:
        json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
