"""Descriptors 0 to 2 are a rank's own once it changes them."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest


@pytest.fixture
def pysmpi_run(write):
    """Run a program under `pysmpi run`; returns its standard output."""

    def run(text: str, ranks: int = 3, *, status: int = 0, module: str | None = None) -> str:
        path = write("program.py" if module is None else "test_program.py", text)
        command = ["-m", module, "-q", "-p", "no:cacheprovider", path] if module else [path]
        # Without buffers `print` writes a line in parts, and a child may write between them.
        environ = {key: text for key, text in os.environ.items() if key != "PYTHONUNBUFFERED"}
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", "run", "-n", str(ranks), *command],
            capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
            cwd=os.path.dirname(path), env=environ,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return done.stdout

    return run


REDIRECT = """
import ctypes, os, subprocess, sys, tempfile
from mpi4py import MPI
world = MPI.COMM_WORLD
rank = world.rank
libc = ctypes.CDLL(None)

def say(word):
    print(word, "python", rank)
    libc.puts(f"{word} C {rank}".encode())
    subprocess.run(["echo", word, "child", str(rank)])

lowest = os.dup(1)
os.close(lowest)
say("begin")
world.Barrier()
with tempfile.TemporaryFile("w+") as file:
    if rank == 1:
        saved = os.dup(1)
        sys.stdout.flush()
        libc.fflush(None)
        assert os.dup2(file.fileno(), 1) == 1
    world.Barrier()
    say("middle")
    world.Barrier()
    if rank == 1:
        sys.stdout.flush()
        libc.fflush(None)
        os.dup2(saved, 1)
        os.close(saved)
        file.seek(0)
        print("captured", sorted(file.read().splitlines()))
world.Barrier()
say("end")
free = os.dup(1)
assert lowest < 100 and free < 100  # ordinary numbers
os.close(free)
"""


def test_what_one_rank_redirects_is_of_this_rank(pysmpi_run):
    lines = sorted(pysmpi_run(REDIRECT).splitlines())
    expected = [
        f"{word} {who} {rank}"
        for word in ("begin", "middle", "end")
        for who in ("python", "C", "child")
        for rank in range(3)
        if (word, rank) != ("middle", 1)
    ]
    captured = ["middle C 1", "middle child 1", "middle python 1"]
    assert lines == sorted([*expected, f"captured {captured}"])


def test_a_descriptor_that_a_rank_closes_is_closed_there_only(pysmpi_run):
    lines = pysmpi_run(
        """
        import os
        from mpi4py import MPI
        world = MPI.COMM_WORLD
        rank = world.rank
        if rank == 1:
            os.close(0)
            os.close(1)
        world.Barrier()
        if rank == 1:
            assert os.open(os.devnull, os.O_RDONLY) == 0
            assert os.open("of rank 1", os.O_CREAT | os.O_WRONLY) == 1
            world.Barrier()
            assert os.read(0, 1) == b""
        else:
            os.fstat(0)
            world.Barrier()
        print("seen", rank)
        world.Barrier()
        if rank == 2:
            os.closerange(100, 2000)
        world.Barrier()
        print("again", rank)
        world.Barrier()
        if rank == 0:
            with open("of rank 1") as file:
                print("of rank 1:", file.read().split())
        """
    ).splitlines()
    assert sorted(lines) == [
        "again 0", "again 2", "of rank 1: ['seen', '1', 'again', '1']", "seen 0", "seen 2",
    ]  # fmt: skip


def test_pytest_captures_in_every_rank(pysmpi_run):
    text = """
    import ctypes, subprocess
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank

    def test_of_a_capture(capfd):
        print("python")
        libc = ctypes.CDLL(None)
        libc.puts(b"C")
        libc.fflush(None)
        subprocess.run(["echo", "child"])
        MPI.COMM_WORLD.Barrier()
        assert sorted(capfd.readouterr().out.split()) == ["C", "child", "python"]

    def test_that_fails_in_one_rank():
        print("printed by", rank)
        MPI.COMM_WORLD.Barrier()
        assert rank != 2
    """
    output = pysmpi_run(text, 4, status=1, module="pytest")
    assert len(re.findall(r"^2 passed in", output, re.MULTILINE)) == 3
    assert len(re.findall(r"^1 failed, 1 passed in", output, re.MULTILINE)) == 1
    assert re.findall("printed by .*", output) == ["printed by 2"]


def test_nothing_remains_of_it_after_a_run(write):
    path = write(
        "caller.py",
        """
        import os
        import pysmpi

        def program():
            from mpi4py import MPI
            if MPI.COMM_WORLD.rank == 1:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.close(0)
            MPI.COMM_WORLD.Barrier()
            print("rank", MPI.COMM_WORLD.rank)
            MPI.COMM_WORLD.Barrier()

        def seen():
            return [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)]

        def high():
            return [fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 20]

        before = seen()
        for _ in range(2):
            pysmpi.run(program, 3)
            assert seen() == before, seen()
            assert not high()
        print("end")
        """,
    )
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=100,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["rank 0", "rank 2", "rank 0", "rank 2", "end"], done.stderr


BUFFERED = """
import os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
rank = world.rank
name = f"log.{rank}"

print("one", rank)
world.Barrier()
file = os.open(name, os.O_CREAT | os.O_WRONLY)
saved = os.dup(1)
os.dup2(file, 1)
print("two", rank)
world.Barrier()
if rank == 1:
    sys.stdout.flush()
os.write(1, b"direct\\n")
world.Barrier()
os.dup2(saved, 1)
print("three", rank, sys.stdout is sys.__stdout__, sys.stdout.name, sys.stdout.fileno())
if rank == 2:
    os.dup2(file, 1)
if len(sys.argv) > 1:
    world.recv(source=rank)
"""


@pytest.mark.parametrize("stopped", [False, True])
def test_buffered_text_goes_where_it_goes_in_a_process(tmp_path, stopped):
    (tmp_path / "program.py").write_text(BUFFERED)
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", "program.py", *["x"] * stopped],
        capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environ,
    )  # fmt: skip
    assert done.returncode == (3 if stopped else 0), done.stderr

    def text(rank: int) -> str:
        last = f"three {rank} True <stdout> 1\n"
        return f"one {rank}\ntwo {rank}\n{last}" if rank != 1 else last

    # As under mpiexec with three processes.
    assert sorted(done.stdout.splitlines()) == sorted((text(0) + text(1)).splitlines())
    assert (tmp_path / "log.0").read_text() == "direct\n"
    assert (tmp_path / "log.1").read_text() == "one 1\ntwo 1\ndirect\n"
    assert (tmp_path / "log.2").read_text() == "direct\n" + text(2)
