"""Runs in one process do not see each other: same bytes as in processes of their own.

`PYSMPI_RUNS` is the number of runs: by default a few, and 100 for the full comparison.
"""

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

COUNT = int(os.environ.get("PYSMPI_RUNS", "24"))
GROWTH = 1 << 20  # bytes that a run may leave behind: tables of the interpreter grow in steps

# Prints for each run digests of the output, the report and the timeline, and the memory after it:
# blocks of Python's objects, and resident bytes.
RUNS = """
import contextlib, gc, hashlib, io, json, os, sys
import pysmpi

def resident():
    try:
        with open("/proc/self/statm") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0

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
    digests = [*map(digest, (out.getvalue().encode(), json.dumps(report).encode(), timeline))]
    del result, report, timeline, out
    gc.collect()
    print(json.dumps([digests, sys.getallocatedblocks(), resident()]))
"""

Run = tuple[list[str], int, int]


def runs(tmp_path: Path, jobs: list[dict[str, object]], seed: int = 0) -> list[Run]:
    """The digests and the memory of some runs, one after the other in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", RUNS, str(tmp_path / "trace.csv"), json.dumps(jobs)],
        capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(*json.loads(line),) for line in done.stdout.splitlines()]


def digests(found: list[Run]) -> list[list[str]]:
    return [each for each, _, _ in found]


def test_every_application_is_there() -> None:
    assert {*APPS, *LONG} == {path.name for path in (ROOT / "apps").glob("*.py")}


JOBS: list[dict[str, object]] = [
    {"program": str(ROOT / "apps" / name), "args": args} for name, args in APPS.items()
]


@pytest.fixture(scope="module")
def of_applications(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Runs of all applications in turn, in both orders."""
    order = [job for turn in range(-(-COUNT // len(JOBS))) for job in JOBS[:: (-1) ** turn]]
    return runs(tmp_path_factory.mktemp("together"), order)


def test_runs_of_applications_give_the_bytes_of_processes(
    of_applications: list[Run], tmp_path: Path
) -> None:
    alone = [digests(runs(tmp_path, [job], seed=i + 1))[0] for i, job in enumerate(JOBS)]
    turns = len(of_applications) // len(JOBS)
    assert digests(of_applications) == [one for i in range(turns) for one in alone[:: (-1) ** i]]


@LINUX
def test_runs_of_applications_leave_no_memory_behind(of_applications: list[Run]) -> None:
    sizes = [size for _, _, size in of_applications[len(JOBS) - 1 :]]  # each has run once
    assert sizes[-1] - sizes[0] < GROWTH * (len(sizes) - 1), sizes


BUSY = """
import csv, gc, json, locale, os, queue, random, signal, socket, sys, threading, time, wave
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
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
with ThreadPoolExecutor(3) as pool:
    futures = [pool.submit(time.sleep, 1e-6 * (i % 3)) for i in range(20)]
    time.sleep(1e-3)
    print(comm.rank, [futures.index(one) for one in as_completed(futures)], time.time(),
          len(wait(futures).done), time.time())
key = MPI.Comm.Create_keyval()
print(comm.rank, key, comm.Dup().py2f() if hasattr(comm, "py2f") else 0, MPI.Wtime())
"""


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], list[Run]]:
    """A program that changes its process, and runs of it."""
    here = tmp_path_factory.mktemp("busy")
    (here / "busy.py").write_text(BUSY)
    job: dict[str, object] = {"program": str(here / "busy.py"), "args": []}
    return job, runs(here, [job] * COUNT)


def test_many_runs_give_the_bytes_of_many_processes(
    busy: tuple[dict[str, object], list[Run]], tmp_path: Path
) -> None:
    job, together = busy
    alone = [digests(runs(tmp_path, [job], seed))[0] for seed in (1, 2)]
    assert digests(together) == [alone[0]] * COUNT
    assert alone[0] == alone[1]


def test_memory_does_not_grow_with_the_number_of_runs(
    busy: tuple[dict[str, object], list[Run]],
) -> None:
    blocks = [number for _, number, _ in busy[1]]
    growth = (blocks[-1] - blocks[9]) / len(blocks[10:])
    assert growth < 10, blocks


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


DESCRIPTORS = {
    "closed": "import os; os.close(0)",
    "closed by a file": "open(0).read()",
    "closed stream": "import sys; sys.stdin.close()",
    "closed output": "import os\nos.close(1)\nos.close(2)",
    "kept files": "import socket, tempfile\n"
                  "kept = tempfile.TemporaryFile(), socket.socketpair()",
    "kept loop": "import asyncio, subprocess\n"
                 "kept = asyncio.new_event_loop(), subprocess.run(['true'])",
    "replaced": "import os\nfd = os.open(os.devnull, os.O_WRONLY)\nos.dup2(fd, 1)\nos.close(fd)",
}  # fmt: skip
LOOK = """
import errno, fcntl, json, os, sys
import pysmpi, pysmpi.api
def look():
    return [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)], os.listdir("/proc/self/fd")
for name, text in json.loads(sys.argv[1]).items():
    with open("program.py", "w") as file:
        file.write(text)
    before = look()
    result = pysmpi.run("program.py", 3, compute="none")
    print(json.dumps([name, result.exit_status, before, look()]), flush=True)
"""


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """The statuses of programs in one process, and its descriptors before and after each."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK, json.dumps(DESCRIPTORS)], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=100, cwd=tmp_path_factory.mktemp("looks"),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return {name: rest for name, *rest in map(json.loads, done.stdout.splitlines())}


@LINUX
@pytest.mark.parametrize("name", DESCRIPTORS)
def test_standard_descriptors_are_what_they_were(looks, name: str) -> None:
    status, before, after = looks[name]
    assert (status, after) == (0, before)


ENDED = """
import gc, sys
import pysmpi
from pysmpi.ranks.simulation import Simulation

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
