"""Runs that begin in several threads at once, and streams of the caller of a run."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pysmpi
from pysmpi.errors import UsageError

THREADS = """
import threading
import pysmpi

found = []

def work(number):
    def main():
        from mpi4py import MPI
        return MPI.COMM_WORLD.allreduce(number)
    try:
        found.append(pysmpi.run(main, 3, compute="none").returns[0])
    except Exception as error:
        found.append(repr(error))

threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(map(str, found)) == sorted(str(3 * number) for number in range(6)), found)
"""

# Like a notebook's stream: a real thread writes, and `flush` waits for it.
STREAM = """
import io, queue, sys, threading, time
import pysmpi

class Stream(io.TextIOBase):
    def __init__(self):
        self.tasks = queue.Queue()
        self.late = 0
        self.lines = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            self.tasks.get()()

    def write(self, text):
        self.tasks.put(lambda: self.lines.append(text))
        return len(text)

    def flush(self):
        event = threading.Event()
        self.tasks.put(event.set)
        if not event.wait(10):
            self.late += 1

def main():
    import logging
    from mpi4py import MPI
    begin = MPI.Wtime()
    print("from a rank", flush=True)
    logging.getLogger("some").error("a record")
    return MPI.Wtime() - begin

import logging
stream = Stream()
logging.basicConfig(stream=stream)
before, sys.stdout = sys.stdout, stream
result = pysmpi.run(main, 3, compute="none")
sys.stdout = before
stream.flush()
text = "".join(stream.lines)
print(stream.late, max(result.returns) < 1e-6, text.count("from a rank"), text.count("a record"))
"""


# Like a notebook's kernel: it sends nothing for a process that has been forked from it.
KERNEL = """
import os, sys, time, types

class Session:
    def __init__(self):
        self.pid, self.sent = os.getpid(), []

    def send(self, content):
        if os.getpid() != self.pid:
            print("attempted to send message from fork")
            return
        began = time.perf_counter()
        time.sleep(0.01)
        self.sent.append((content, time.perf_counter() - began >= 0.01))

sys.modules["jupyter_client"] = types.ModuleType("jupyter_client")
module = sys.modules["jupyter_client.session"] = types.ModuleType("jupyter_client.session")
module.Session = Session
session = Session()

import pysmpi

def main():
    from mpi4py import MPI
    session.send(f"figure {MPI.COMM_WORLD.rank}")
    return MPI.Wtime()

result = pysmpi.run(main, 3, compute="none")
print(session.sent, max(result.returns) < 0.01)
session.send("after")
print(session.sent[-1], "send" in vars(Session), Session.send.__qualname__)
"""

HOOK = """
import sys
import pysmpi

shown = []
sys.excepthook = lambda *what: shown.append(what[0].__name__)

def main(own):
    from mpi4py import MPI
    if own:
        sys.excepthook = lambda *what: print("own", what[1])
    if MPI.COMM_WORLD.rank == 1:
        raise ValueError("boo")
    if not own:
        MPI.COMM_WORLD.Barrier()

for own in (False, True):
    try:
        pysmpi.run(main, 3, args=(own,), compute="none")
    except pysmpi.ProgramError as error:
        print(str(error).splitlines()[0], "ValueError: boo" in str(error), shown)
"""


def test_runs_in_threads_take_turns():
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.startswith("True"), done.stdout + done.stderr


def test_a_run_within_a_rank_is_refused():
    def main():
        with pytest.raises(UsageError, match="called in rank 0"):
            pysmpi.run(lambda: 1, 2)
        return "refused"

    assert pysmpi.run(main, 1, compute="none").returns == ["refused"]


def test_a_stream_that_waits_for_a_real_thread_costs_no_virtual_time():
    done = subprocess.run(
        [sys.executable, "-c", STREAM], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "0 True 3 3\n", done.stdout + done.stderr


def test_figures_go_to_the_kernel_of_a_notebook():
    done = subprocess.run(
        [sys.executable, "-c", KERNEL], capture_output=True, text=True, timeout=300
    )
    sent = [(f"figure {rank}", True) for rank in range(3)]
    assert done.stdout == f"{sent} True\n('after', True) True Session.send\n", (
        done.stdout + done.stderr
    )


def test_the_hook_of_the_caller_gets_no_errors_of_ranks():
    done = subprocess.run([sys.executable, "-c", HOOK], capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert lines[0] == "PSM102 exception in a rank: rank 1 True []", done.stdout + done.stderr
    assert lines[1] == "own boo", done.stdout + done.stderr
