"""Ctrl-C: the run ends at once and reports the lines of its ranks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMPUTING = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
def compute():
    print("begun", flush=True)
    while True:
        pass
if comm.rank == 1:
    compute()
comm.Barrier()
"""

COMMUNICATING = """
import numpy
from mpi4py import MPI
comm = MPI.COMM_WORLD
data = numpy.zeros(1000)
step = 0
while True:
    comm.Allreduce(data.copy(), data)
    step += 1
    if step == 50 and comm.rank == 0:
        print("begun", flush=True)
"""


STUBBORN = """
import time
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 1:
    print("begun", flush=True)
while True:
    try:
        while comm.rank == 1:
            pass
        comm.Barrier()
    except BaseException:
        print("again")
        comm.Barrier()
        time.sleep(1)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_that_end_a_process_end_the_run(start, write, tmp_path: Path, number):
    write("prog.py", STUBBORN)
    process = start(
        "run", "-n", "3", "--trace", "t.json", "--report", "r.json", "--compute", "none", "prog.py"
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    how = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert err.startswith(f"pysmpi: {how} at t=")
    assert "rank 1  " in err
    assert "Traceback" not in err
    assert out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["prog.py"]


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    "program, seen",
    [
        (COMPUTING, ["rank 1  ", "runs", "in compute", "waits in Barrier()"]),
        (COMMUNICATING, ["Allreduce()", "prog.py:"]),
    ],
    ids=["computing", "communicating"],
)
def test_interrupt(start, write, tmp_path: Path, program, seen):
    write("prog.py", program)
    process = start(
        "run", "-n", "3", "--trace", "t.json", "--report", "r.json", "--compute", "none", "prog.py"
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.startswith("pysmpi: interrupted at t=")
    for words in seen:
        assert words in err
    assert "Traceback" not in err
    # No file is incomplete.
    assert [path.name for path in tmp_path.iterdir()] == ["prog.py"]


PRESSED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["run", "-n", "2", "-c", "print('begun')"]
from pysmpi.__main__ import main
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    "name", ["pysmpi.cli.main", "click", "pysmpi.cli.run", "pysmpi.runtime.job", "numpy"]
)
def test_while_the_command_line_is_imported(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRESSED.format(name=name)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 130
    assert done.stderr.strip() == "pysmpi: error: interrupted"
    assert done.stdout == ""
