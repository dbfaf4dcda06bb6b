"""Threads that are alive when their rank ends do not keep the process of the run from ending."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import concurrent.futures, multiprocessing, os, signal, sys, threading, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
other = 1 - comm.rank
def deaf(*_):
    while True:
        try: threading.Event().wait()
        except BaseException: pass
def start(function):
    threading.Thread(target=function, daemon=True).start()
def threads(count):
    return concurrent.futures.ThreadPoolExecutor(count)
def processes(count):
    fork = multiprocessing.get_context("fork")  # others import the program, and MPI, in the child
    return concurrent.futures.ProcessPoolExecutor(count, fork)
def made_by_a_daemon(work):
    def feed():
        pool = threads(2)
        while True: list(pool.map(work, [0.1, 0.2]))
    start(feed)
exec(sys.argv[1])
comm.Barrier()
time.sleep(1)
exec(sys.argv[2])
"""

DEAF = "pool that catches everything, of a daemon"
KINDS = {
    "pool without work": "pool = threads(1); pool.submit(print).result()",
    "pool with work": "pool = threads(1); pool.submit(time.sleep, 5); pool.submit(time.sleep, 5)",
    "pool of a daemon": "made_by_a_daemon(time.sleep)",
    DEAF: "made_by_a_daemon(deaf)",
    "pool that nobody has any more": "threads(1).submit(time.sleep, 5)",
    "thread": "threading.Thread(target=time.sleep, args=(5,)).start()",
    "daemon that catches everything": "start(deaf)",
    "pool of processes": "pool = processes(1); pool.submit(int).result()",
    "queue between processes": "items = multiprocessing.Queue(); items.put(1)",
}
ENDS = {
    "return": (0, "pass"),
    "raise": (1, "raise ValueError"),
    "sys.exit": (4, "sys.exit(4)"),
    "abort": (5, "comm.Abort(5)"),
    "hard exit": (7, "os._exit(7)"),
    "signal": (143, "os.kill(os.getpid(), signal.SIGTERM)"),
    "deadlock": (3, "comm.recv(source=other)"),
}
# A process would wait for such a pool for ever, too. The other omissions save time, and a process
# of a pool may still send something that ends a wait.
OMITTED = {
    *{(DEAF, end) for end in ("return", "raise", "sys.exit")},
    *{("pool of processes", end) for end in ("raise", "sys.exit", "signal", "deadlock")},
}

# Each case names the threads that Python would join at its end.
CALLER = """
import concurrent.futures.process, concurrent.futures.thread, json, sys, threading
import pysmpi
waited = concurrent.futures.thread._threads_queues, concurrent.futures.process._threads_wakeups
if __name__ == "__main__":
    for name, *words in json.load(sys.stdin):
        result = pysmpi.run(
            "program.py", 2, args=words, check=False, compute="none", cfg={"smpi/most-polls": "100"}
        )
        left = [str(thread) for table in waited for thread in table] + threading.enumerate()[1:]
        print(json.dumps([name, result.exit_status, left]), flush=True)
"""


def test_the_process_of_the_run_ends(write, tmp_path: Path) -> None:
    cases = [
        (f"{kind}, {end}", KINDS[kind], ENDS[end][1])
        for kind in KINDS for end in ENDS if (kind, end) not in OMITTED
    ]  # fmt: skip
    write("program.py", PROGRAM)
    done = subprocess.run(
        [sys.executable, write("caller.py", CALLER)], input=json.dumps(cases),
        capture_output=True, text=True, timeout=100, cwd=tmp_path,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    wanted = [[name, ENDS[name.rpartition(", ")[2]][0], []] for name, *_ in cases]
    assert (found, done.returncode) == (wanted, 0), done.stderr
