"""The debugger stops in the rank that fails, at deadlocks and at calls, with all ranks at hand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FAILS = """\
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.rank


def halo(step):
    mine = step * 10 + rank
    comm.send(mine, dest=(rank + 1) % comm.size, tag=step)
    got = comm.recv(source=(rank - 1) % comm.size, tag=step)
    if step == 2 and rank == 1:
        raise ValueError(f"bad value {got}")
    return got


for step in range(4):
    halo(step)
comm.Barrier()
print("end of", rank)
"""

HANGS = """\
from mpi4py import MPI

comm = MPI.COMM_WORLD
me = comm.rank
comm.isend("lost", dest=0, tag=9)
if me == 2:
    comm.recv(source=0, tag=7)
comm.Barrier()
"""


def debug(
    directory: Path, source: str, commands: list[str], *options: str
) -> subprocess.CompletedProcess[str]:
    """Run a program with four ranks; the commands are typed at the prompts."""
    (directory / "prog.py").write_text(source)
    words = [sys.executable, "-m", "pysmpi", "run", "-n", "4", "-q", "--compute", "none"]
    return subprocess.run(
        [*words, *options, "prog.py"], cwd=directory, input="\n".join([*commands, ""]), text=True,
        capture_output=True, timeout=120,
    )  # fmt: skip


def test_the_failing_rank_and_the_others(tmp_path: Path) -> None:
    commands = ["ranks", "p rank, comm.rank, got", "rank 3", "p rank, comm.rank, mine", "where all"]
    done = debug(tmp_path, FAILS, [*commands, "rank 7", "continue"], "--pdb")
    out = done.stdout
    assert "ValueError: bad value 20" in out
    assert re.search(r"^-> rank 1 .* here +prog.py:12$", out.replace("(pysmpi, rank 1) ", ""), re.M)
    assert re.search(r"rank 3 .* in (send|recv)\(.*\) +prog.py:\d+ in halo", out)
    assert "(pysmpi, rank 1) (1, 1, 20)" in out
    assert re.search(r"\(pysmpi, rank 3\) \(3, 3, \d3\)", out)
    assert out.count("<module>() halo(step)") == 4
    assert "expected the number of a rank below 4" in out
    assert "pysmpi/" not in out.replace(str(tmp_path), "") and "lib/python" not in out
    assert done.returncode == 1 and "PSM102 exception in a rank: rank 1" in done.stderr


def test_deadlock_and_messages(tmp_path: Path) -> None:
    done = debug(tmp_path, HANGS, ["p me", "queue", "rank 0", "where", "quit"], "--pdb")
    out = done.stdout
    assert "PSM101 deadlock" in out and "(pysmpi, rank 2) 2" in out
    assert "rank 2 receives from 0: tag 7" in out
    assert re.search(r"rank 3 has sent to rank 0: tag 9, \d+ bytes", out)
    assert "-> comm.Barrier()" in out
    assert done.returncode == 1 and done.stderr == "pysmpi: ended in the debugger\n"


QUEUES = """\
import time
from mpi4py import MPI

comm = MPI.COMM_WORLD
comm.Barrier()
if comm.rank == 0:
    requests = [comm.isend(i, 2, tag=i) for i in range(53)]
time.sleep(1.0)
if comm.rank == 3:
    comm.Barrier()
time.sleep(1.0)
"""


def test_the_queue_is_empty_or_has_too_many_messages_to_show(tmp_path: Path) -> None:
    done = debug(
        tmp_path, QUEUES, ["queue", "message", "queue", "quit"], "--break", "rank=3,call=Barrier"
    )
    first, second = re.split(r"call \d+: rank 3 calls Barrier", done.stdout)[1:]
    assert "no message waits for a receive, and no receive for a message" in first
    assert re.findall(r"rank 0 has sent to rank 2: tag (\d+), \d+ bytes", second) == [
        str(i) for i in range(50)
    ]
    assert "... 3 more" in second and "no message waits" not in second


def test_breakpoint_at_a_call_and_steps(tmp_path: Path) -> None:
    commands = ["p step, mine", "message", "p step", "next", "next", "p mine", "continue"]
    done = debug(tmp_path, FAILS, commands, "--break", "rank=2,call=recv,count=2")
    out = done.stdout
    assert re.search(r"call \d+: rank 2 calls recv", out)
    assert "(pysmpi, rank 2) (1, 12)" in out  # at the second call, in the second step
    assert re.search(r"call \d+: rank 2 calls send\n.*\n-> comm.send", out)
    assert out.index("-> got = comm.recv(", out.index("calls send")) > 0
    assert "PSM102" in done.stderr  # it went on to the end


@pytest.mark.parametrize("compute", ["none", "1e-5"])
def test_back_to_an_earlier_call(tmp_path: Path, compute: str) -> None:
    commands = ["message all", "message all", "message all", "back 2", "ranks", "quit"]
    options = ["--break", "rank=1,call=recv", "--compute", compute]
    done = debug(tmp_path, FAILS, commands, *options)
    stops = re.findall(r"call (\d+): (rank \d calls \w+)\n", done.stdout)
    assert len(stops) == 5
    numbers = [int(number) for number, _ in stops]
    assert numbers[:4] == list(range(numbers[0], numbers[0] + 4))
    assert stops[4] == stops[1]
    assert f"back to call {numbers[1]}: running the program again" in done.stdout


def test_the_end_of_the_input_goes_on(tmp_path: Path) -> None:
    source = FAILS.replace("step == 2", "step == 9")
    done = debug(tmp_path, source, ["next"], "--break", "rank=0,call=Barrier", "--pdb")
    assert done.returncode == 0
    assert sorted(re.findall(r"end of (\d)", done.stdout)) == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank=x", "rank: expected a number, got 'x'"),
        ("rank", "expected rank=RANK,call=NAME,count=N"),
        ("count=0", "count: expected at least 1, got 0"),
        ("call=irecV", "no such MPI call 'irecV'; did you mean irecv?"),
    ],
)
def test_wrong_breakpoints(tmp_path: Path, text: str, message: str) -> None:
    done = debug(tmp_path, FAILS, [], "--break", text)
    assert done.returncode == 2 and message in done.stderr
