"""Signals of ranks to themselves and to each other, `os.abort`, `os.execv`: who ends, and how."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading, time
from mpi4py import MPI
c = MPI.COMM_WORLD
pids = c.allgather(os.getpid())
if c.rank == 2:
    signal.signal(signal.SIGUSR1, lambda number, frame: print("rank 2 got", number, flush=True))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
c.Barrier()
if c.rank == 1:
    {}
c.Barrier()
time.sleep(0.2)
c.Barrier()
print("rank", c.rank, "ends", flush=True)
"""


def run(write, line: str) -> tuple[int, list[str], str]:
    path = write("program.py", PROGRAM.format(line))
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", path],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100,
        start_new_session=True,
    )  # fmt: skip
    assert "bug in pysmpi" not in done.stderr
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


ENDS = [
    ("os.abort()", 134, "rank 1 called os.abort()"),
    ("os.kill(os.getpid(), signal.SIGTERM)", 143, "rank 1 was killed by SIGTERM"),
    ("os.kill(0, signal.SIGHUP)", 129, "rank 1 was killed by SIGHUP"),
    ("os.killpg(os.getpgrp(), signal.SIGQUIT)", 131, "rank 1 was killed by SIGQUIT"),
    ("signal.raise_signal(signal.SIGTERM)", 143, "rank 1 was killed by SIGTERM"),
    ("signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)", 138, "was killed by SIGUSR1"),
    ("os.kill(pids[0], signal.SIGTERM)", 143,
     "rank 0 was killed by SIGTERM, which rank 1 sent"),
    ("os.kill(pids[2], signal.SIGKILL)", 137, "rank 2 was killed by SIGKILL, which rank 1 sent"),
    ("os.kill(os.getpid(), signal.SIGINT)", 130, "KeyboardInterrupt"),
    ("os.execv('/bin/sh', ['sh', '-c', 'echo new; exit 7'])", 7,
     "rank 1 became sh (os.execv), which ended with status 7"),
    ("os.execve('/bin/sh', ['sh', '-c', 'exit $N'], {'N': '5'})", 5, "became sh"),
    ("os.execv(sys.executable, [sys.executable, *sys.argv])", 2, "process would be no rank"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "status", "text"), ENDS, ids=[end[0] for end in ENDS])
def test_the_rank_that_ends_is_named(write, line, status, text):
    returned, printed, report = run(write, line)
    assert (returned, printed) == (status, ["new"] if "echo" in line else [])
    assert text in report


def test_signals_that_end_no_process_end_no_rank(write):
    lines = """
    os.kill(pids[2], signal.SIGUSR1)
    os.kill(pids[2], signal.SIGTERM)
    os.kill(pids[0], signal.SIGCHLD)
    for pid in (*pids, 0, os.getppid()): os.kill(pid, 0)
    signal.signal(signal.SIGHUP, lambda *given: print("here"))
    os.kill(0, signal.SIGHUP)
    """
    printed = ["here", "rank 0 ends", "rank 1 ends", "rank 2 ends", "rank 2 got 10"]
    assert run(write, lines.strip())[:2] == (0, printed)


ERRORS = {
    "os.kill(5_999_999, 0)": "ProcessLookupError: [Errno 3] No such process",
    "os.kill(os.getpid(), 999)": "OSError: [Errno 22] Invalid argument",
    "os.kill(pids[2], 999)": "OSError: [Errno 22] Invalid argument",
    "signal.pthread_kill(1, 0)": "ProcessLookupError: [Errno 3] No such process",
    "os.execv('/none', ['x'])": "FileNotFoundError: [Errno 2] No such file or directory",
    "os.execve('/none', ['x'], {})":
        "FileNotFoundError: [Errno 2] No such file or directory: '/none'",
    "os.execv('/bin/sh', [])": "ValueError: execv() arg 2 must not be empty",
}  # fmt: skip


def test_errors_are_those_of_processes(write):
    lines = f"""
    for call in {list(ERRORS)}:
        try: eval(call)
        except Exception as error: print(f"{{call}} {{type(error).__name__}}: {{error}}")
    """
    status, printed, _ = run(write, lines.strip())
    assert status == 0
    assert [line for line in printed if line[:5] != "rank "] == sorted(
        f"{call} {error}" for call, error in ERRORS.items()
    )
