"""Ctrl-C: the run ends at once and reports the lines of its ranks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import environment

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
    "name", ["pysmpi.cli.main", "click", "pysmpi.cli.run", "pysmpi.job.job", "numpy"]
)
def test_while_the_command_line_is_imported(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRESSED.format(name=name)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 130
    assert done.stderr.strip() == "pysmpi: error: interrupted"
    assert done.stdout == ""


# The command, with a shorter time for ranks that go on: rank 1 computes until it is over.
IMPATIENT = """
import sys
from pysmpi.ranks import stopping
stopping.GRACE = 0.2
sys.argv[0] = "pysmpi"
from pysmpi.__main__ import main
main()
"""
CALLBACKS = """
import atexit, ctypes, functools, gc, logging, os, sys, threading, weakref
from mpi4py import MPI

world = MPI.COMM_WORLD
library = ctypes.CDLL(None)

pressed = []

def press(*ignored, **ignored_too):
    if not pressed:
        pressed.append(True)
        library.kill(library.getpid(), {number})
    for _ in range(1000):  # the handler is called somewhere here
        pass
    return 0

class Thing:
    pass

class Finalized:
    def __del__(self):
        press()

def weak_callback():
    thing = Thing()
    reference = weakref.ref(thing, press)
    del thing

def weak_finalizer():
    weakref.finalize(Thing(), press)

def finalizer():
    Finalized()

def collector():
    gc.callbacks.append(press)
    gc.collect()

def after_fork():
    os.register_at_fork(after_in_parent=press)
    pid = os.fork()
    if pid == 0:
        os._exit(0)

def log_filter():
    logging.getLogger().addFilter(press)
    with logging._lock:
        press()

def c_callback():
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(press)
    library.qsort((ctypes.c_int * 8)(*range(8)), 8, 4, compare)

def comparison():
    sorted(range(5), key=functools.cmp_to_key(press))

def importing():
    class Finder:
        def find_spec(self, name, path=None, target=None):
            press()
    sys.meta_path.insert(0, Finder())
    try:
        import no_such_module
    except ImportError:
        pass

def unraisable():
    sys.unraisablehook = press
    class Wrong:
        def __del__(self):
            raise ValueError
    Wrong()

def swallowed():
    try:
        press()
    except BaseException:
        pass

if world.rank == 1:
    {name}()
    while True:
        pass
world.Barrier()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("weak_callback", signal.SIGINT), ("weak_finalizer", signal.SIGTERM),
        ("finalizer", signal.SIGHUP), ("collector", signal.SIGINT), ("after_fork", signal.SIGINT),
        ("log_filter", signal.SIGTERM), ("c_callback", signal.SIGINT),
        ("comparison", signal.SIGINT), ("importing", signal.SIGINT),
        ("unraisable", signal.SIGINT), ("swallowed", signal.SIGINT),
    ],
)  # fmt: skip
def test_no_signal_is_lost_in_a_callback(write, tmp_path: Path, name, number):
    """Exceptions in these callbacks are not passed on to the program."""
    write("prog.py", CALLBACKS.format(name=name, number=int(number)))
    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT, "run", "-n", "3", "--compute", "none", "prog.py"],
        capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment(),
    )  # fmt: skip
    err = done.stderr
    assert done.returncode == 128 + number, err
    how = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert err.startswith(f"pysmpi: {how} at t=")
    assert "rank 1  " in err and "Traceback" not in err and "Exception ignored" not in err


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_the_second_signal_ends_at_once(start, write, tmp_path: Path):
    write(
        "prog.py",
        """
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.rank == 1:
    try:
        print("begun", flush=True)
        while True:
            pass
    finally:
        import ctypes
        ctypes.CDLL(None).write(1, b"ending\\n", 7)
        while True:
            pass
world.Barrier()
""",
    )
    process = start("run", "-n", "2", "--compute", "none", "--trace", "t.json", "prog.py")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "ending\n"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert err == "pysmpi: error: ended by SIGTERM\n"
    assert [path.name for path in tmp_path.iterdir()] == ["prog.py"]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_run_in_a_program_of_the_user_is_interrupted_too(tmp_path: Path):
    """Python's own handler would raise an exception in the callback, where it is lost."""
    file = tmp_path / "user.py"
    file.write_text("""
import pysmpi
from pysmpi.ranks import stopping

stopping.GRACE = 0.2

def main():
    import ctypes, weakref
    from mpi4py import MPI

    library = ctypes.CDLL(None)
    class Thing: pass
    def press(*ignored):
        library.kill(library.getpid(), 2)
        for _ in range(1000):
            pass
    thing = Thing()
    reference = weakref.ref(thing, press)
    del thing
    while True:
        pass

try:
    pysmpi.run(main, 2, compute="none")
except KeyboardInterrupt:
    print("interrupted")
""")
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)
