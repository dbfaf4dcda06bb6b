"""Loops of tests that nothing can end are reported, and no others."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import pytest


def run(program: str, *options: str, ranks: int = 3) -> subprocess.CompletedProcess[str]:
    head = "import time\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD\nme = comm.rank\n"
    return subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-n", str(ranks), "--compute", "none",
         "--cfg", "smpi/most-polls:1000", *options, "-c", head + textwrap.dedent(program)],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip


HOPELESS = """
if me == 0:
    while not comm.Iprobe(source=1, tag=8):
        pass
elif me == 1:
    request = comm.irecv(source=0)
    while not request.Test():
        time.sleep(1e-3)
else:
    comm.recv(source=0)
"""


@pytest.mark.parametrize("grow", ["yes", "no"])
def test_ranks_that_test_in_vain_are_reported(grow):
    done = run(HOPELESS, "--cfg", f"smpi/grow-injected-times:{grow}")
    assert done.returncode == 3
    assert "PSM106 livelock at" in done.stderr
    assert "rank 0  tests in Iprobe(source=1, tag=8)" in done.stderr
    assert re.search(r"rank 1  tests in (Test\(\) for Irecv\(source=0|sleep\(\))", done.stderr)
    assert "rank 2  waits in recv(source=0, tag=ANY_TAG)" in done.stderr
    assert "help: pysmpi explain PSM106" in done.stderr


def test_the_number_of_tests_is_the_option():
    polls = "if me == 0:\n    while not comm.Iprobe(source=1): pass\ncomm.recv(source=2)"
    seconds = []
    for most in (1_000, 10_000):
        words = ["--cfg", "smpi/grow-injected-times:no", "--cfg", f"smpi/most-polls:{most}"]
        report = run(polls, *words).stderr
        found = re.search(r"PSM106 livelock at t=([\d.]+) (m?)s", report)
        assert found is not None and f"{most:,} tests in a row" in report, report
        seconds.append(float(found[1]) * (1e-3 if found[2] else 1.0))
    assert 5 < seconds[1] / seconds[0] < 15


def test_it_can_be_raised_in_every_rank():
    done = run(
        "try:\n" + textwrap.indent(HOPELESS, "    ") + """
except MPI.Exception as error:
    assert "PSM106" in str(error)
    print("caught", me)
comm.Barrier()
""", "--on-deadlock", "raise",
    )  # fmt: skip
    assert sorted(done.stdout.split("\n")) == ["", "caught 0", "caught 1", "caught 2"], done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    "busy",
    [
        "time.sleep(1e4)",  # longer than all the tests
        "for _ in range(4000): time.sleep(1.0)",
        "comm.Recv(bytearray(10**6), 2); time.sleep(1e4)",
    ],
)
def test_tests_that_will_succeed_go_on(busy):
    done = run(f"""
        if me == 0:
            while not comm.Iprobe(source=1):
                pass
            print(comm.recv(source=1))
        elif me == 1:
            {busy}
            comm.send("done", 0)
        elif {"Recv" in busy}:
            time.sleep(3e3)
            comm.Send(bytearray(10**6), 1)
    """, "--cfg", "smpi/grow-injected-times:no", "--cfg", "smpi/iprobe:1")  # fmt: skip
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


def test_ranks_that_test_between_their_work_go_on():
    done = run("""
        if me == 0:
            request = comm.irecv(source=1)
            while not request.Test():
                pass
        elif me == 1:
            for step in range(2000):
                comm.Iprobe(source=2)
            comm.send("done", 0)
    """, "--compute", "1ms", "--cfg", "smpi/grow-injected-times:no")  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_limit_is_a_number():
    done = run("pass", "--cfg", "smpi/most-polls:-3")
    assert done.returncode == 2
    assert "smpi/most-polls" in done.stderr
    assert "expected a whole number that is not negative, got '-3'" in done.stderr


@pytest.mark.parametrize("compute", ["none", "1us"])
def test_ranks_that_share_a_core_and_look_at_the_clock_between_tests_are_reported(
    tmp_path, compute
):
    path = tmp_path / "one.yaml"
    path.write_text("name: one\nhosts: [{name: h, speed: 1Gf, cores: 1}]\n")
    polls = "while not comm.Iprobe(): MPI.Wtime()"
    done = run(polls, "--compute", compute, "--platform", str(path), ranks=2)
    assert done.returncode == 3
    assert "PSM106 livelock at" in done.stderr
