"""Each rank has its own file under a number that it has chosen."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("fcntl")


def test_each_rank_has_its_own_file(write, tmp_path):
    path = write(
        "program.py",
        """
        import errno, fcntl, os, subprocess, sys
        from mpi4py import MPI
        c, r = MPI.COMM_WORLD, MPI.COMM_WORLD.rank
        def is_open(fd):
            try: return bool(os.fstat(fd))
            except OSError as error: return error.errno != errno.EBADF
        def rest(fd):
            os.lseek(fd, 0, 0)
            return os.read(fd, 99)
        def fresh(name):
            return os.open(f"{name}{r}", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        f = fresh("a")
        os.dup2(f, 50)
        c.Barrier()
        os.write(50, b"rank %d" % r)
        c.Barrier()
        assert rest(50) == b"rank %d" % r and rest(f) == rest(50)
        # Its duplicates share the position; a child has the file.
        assert fcntl.fcntl(f, fcntl.F_DUPFD, 60) == 60, r
        assert fcntl.fcntl(f, fcntl.F_DUPFD, 60) == 61, r
        os.dup2(f, 70, inheritable=False)
        c.Barrier()
        assert rest(60) == rest(61) == b"rank %d" % r
        assert not os.get_inheritable(70) and os.get_inheritable(50)
        child = [sys.executable, "-ISc", "import os; os.write(50, b'child')"]
        subprocess.run(child, pass_fds=[50])
        c.Barrier()
        assert rest(50) == b"rank %d" % r + b"child", rest(50)
        # One rank closes it, and the others still have it.
        if r == 1: os.close(50)
        c.Barrier()
        assert is_open(50) == (r != 1)
        if r == 1:
            try: os.write(50, b"x")
            except OSError as error: assert error.errno == errno.EBADF
        c.Barrier()
        # The end of a pipe is reached when its rank has closed it.
        reading, writing = os.pipe()
        os.dup2(writing, 50); os.close(writing)
        c.Barrier()
        os.write(50, b"last"); os.close(50)
        c.Barrier()
        assert os.read(reading, 99) == b"last" and os.read(reading, 99) == b""
        # A number that one rank alone chooses is free in the others, or is what it was.
        if r == 2: os.dup2(f, 700)
        c.Barrier()
        assert is_open(700) == (r == 2)
        g = fresh("g")
        os.write(g, b"mine")
        numbers = c.allgather(g)
        if r == 0: os.dup2(f, numbers[1])
        c.Barrier()
        assert rest(g) == b"mine" if r else rest(numbers[1])[:6] == b"rank 0"
        print("right")
        """,
    )
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", path],
        capture_output=True, text=True, timeout=100, cwd=tmp_path,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("right\n" * 3, 0), done.stderr
