"""The demos of mpi4py's source distribution, and its benchmarks, run as under a real MPI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from distribution import Unavailable, suite, without

LAUNCHER = [sys.executable, "-m", "pysmpi", "run", "-q", "--compute", "none"]

#: Folder, ranks and command of a demo, and what it has to print.
DEMOS = [
    ("reductions", 5, "python test_reductions.py -q", "OK"),
    ("sequential", 5, "python test_seq.py", ""),
    ("nxtval", 5, "python nxtval-threads.py", ""),
    ("nxtval", 5, "python nxtval-dynproc.py", ""),
    ("nxtval", 5, "python nxtval-onesided.py", ""),
    ("nxtval", 5, "python nxtval-scalable.py", ""),
    # Its rank 0 clears the counter after others may count already: the order decides.
    ("nxtval", 5, "--selector default python nxtval-mpi3.py", ""),
    ("threads", 1, "python sendrecv.py", ""),
    ("spawning", 1, "python cpi-master.py cpi-worker.py", "pi: 3.1416"),
    ("futures", 2, "python test_futures.py -q", "Ran 54 tests"),
    ("futures", 3, "python -m mpi4py.futures test_futures.py -q", "Ran 117 tests"),
    ("futures", 5, "python -m mpi4py.futures run_primes.py", "112272535095293 is prime: True"),
    (".", 2, "osu_barrier.py", "Latency [us]"),
    (".", 3, "-m mpi4py.bench helloworld", "I am process 2 of 3"),
    (".", 3, "-m mpi4py.bench ringtest", "(3 processes, 1 bytes)"),
    (".", 2, "-m mpi4py.bench pingpong -m 1024 -n 65536", "    65536 "),
    (".", 3, "-m mpi4py.bench futures -m 1024 -n 4096", "      4096 "),
]


@pytest.fixture(scope="module")
def demos() -> Path:
    try:
        return suite().parent / "demo"
    except Unavailable as error:
        without("the folder of mpi4py's demos", error)


def run(
    command: list[str], folder: Path, given: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, input=given,
        env={**os.environ, **variables},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("folder", "ranks", "command", "said"),
    DEMOS,
    ids=[f"{folder}-{command.replace(' ', '-')}-{ranks}" for folder, ranks, command, _ in DEMOS],
)
def test_demo(demos: Path, folder: str, ranks: int, command: str, said: str) -> None:
    done = run([*LAUNCHER, "-n", str(ranks), *command.split()], demos / folder)
    assert done.returncode == 0, done.stderr[-3000:]
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize("program", ["cpi-cco.py", "cpi-rma.py"])
def test_pi_asks_until_it_gets_zero(demos: Path, program: str) -> None:
    done = run([*LAUNCHER, "-n", "3", "python", program], demos / "compute-pi", "100\n20\n0\n")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("pi is approximately 3.14") == 2


@pytest.mark.parametrize(
    "folder, script, ranks, last",
    [("init-fini", "run.sh", "2", "test_mpi40.py"),
     ("mpi-ref-v1", "runtests.sh", "3", "ex-3.13.py")],
)  # fmt: skip
def test_scripts_that_call_a_launcher(
    demos: Path, folder: str, script: str, ranks: str, last: str
) -> None:
    """Ways to initialize MPI, and the examples of MPI - The Complete Reference."""
    done = run(
        ["sh", script], demos / folder,
        MPIEXEC=" ".join(LAUNCHER), PYTHON="python", NP=ranks,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.count(last) == 1


def test_how_programs_end_under_mpi4py_run(demos: Path) -> None:
    """Exceptions, `sys.exit` and interrupts under `python -m mpi4py.run`."""
    done = run(
        [sys.executable, "test_run.py", "TestRunCommand", "TestRunScript.testSysExitCode",
         "TestRunScript.testSysExitMess", "TestRunScript.testInterrupt"],
        demos / "test-run",
        MPIEXEC=" ".join(LAUNCHER),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Ran 6 tests" in done.stderr


def test_makefiles_that_call_a_launcher(demos: Path, tmp_path: Path) -> None:
    (tmp_path / "makefile").write_text(
        "run:\n\t$(MPIEXEC) -np 2 --oversubscribe -x HOME $(PYTHON) -c "
        "'from mpi4py import MPI; print(MPI.COMM_WORLD.size)'\n"
    )
    done = run(["make", "-s", f"MPIEXEC={' '.join(LAUNCHER)}", "PYTHON=python3"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "2"]
