"""Ranks that wait in C: for each other, which ends the run, and for the world outside."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip(
    "pysmpi.waiting.stalls.watch",
    reason="pysmpi was installed without a C compiler, or the system is not Linux",
)

ROOT = Path(__file__).resolve().parents[2]

# The command with shorter times.
COMMAND = """
import sys
from pysmpi.waiting.stalls import judging
from pysmpi.waiting.stalls.kernel_waits import Ender
judging.INTERVAL = 0.1
judging.PATIENCE = {Ender.INSIDE: 0.6, Ender.NEARBY: 1.0}
judging.LONG = 1.2
sys.argv[0] = "pysmpi"
from pysmpi.__main__ import main
main()
"""

BEGIN = """
import ctypes, os, socket, subprocess, sys, threading, time
from mpi4py import MPI
world = MPI.COMM_WORLD
rank = world.rank
libc = ctypes.CDLL(None, use_errno=True)
data = ctypes.create_string_buffer(64)
class Pollfd(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]
def ready(fd):
    return Pollfd(fd, 1, 0)
def pair():
    return world.bcast(os.pipe() if rank == 0 else None)
def connections():
    return world.bcast([s.detach() for s in socket.socketpair()] if rank == 0 else None)
"""

# The first lines prepare, then rank 1 waits, and rank 0 would end its wait.
INSIDE = {
    "read of a pipe": ("ends = pair()", "libc.read(ends[0], data, 1)", "os.write(ends[1], b'x')"),
    "write to a full pipe": (
        "ends = pair()\nif rank == 1:\n    many = ctypes.create_string_buffer(1 << 20)",
        "libc.write(ends[1], many, 1 << 20)",
        "while os.read(ends[0], 4096): pass",
    ),
    "read that keeps the interpreter's lock": (
        "ends = pair()\nlibc = ctypes.PyDLL(None)",
        "libc.read(ends[0], data, 1)",
        "os.write(ends[1], b'x')",
    ),
    "recv": ("ends = connections()", "libc.recv(ends[0], data, 1, 0)", "os.write(ends[1], b'x')"),
    "poll": (
        "ends = pair()",
        "libc.poll(ctypes.byref(ready(ends[0])), 1, -1)",
        "os.write(ends[1], b'x')",
    ),
    "select": (
        "ends = pair()\nbits = (ctypes.c_uint64 * 16)()\nbits[ends[0] >> 6] = 1 << (ends[0] & 63)",
        "libc.select(1024, bits, None, None, None)",
        "os.write(ends[1], b'x')",
    ),
    "epoll": (
        "import select\nends = pair()\nlook = select.epoll()\nlook.register(ends[0])",
        "libc.epoll_wait(look.fileno(), data, 1, -1)",
        "os.write(ends[1], b'x')",
    ),
    "connection not accepted": (
        "if rank == 0:\n"
        "    door = socket.create_server(('127.0.0.1', 0))\n"
        "port = world.bcast(door.getsockname()[1] if rank == 0 else None)\n"
        "if rank == 1:\n"
        "    mine = socket.create_connection(('127.0.0.1', port))",
        "libc.recv(mine.fileno(), data, 1, 0)",
        "door.accept()[0].send(b'x')",
    ),
    "accept": (
        "if rank == 1:\n"
        "    door = socket.create_server(('127.0.0.1', 0))\n"
        "port = world.bcast(door.getsockname()[1] if rank == 1 else None, root=1)",
        "libc.accept(door.fileno(), None, None)",
        "socket.create_connection(('127.0.0.1', port))",
    ),
    "flock": (
        "file = open('locked', 'w')\nif rank == 0: libc.flock(file.fileno(), 2)\nworld.Barrier()",
        "libc.flock(file.fileno(), 2)",
        "libc.flock(file.fileno(), 8)",
    ),
    "pipe with a name": (
        "if rank == 0: os.mkfifo('pipe')\nworld.Barrier()",
        "libc.open(b'pipe', os.O_RDONLY)",
        "open('pipe', 'w')",
    ),
    "semaphore of System V": (
        "gate = world.bcast(libc.semget(0, 1, 0o1600) if rank == 0 else None)\n"
        "open('gate', 'w').write(str(gate))",
        "libc.semop(gate, b'\\0\\0\\xff\\xff\\0\\0', 1)",
        "libc.semop(gate, b'\\0\\0\\1\\0\\0\\0', 1)",
    ),
    "semaphore": (
        "place = ctypes.create_string_buffer(64) if rank == 0 else None\n"
        "where = world.bcast(ctypes.addressof(place) if rank == 0 else None)\n"
        "gate = ctypes.c_void_p(where)\n"
        "if rank == 0: libc.sem_init(gate, 0, 0)\n"
        "world.Barrier()",
        "libc.sem_wait(gate)",
        "libc.sem_post(gate)",
    ),
    "named semaphore": (
        "name = f'/pysmpi-test-{world.bcast(os.getpid())}-{time.time_ns()}'.encode()\n"
        "name = world.bcast(name)\n"
        "libc.sem_open.restype = ctypes.c_void_p\n"
        "gate = ctypes.c_void_p(libc.sem_open(name, os.O_CREAT, 0o600, 0))\n"
        "world.Barrier()\n"
        "libc.sem_unlink(name)",
        "libc.sem_wait(gate)",
        "libc.sem_post(gate)",
    ),
}

# One rank waits for something outside; then the run goes on.
OUTSIDE = """
child = os.posix_spawn('/bin/sleep', ['sleep', '1.2'], os.environ)
libc.waitpid(child, None, 0)
child = subprocess.Popen(['sh', '-c', 'sleep 1.2; echo done'], stdout=-1)
assert libc.read(child.stdout.fileno(), data, 4) == 4
libc.system(b'sleep 1.2')
libc.usleep(1200000)
libc.poll(ctypes.byref(ready(os.pipe()[0])), 1, 1200)
print("asks", flush=True)
while libc.poll(ctypes.byref(ready(0)), 1, -1) == -1:
    pass  # as C code does after a signal
