"""Timers of signals (`alarm`, `setitimer`), which belong to a rank and its clock."""

from __future__ import annotations

import signal

import pytest

import pysmpi

START = """
import os, queue, select, signal, threading, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
class Late(Exception): pass
def late(number, frame):
    raise Late
signal.signal(signal.SIGALRM, late)
"""


@pytest.mark.parametrize(
    "wait",
    [
        "time.sleep(5)",
        "threading.Event().wait(5)",
        "queue.Queue().get()",
        "select.select([reader], [], [], 5)",
        "os.read(reader, 1)",
    ],
)
def test_an_alarm_ends_a_wait(write, wait):
    program = f"""
reader, writer = os.pipe()
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    {wait}
    raise SystemExit(7)
except Late:
    assert abs(MPI.Wtime() - 0.5) < 1e-3, MPI.Wtime()
"""
    result = pysmpi.run(write("program.py", START + program), nprocs=2, compute="none")
    assert result.exit_status == 0


def test_waits_continue_after_a_handler_and_alarms_repeat(write, capsys):
    program = """
got = []
signal.signal(signal.SIGALRM, lambda number, frame: got.append(round(MPI.Wtime(), 3)))
signal.setitimer(signal.ITIMER_REAL, 0.5, 0.25)
time.sleep(1.1)
assert abs(MPI.Wtime() - 1.1) < 1e-3, MPI.Wtime()
print(got, signal.setitimer(signal.ITIMER_REAL, 0)[1], signal.alarm(10), signal.alarm(0))
signal.setitimer(signal.ITIMER_REAL, 0.4)
signal.pause()
print(got[3:], signal.getitimer(signal.ITIMER_REAL))
"""
    pysmpi.run(write("program.py", START + program), nprocs=1, compute="none")
    assert capsys.readouterr().out.splitlines() == [
        "[0.5, 0.75, 1.0] 0.25 0 10",
        "[1.5] (0.0, 0.0)",
    ]


def test_an_alarm_ends_a_computation_of_its_rank_alone(write, capsys):
    program = """
begun = time.time()
if comm.rank == 1:
    signal.setitimer(signal.ITIMER_REAL, 0.1)
else:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
try:
    while time.time() < begun + 0.3:
        sum(range(100))
    print(comm.rank, "ends")
except Late:
    print(comm.rank, "late")
"""
    before = signal.getsignal(signal.SIGVTALRM)
    pysmpi.run(write("program.py", START + program), nprocs=3)
    assert sorted(capsys.readouterr().out.splitlines()) == ["0 ends", "1 late", "2 ends"]
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
