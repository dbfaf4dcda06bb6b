"""A command, a signal at a moment of it, and what is to hold afterwards.

Each command runs on its own; the moment is a part of the time that it usually takes. The signal
goes to the process of the command, as `kill` sends it, or to all processes of its group, as a
terminal does.

A command has one right status for each signal. pysmpi's commands end with 128 + N from the moment
at which they handle signals (docs/reference/run.md). Before, while Python starts, and after, when
Python has put the default actions back, a signal ends them as any process of Python: SIGTERM and
SIGHUP kill it, SIGINT is a KeyboardInterrupt. The command is stopped for an instant before the
signal, and the mask of its handlers in /proc says in which of the two states it is.

Pytest has no handlers of SIGTERM and SIGHUP. SIGINT ends a session of tests with status 2.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.processes_of import Mark

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 40.0  # seconds from the signal to the end of the command

PROGRAM = """
import gc, logging, os, subprocess, sys, weakref
from mpi4py import MPI

class Thing:
    def __del__(self):
        sum(range(50))

world = MPI.COMM_WORLD
child = subprocess.Popen(["sleep", "300"]) if world.rank == 0 else None
for step in range(int(sys.argv[1])):
    world.allreduce(step)
    thing = Thing()
    finalizer = weakref.finalize(thing, sum, range(50))
    reference = weakref.ref(thing, lambda _: sum(range(50)))
    del thing
    logging.getLogger(f"step{step % 50}").debug("step %d", step)
    if step % 25 == 0:
        gc.collect()
    if step % 50 == 49 and world.rank == 0:
        subprocess.run(["true"])
        if os.fork() == 0:
            os._exit(0)
        os.wait()
"""

ORDERS = """
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.rank:
    for i in range(4):
        world.send(i, 0)
else:
    for i in range(4 * (world.size - 1)):
        world.recv()
"""

STUDY = """
program: program.py
arguments: [["100"]]
ranks: [2, 3]
selectors: [ompi, mpich]
options: {compute: none}
"""

TESTS = """
import pytest, subprocess, sys
sys.argv[1:] = ["50"]

@pytest.mark.mpi(2)
@pytest.mark.parametrize("number", range(5))
def test_program(number):
    import runpy
    runpy.run_path("program.py")
"""


@dataclass(frozen=True)
class SignalledCommand:
    """A command, and its status after each signal in the middle of it."""

    name: str
    arguments: list[str]
    statuses: dict[int, int]


_PYSMPI = [sys.executable, "-m", "pysmpi"]
_KILLED = {signal.SIGKILL: -9}
_OWN = _KILLED | {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
_OF_PYTEST = _KILLED | {signal.SIGINT: 2, signal.SIGTERM: -15, signal.SIGHUP: -1}
# Python ends with -2 after a KeyboardInterrupt, and with 1 while it imports `site`.
_OF_PYTHON = {
    signal.SIGINT: {-2, 1},
    signal.SIGTERM: {-15},
    signal.SIGHUP: {-1},
    signal.SIGKILL: {-9},
}

COMMANDS = [
    SignalledCommand("run", [*_PYSMPI, "run", "-n", "3", "--compute", "none", "--trace", "t.json",
                             "program.py", "150"], _OWN),
    SignalledCommand("explore", [*_PYSMPI, "explore", "-n", "3", "orders.py"],
                     _OWN),
    SignalledCommand("sweep", [*_PYSMPI, "sweep", "study.yaml", "--workers", "2"], _OWN),
    SignalledCommand("replay", [*_PYSMPI, "replay", "recorded.jsonl"], _OWN),
    SignalledCommand("pytest", [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                                "test_ranks.py"], _OF_PYTEST),
]  # fmt: skip


def prepare(directory: Path, steps: int = 200) -> None:
    """Write the files of the commands; the trace to replay has so many steps."""
    (directory / "program.py").write_text(PROGRAM)
    (directory / "orders.py").write_text(ORDERS)
    (directory / "study.yaml").write_text(STUDY)
    (directory / "test_ranks.py").write_text(TESTS)
    (directory / "pytest.ini").write_text("[pytest]\n")
    subprocess.run(
        [*_PYSMPI, "run", "-q", "-n", "8", "--compute", "none", "--trace", "recorded.jsonl",
         "program.py", str(steps)],
        cwd=directory, check=True, capture_output=True, env=environment(), timeout=100,
    )  # fmt: skip


def environment(**more: str) -> dict[str, str]:
    """The variables of a command."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


@dataclass
class SignalOutcome:
    """What happened; `wrong` says what should not have, and is empty if all is right."""

    command: str
    number: int
    moment: float
    to_group: bool
    status: int | None
    seconds: float
    left: list[str]
    error: str
    wrong: str

    def __str__(self) -> str:
        to = "group" if self.to_group else "process"
        return (
            f"{self.command}, {signal.Signals(self.number).name} to the {to} at {self.moment:.3f} "
            f"s: status {self.status} after {self.seconds:.2f} s; {self.wrong or 'right'}"
        )


def signalled(
    command: SignalledCommand, number: int, moment: float, to_group: bool, directory: Path,
    begun: Callable[[Mark], bool] | None = None,
) -> SignalOutcome:  # fmt: skip
    """Run a command, send it a signal after `moment` seconds, and judge its end."""
    mark = Mark()
    process = subprocess.Popen(
        command.arguments, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(**mark.variables), start_new_session=True, text=True,
    )  # fmt: skip
    try:
        if begun is not None:
            until = time.monotonic() + LONGEST
            while not begun(mark) and process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
        time.sleep(moment)
        stopped = _stopped(process)
        sent = time.monotonic()
        if stopped is not None:
            (os.killpg if to_group else os.kill)(process.pid, number)
            os.kill(process.pid, signal.SIGCONT)
        try:
            output, error = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            output = error = ""
        seconds = time.monotonic() - sent
        left = mark.left() if process.returncode is not None else sorted(mark.processes().values())
    finally:
        mark.clear()
        process.kill()
        process.wait()
    status = process.returncode
    wrong = ""
    right = {0} if stopped is None else _right(command, number, stopped, output)
    if seconds >= LONGEST:
        wrong = "the signal was lost"
    elif left:
        wrong = f"left: {left}"
    elif status not in right:
        wrong = f"expected status {sorted(right)}: {output[-200:]}{error[-400:]}"
    elif "Traceback" in error and "pysmpi/" in error and "KeyboardInterrupt" not in error:
        wrong = f"a traceback: {error[-1000:]}"
    return SignalOutcome(
        command.name, number, moment, to_group, status, seconds, left, error, wrong
    )


def _stopped(process: subprocess.Popen[str]) -> set[int] | None:
    """Stop a process: the signals that it handles, or None if it has ended."""
    if process.poll() is not None:
        return None
    os.kill(process.pid, signal.SIGSTOP)
    while True:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        values = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        if values["State"][0] in "ZX":
            return None
        if values["State"][0] == "T":
            mask = int(values["SigCgt"], 16)
            return {number for number in range(1, 65) if mask >> (number - 1) & 1}
        time.sleep(0.001)


def _right(command: SignalledCommand, number: int, handled: set[int], output: str) -> set[int]:
    """The statuses that are right for a signal to a process with these handlers."""
    if command.name != "pytest":
        begun = signal.SIGTERM in handled
    elif number == signal.SIGINT:
        if "passed" in output and "KeyboardInterrupt" not in output:
            return {0} | _OF_PYTHON[number]  # all tests had ended
        begun = "KeyboardInterrupt" in output
    else:
        begun = True
    return {command.statuses[number]} if begun else _OF_PYTHON[number]