assert os.read(0, 4) == b'more'
"""


def start(directory: Path, ranks: int, body: str, **streams: object) -> subprocess.Popen[str]:
    program = directory / "prog.py"
    program.write_text(BEGIN + body, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, "run", "-n", str(ranks), "prog.py"],
        cwd=directory, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **streams,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """All runs at the same time: they mostly wait."""
    found = {}
    for name, (prepare, wait, release) in INSIDE.items():
        body = (
            f"{prepare}\nprint('begun', flush=False)\nif rank == 1:\n    {wait}  # here\n"
            f"else:\n    world.recv(source=1)\n    {release}\n"
        )
        found[name] = start(tmp_path_factory.mktemp("inside"), 2, body)
    alone = "ends = os.pipe()\nlibc.alarm(3)\nlibc.read(ends[0], data, 1)\n"
    found["alone"] = start(tmp_path_factory.mktemp("alone"), 1, alone)
    yield found
    for process in found.values():
        process.kill()
        process.wait()
    for gate in tmp_path_factory.getbasetemp().glob("inside*/gate"):
        ctypes.CDLL(None).semctl(int(gate.read_text()), 0, 0)  # IPC_RMID


@pytest.mark.parametrize("name", INSIDE)
def test_a_wait_for_another_rank_ends_the_run(runs, name: str) -> None:
    status, out, err = ended(runs[name])
    assert status == 3, err
    assert err.startswith("PSM128 wait in C code: rank 1 has waited in "), err
    assert f"prog.py:{line_of(INSIDE[name][0])} in <module>: " in err
    assert "\n  rank 0  waits in " in err
    assert "Traceback" not in err
    assert set(out.split()) == {"begun"}  # what was printed is not lost


def line_of(prepare: str) -> int:
    return BEGIN.count("\n") + prepare.count("\n") + 4


def test_waits_for_the_world_outside_go_on(tmp_path: Path) -> None:
    body = "if rank == 0:\n" + "".join(f"    {line}\n" for line in OUTSIDE.splitlines())
    body += "world.Barrier()\nprint('done')\n"
    process = start(tmp_path, 2, body, stdin=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "asks\n"
        time.sleep(1.5)
        out, err = process.communicate("more", timeout=300)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "done\ndone\n"), err
    assert "PSM128" not in err


def test_a_wait_of_the_only_rank_is_not_reported(runs) -> None:
    status, _, err = ended(runs["alone"])
    assert status != 3
    assert "PSM128" not in err


# A function of C that goes on after a signal, as libraries do.
DEAF = """
ends = pair()
libc.siginterrupt({number}, 0)
print("begun", flush=True)
if rank == 1:
    {wait}
else:
    world.recv(source=1)
"""
WAITS = {
    "read": "libc.read(ends[0], data, 1)",
    "with the lock": "ctypes.PyDLL(None).read(ends[0], data, 1)",
}


@pytest.mark.parametrize(
    "name, number",
    [
        ("read", signal.SIGTERM), ("read", signal.SIGINT), ("read", signal.SIGHUP),
        ("with the lock", signal.SIGTERM),
    ],
)  # fmt: skip
def test_signals_end_a_run_that_waits_in_c(tmp_path: Path, name: str, number: int) -> None:
    process = start(tmp_path, 2, DEAF.format(number=int(number), wait=WAITS[name]))
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
    time.sleep(0.3)
    process.send_signal(number)
    status, _, err = ended(process)
    assert status == 128 + number, err
    how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    assert err.startswith(f"pysmpi: {how} at t=")
    assert "rank 1 did not return from read() of C code at prog.py:" in err
    assert "Traceback" not in err
