"""The end of the process of `pysmpi run`: quick, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import Command, environment

# A shared module keeps the object, so that its rank does not call its finalizer.
KEPT = (
    "import numpy, weakref\n"
    "kept = vars(numpy)['kept'] = [open('kept.txt', 'w')]\n"
    "kept[0].write('all')\n"
)


@pytest.fixture
def released(tmp_path: Path, write: Callable[[str, str], Path]) -> Callable[..., tuple[int, bool]]:
    """Run `python ... PROGRAM`: the exit status, and whether Python released the modules."""

    def run(python: list[str], text: str) -> tuple[int, bool]:
        program = write("program.py", text)
        done = subprocess.run(
            [sys.executable, "-v", *python, "run", "--quiet", "-n", "2", str(program)],
            capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment(),
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.returncode, "# cleanup" in done.stderr

    return run


MODULE = ["-m", "pysmpi"]


def test_a_plain_run_ends_without_a_release_of_all_objects(released) -> None:
    assert released(MODULE, "print('hi')") == (0, False)


def test_the_exit_status_is_kept(released) -> None:
    assert released(MODULE, "raise SystemExit(7)") == (7, False)


@pytest.mark.parametrize(
    "python", [["-m", "cProfile", *MODULE], ["-i", *MODULE], ["-X", "dev", *MODULE]]
)
def test_python_ends_a_process_that_someone_observes(released, python: list[str]) -> None:
    assert released(python, "print('hi')") == (0, True)


def test_python_ends_a_process_with_threads(released, tmp_path: Path) -> None:
    starter = tmp_path / "starter.py"
    starter.write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "from pysmpi.__main__ import main\n"
        "main()\n"
    )
    assert released([str(starter)], "print('hi')") == (0, True)


def test_python_ends_a_process_with_open_files(released, tmp_path: Path) -> None:
    assert released(MODULE, KEPT) == (0, True)
    assert (tmp_path / "kept.txt").read_text() == "all"


def test_profiles_are_printed(write, tmp_path: Path) -> None:
    program = write("program.py", "print('hi')")
    done = subprocess.run(
        [sys.executable, "-m", "cProfile", *MODULE, "run", "--quiet", str(program)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment(),
    )  # fmt: skip
    assert "function calls" in done.stdout


def test_output_of_c_is_written(pysmpi: Command, write) -> None:
    program = write(
        "program.py", "import ctypes\nctypes.CDLL(None).printf(b'of C')\nprint('of Python', end='')"
    )
    done = pysmpi("run", "--quiet", str(program))
    assert done.returncode == 0
    assert done.stdout in ("of Cof Python", "of Pythonof C")


def test_functions_of_atexit_are_called(pysmpi: Command, write) -> None:
    # The handler writes its records in a function of `atexit`.
    program = write(
        "program.py",
        "import atexit\nfrom mpi4py import MPI\n"
        "atexit.register(print, 'rank', MPI.COMM_WORLD.rank)\n"
        "import logging.handlers\n"
        "memory = logging.handlers.MemoryHandler(9, target=logging.FileHandler('log.txt'))\n"
        "logging.getLogger().addHandler(memory)\n"
        "logging.warning('noted')\n",
    )
    done = pysmpi("run", "--quiet", "-n", "2", str(program))
    assert sorted(done.stdout.split("\n")) == ["", "rank 0", "rank 1"]
    assert (program.parent / "log.txt").read_text() == "noted\n" * 2


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, *MODULE, "run", "--quiet", "-c", "import sys; sys.stdout.write('x')"],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment(),
            timeout=300,
        )  # fmt: skip
    assert done.returncode != 0
    assert "No space left" in done.stderr
