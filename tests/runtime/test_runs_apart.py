"""Runs in one process do not see each other: same bytes as in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PROCESS = ROOT / "tests" / "programs" / "what_a_process_owns.py"
LINUX = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads Linux's /proc")

APPS = {
    "dft.py": ["--grid", "12", "--orbitals", "4", "--iterations", "1"],
    "jacobi2d.py": ["--size", "20", "--iterations", "3"],
    "master_worker.py": ["--limit", "5000", "--task", "400"],
    "nbody.py": ["--bodies", "20", "--steps", "2"],
    "npb_cg.py": ["--class", "S", "--iterations", "2"],
    "pingpong.py": ["--max", "256", "--repeats", "2"],
}

# They take seconds a run even at their smallest; npb.py is their common module.
LONG = {
    "hpl.py", "npb.py", "npb_dt.py", "npb_ep.py", "npb_ft.py", "npb_is.py", "npb_lu.py",
    "npb_mg.py", "sweep3d.py",
}  # fmt: skip

# Prints a line a run: digests of the output, the report and the timeline.
RUNS = """
import contextlib, hashlib, io, json, sys
import pysmpi

def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]

trace = sys.argv[1]
for job in json.loads(sys.argv[2]):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = pysmpi.run(
            job["program"], 4, args=job["args"], compute="none", trace=trace, check=False
        )
    report = {**result.report(), "wall_seconds": None}
    with open(trace, "rb") as stream:
        timeline = stream.read()
    print(digest(out.getvalue().encode()), digest(json.dumps(report).encode()), digest(timeline))
"""


def runs(tmp_path: Path, jobs: list[dict[str, object]], seed: int = 0) -> list[str]:
    """The digests of some runs, one after the other in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", RUNS, str(tmp_path / "trace.csv"), json.dumps(jobs)],
        capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_application_is_there() -> None:
    assert {*APPS, *LONG} == {path.name for path in (ROOT / "apps").glob("*.py")}


def test_runs_of_applications_give_the_bytes_of_processes(tmp_path: Path) -> None:
    jobs = [{"program": str(ROOT / "apps" / name), "args": args} for name, args in APPS.items()]
    together = runs(tmp_path, [*jobs, *reversed(jobs)])
    alone = [runs(tmp_path, [job], seed=i + 1)[0] for i, job in enumerate(jobs)]
    assert together[: len(jobs)] == alone
    assert together[len(jobs) :] == alone[::-1]


BUSY = """
import csv, gc, json, locale, os, queue, random, signal, socket, sys, threading, time, wave
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
print(comm.rank, sys.getrecursionlimit(), gc.isenabled(), socket.getdefaulttimeout(),
      oct(os.umask(0o27)), signal.getsignal(signal.SIGUSR1), csv.list_dialects(),
      json.JSONEncoder.item_separator, hasattr(wave, "made_up"), len(gc.callbacks),
      random.random(), numpy.random.rand(), numpy.random.RandomState().rand(),
      numpy.random.Generator(numpy.random.PCG64()).random(), time.time(), sorted(os.environ)[:3])
sys.setrecursionlimit(3000 + comm.rank)
gc.disable()
socket.setdefaulttimeout(5)
signal.signal(signal.SIGUSR1, lambda *_: None)
os.environ["A_VARIABLE"] = "1"
csv.register_dialect("made_up", delimiter="|")
json.JSONEncoder.item_separator = "; "
wave.made_up = 1
gc.callbacks.append(lambda *_: None)
done = queue.Queue()
lock = threading.Lock()
def work():
    for _ in range(90):
        with lock:
            time.sleep(1e-6)
    done.put(threading.get_ident() - first)
first = threading.get_ident()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(comm.rank, sorted(done.get() for _ in threads), comm.allreduce(time.time()))
key = MPI.Comm.Create_keyval()
print(comm.rank, key, comm.Dup().py2f() if hasattr(comm, "py2f") else 0, MPI.Wtime())
"""


