"""No command opens a port: on this computer, processes are asked for their sockets all the time.

Only the schedulers and workers of Dask, which a user starts, and a debugger that a user starts
listen, on the addresses that the user gives.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes_of import NAME, Mark

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="sockets are listed in /proc"
)

_LISTEN = "0A"  # state of a socket in /proc/net/tcp

PROGRAM = """
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
world.allreduce(1)
if world.rank == 0:
    world.recv(source=MPI.ANY_SOURCE)
elif world.rank == 1:
    world.send(1, 0)
"""
STUDY = """
program: program.py
ranks: [2]
options: {compute: none}
"""


def listening(mark: Mark) -> dict[str, str]:
    """The addresses at which the processes of a command listen, with their command lines."""
    sockets: dict[str, str] = {}
    for pid, line in mark.processes().items():
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    name = os.readlink(path)
                    if name.startswith("socket:["):
                        sockets[name[8:-1]] = line
    found = {}
    for kind in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for row in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
                words = row.split()
                if words[3] == _LISTEN and words[9] in sockets:
                    text, port = words[1].split(":")
                    found[f"{_address(text)}:{int(port, 16)}"] = sockets[words[9]]
    return found


def _address(text: str) -> str:
    """An address of /proc/net/tcp: words of four bytes in the order of the processor."""
    words = [int(text[i : i + 8], 16) for i in range(0, len(text), 8)]
    return str(ipaddress.ip_address(struct.pack(f"={len(words)}I", *words)))


def test_listening_processes_are_seen():
    mark = Mark()
    code = (
        "import socket, sys\n"
        "a = socket.create_server(('127.0.0.1', 0)); b = socket.create_server(('', 0))\n"
        "c = socket.create_server(('::1', 0), family=socket.AF_INET6) if socket.has_ipv6 else a\n"
        "print(a.getsockname()[1], b.getsockname()[1], c.getsockname()[1], flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], env=mark.variables, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        ports = process.stdout.readline().split()
        found = listening(mark)
        process.stdin.close()
    expected = {f"127.0.0.1:{ports[0]}", f"0.0.0.0:{ports[1]}", f"::1:{ports[2]}"}
    assert set(found) == expected or set(found) == expected - {f"::1:{ports[2]}"}


COMMANDS = {
    "run": ["run", "-n", "3", "--trace", "t.jsonl", "--report", "r.json", "program.py"],
    "debug": ["run", "-n", "2", "--pdb", "program.py"],
    "explore": ["explore", "-n", "3", "--runs", "5", "--jobs", "2", "program.py"],
    "sweep": ["sweep", "study.yaml", "--workers", "2"],
    "view": ["view", "recorded.jsonl"],
    "pytest": ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_ranks.py"],
}


@pytest.fixture
def directory(tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_ranks.py").write_text(
        "import pytest\n@pytest.mark.mpi(2)\ndef test_it(comm):\n    comm.Barrier()\n"
    )
    monkeypatch.chdir(tmp_path)
    subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", "--compute", "none", "--trace",
         "recorded.jsonl", "program.py"],
        check=True, timeout=100,
    )  # fmt: skip
    return tmp_path


def _run(mark: Mark, arguments: list[str]) -> tuple[dict[str, str], subprocess.Popen[str]]:
    """Run a command to its end; all addresses at which it has listened."""
    seen: dict[str, str] = {}
    words = arguments if arguments[0] == "-m" else ["-m", "pysmpi", *arguments]
    process = subprocess.Popen(
        [sys.executable, *words], env=mark.variables, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write("c\nc\nc\n")  # a debugger goes on
    process.stdin.close()
    process.stdin = None
    while process.poll() is None:
        seen |= listening(mark)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.15)
    return seen, process


def test_commands_open_no_port(directory):
    for name, arguments in COMMANDS.items():
        mark = Mark()
        seen, process = _run(mark, arguments)
        assert not seen, (name, seen)
        assert process.stdout is not None
        output = process.stdout.read()
        process.stdout.close()
        assert process.returncode == 0, (name, output)


def test_clients_of_a_scheduler_open_no_port(directory, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="the extra sweep is not installed")
    mark = Mark()
    monkeypatch.setenv(NAME, mark.value)  # for the processes that workers start
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None,
        host="127.0.0.1", protocol="tcp://",
    ) as cluster:  # fmt: skip
        extra = ["--scheduler", cluster.scheduler_address]
        seen, process = _run(mark, ["sweep", *extra, "study.yaml"])
        assert process.stdout is not None
        output = process.stdout.read()
        process.stdout.close()
        assert process.returncode == 0, output
        assert not seen, seen
