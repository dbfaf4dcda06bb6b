"""Processes that ranks start end with the job, in whichever way it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import pysmpi
from tests.processes_of import Mark

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="finding all processes needs /proc"
)

PROGRAM = """
import multiprocessing, os, subprocess, sys, time
from mpi4py import MPI

world = MPI.COMM_WORLD
quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)

def fork_twice(session):
    pid = os.fork()
    if pid == 0:
        if session:
            os.setsid()
        if os.fork() == 0:
            time.sleep(100)
        os._exit(0)
    os.waitpid(pid, 0)

if world.rank == 0:
    subprocess.Popen(["sleep", "101"])
    subprocess.Popen(["sleep", "102"], start_new_session=True)
    subprocess.Popen(["sleep", "103"], preexec_fn=lambda: os.setpgid(0, 0), **quiet)
    subprocess.Popen("sleep 104 & yes | sleep 105", shell=True)
    subprocess.Popen("nohup sleep 106 & setsid sleep 107 &", shell=True)
    os.posix_spawn("/bin/sh", ["sh", "-c", "sleep 108; true"], os.environ)
    os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "109")
    os.system("sleep 110 &")
    fork_twice(False)
    fork_twice(True)
    if os.fork() == 0:
        os.execlp("sh", "sh", "-c", "sleep 112 & sleep 113 & wait")
    for kind in ("fork", "spawn"):
        context = multiprocessing.get_context(kind)
        context.Process(target=time.sleep, args=(100,), daemon=True).start()
    subprocess.Popen("setsid sh -c '>begun; exec sleep 114' &", shell=True, **quiet)
    while not os.path.exists("begun"):
        time.sleep(0.01)
    print("begun", flush=True)
how = sys.argv[1]
if how == "abort" and world.rank == 0:
    world.Abort(7)
if how == "raise" and world.rank == 0:
    raise ValueError("wrong")
if how == "_exit" and world.rank == 0:
    os._exit(5)
if how == "wait":
    subprocess.run(["sleep", "100"])
if how == "crash" and world.rank == 0:
    import ctypes
    ctypes.string_at(0)
if how in ("wait", "deadlock"):
    world.recv()
world.Barrier()
"""


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("end", 0), ("abort", 7), ("raise", 1), ("_exit", 5), ("deadlock", 3),
        ("crash", -signal.SIGSEGV), (signal.SIGINT, 130), (signal.SIGTERM, 143),
        (signal.SIGHUP, 129), (signal.SIGQUIT, -signal.SIGQUIT), (signal.SIGKILL, -signal.SIGKILL),
    ],
)  # fmt: skip
def test_they_end_with_the_job(how, status, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    mark = Mark()
    word = how if isinstance(how, str) else "wait"
    run = subprocess.Popen(
        [sys.executable, "-m", "pysmpi", "run", "-n", "2", "--compute", "none", "program.py", word],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=mark.variables,
    )  # fmt: skip
    try:
        assert run.stdout.readline() == b"begun\n", run.stderr.read()
        if not isinstance(how, str):
            run.send_signal(how)
        # No process keeps the pipes of the job open.
        _, said = run.communicate(timeout=60)
        assert run.returncode == status, said
        if how == "end":
            # It has a session of its own, and no standard stream of the job.
            until = time.monotonic() + 60.0
            while (left := list(mark.processes().values())) != ["sleep 114"]:
                assert time.monotonic() < until, left
                time.sleep(0.01)
        else:
            assert mark.left() == []
    finally:
        mark.clear()
        run.kill()


def test_they_end_with_a_run_inside_a_process_whose_other_children_go_on():
    def main():
        import subprocess

        return [subprocess.Popen(["sleep", "100"]).pid for _ in range(2)]

    with subprocess.Popen(["sleep", "100"]) as other:
        try:
            pids = sum(pysmpi.run(main, 2, compute="none").returns, [])
            for pid in pids:
                with pytest.raises(ProcessLookupError):
                    os.kill(pid, 0)
            assert other.poll() is None
        finally:
            other.kill()


def test_variables_of_the_job_are_not_those_of_ranks():
    def main():
        import os
        import subprocess

        pid = os.fork()
        if pid == 0:
            os._exit(any(name.startswith("PYSMPI_JOB") for name in os.environ))
        forked = os.waitpid(pid, 0)[1]
        shown = subprocess.run(["env"], capture_output=True, text=True).stdout
        return forked, any(name.startswith("PYSMPI_JOB") for name in os.environ), shown

    for forked, seen, shown in pysmpi.run(main, 2, compute="none").returns:
        assert (forked, seen) == (0, False)
        assert shown.count("PYSMPI_JOB=") == 1