def test_a_hundred_runs_give_the_bytes_of_a_hundred_processes(
    write: Callable[..., str], tmp_path: Path
) -> None:
    job: dict[str, object] = {"program": write("busy.py", BUSY), "args": []}
    together = runs(tmp_path, [job] * 100)
    assert len(together) == 100
    assert set(together) == {runs(tmp_path, [job], seed)[0] for seed in (1, 2, 3)}


CHANGES = """
import contextlib, gc, io, json, sys
sys.path.insert(0, sys.argv[1])
import numpy, snapshot
import array, asyncio, codecs, csv, email.charset, encodings.ascii, encodings.idna, getpass
import mimetypes, multiprocessing, pwd, stringprep, unicodedata, urllib.request, uuid, wave
import argparse, datetime, decimal, inspect, pickle, platform, ssl, string, sysconfig, unittest
import pysmpi

def run():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        result = pysmpi.run(sys.argv[2], 4, args=sys.argv[3:], compute="none", check=False)
    gc.collect()
    return result.error

sysconfig.get_config_vars()
error = run()  # loads what a run needs
before = snapshot.take()
run()
print(json.dumps([error, *snapshot.changes(before, snapshot.take())]))
"""

# Changes that a run leaves on purpose.
STAYS = (
    "module numpy: made_up",  # packages of other distributions are as programs leave them
    "module subprocess: __warningregistry__",
    "module asyncio.base_events: __warningregistry__",
    "descriptors: ",  # descriptors of `os.open` that it never closes
    "module pysmpi.",
    "module made_up_by_a_hook",
)


@LINUX
def test_a_program_that_changes_all_that_a_process_owns_leaves_no_change(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHANGES, str(HERE), str(PROCESS), str(tmp_path)],
        capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    error, *found = json.loads(done.stdout.splitlines()[-1])
    assert error is None
    assert [line for line in found if not line.startswith(STAYS)] == []


@LINUX
@pytest.mark.parametrize(
    "text",
    [
        "import os; os.close(0)",
        "open(0).read()",
        "import sys; sys.stdin.close()",
        "import os\nos.close(1)\nos.close(2)",
        "import socket, tempfile\nkept = tempfile.TemporaryFile(), socket.socketpair()",
        "import asyncio, subprocess\nkept = asyncio.new_event_loop(), subprocess.run(['true'])",
        "import os\nfd = os.open(os.devnull, os.O_WRONLY)\nos.dup2(fd, 1)\nos.close(fd)",
    ],
)
def test_standard_descriptors_are_what_they_were(write: Callable[..., str], text: str) -> None:
    program = f"import os, sys, pysmpi\nprogram = {write('program.py', text)!r}\n" + """
def look():
    return [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)], os.listdir("/proc/self/fd")
import errno, fcntl, pysmpi.api
before = look()
result = pysmpi.run(program, 3, compute="none")
assert look() == before, (before, look())
print("as before", result.exit_status)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert (done.stdout, done.stderr) == ("as before 0\n", "")


BLOCKS = """
import contextlib, gc, io, json, sys
import pysmpi

def run():
    with contextlib.redirect_stdout(io.StringIO()):
        pysmpi.run(sys.argv[1], 4, compute="none")
    gc.collect()
    return sys.getallocatedblocks()

print(json.dumps([run() for _ in range(30)]))
"""


def test_memory_does_not_grow_with_the_number_of_runs(write: Callable[..., str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS, write("busy.py", BUSY)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    blocks = json.loads(done.stdout)
    growth = (blocks[-1] - blocks[9]) / len(blocks[10:])
    assert growth < 10, blocks


ENDED = """
import gc, sys
import pysmpi
from pysmpi.runtime.simulation import Simulation

kept = []
gc.collect()
for _ in range(3):
    try:
        pysmpi.run(sys.argv[1], 2, compute="none")
    except pysmpi.ProgramError as error:
        kept.append(error)
gc.collect()
print(len(kept), sum(isinstance(thing, Simulation) for thing in gc.get_objects()))
"""


def test_the_error_of_a_run_does_not_keep_its_ranks(write: Callable[..., str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDED, write("failing.py", "raise ValueError('made up')\n")],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "3 0\n"), done.stderr
