"""Child processes of ranks: waits really take as long as the child, and others go on."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pysmpi


def run(main, size=1, **options):
    return pysmpi.run(main, size, **{"compute": "none", **options})


# Ends after the fourth child has begun; with another status if that takes 30 s.
MEET = """
: > $$
for i in $(seq 1000); do
    set -- *
    [ $# -ge 4 ] && exec sleep 0.3
    sleep 0.03
done
exit 5
"""


def test_ranks_wait_for_their_children_side_by_side(tmp_path, monkeypatch):
    def main():
        import subprocess
        import time

        begin = time.monotonic()
        status = subprocess.run(["sh", "-c", MEET]).returncode
        return status, time.monotonic() - begin

    monkeypatch.chdir(tmp_path)
    for status, seconds in run(main, 4).returns:
        assert status == 0
        assert seconds > 0.05


def test_a_timeout_of_a_child_is_not_over_before_it_really_is():
    def main():
        import subprocess
        import time

        begin = time.monotonic()
        done = subprocess.run(["sleep", "0.6"], timeout=60).returncode
        middle = time.monotonic()
        try:
            subprocess.run(["sleep", "60"], timeout=0.3)
        except subprocess.TimeoutExpired:
            return done, middle - begin, time.monotonic() - middle

    result = run(main, 1)
    ((done, first, second),) = result.returns
    assert done == 0
    assert 0.1 < first < 30
    assert 0.3 <= second < 30
    assert result.wall_seconds < 50


@pytest.mark.parametrize("nap", [0.0, 0.01])
def test_polling_a_child_lets_real_time_pass(nap):
    def main(nap):
        import subprocess
        import time

        begin = time.monotonic()
        child = subprocess.Popen(["sleep", "0.4"])
        while child.poll() is None:
            if nap:
                time.sleep(nap)
        return child.returncode, time.monotonic() - begin

    for status, seconds in run(main, 2, args=(nap,)).returns:
        assert status == 0
        assert 0.1 < seconds < 30


def test_another_rank_goes_on_while_one_waits_for_a_child():
    def main():
        import subprocess
        import time

        from mpi4py import MPI

        world = MPI.COMM_WORLD
        if world.rank == 0:
            subprocess.run(["sleep", "0.5"])
            date = time.monotonic()
            world.send("done", 1)
            return date
        seen = 0
        while not world.iprobe(source=0):
            seen += 1
            time.sleep(0.05)
        world.recv(source=0)
        return seen

    date, seen = run(main, 2).returns
    assert date > 0.1
    assert 2 <= seen <= date / 0.05 + 2


def test_wait_gives_a_rank_its_own_children():
    def main():
        import os

        from mpi4py import MPI

        rank = MPI.COMM_WORLD.rank
        for i in range(3):
            os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {10 * rank + i}"], os.environ)
        codes = sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3))
        try:
            os.wait()
        except ChildProcessError:
            return codes

    assert run(main, 2).returns == [[0, 1, 2], [10, 11, 12]]


def test_a_child_from_before_the_run_belongs_to_no_rank():
    """An example is the resource tracker of multiprocessing, which lives as long as its process."""

    def main():
        import os

        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 1:
            os.posix_spawn("/bin/sh", ["sh", "-c", "exit 3"], os.environ)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
        try:
            return os.wait()
        except ChildProcessError:
            return "none"

    with subprocess.Popen(["sleep", "100"]) as before:
        try:
            assert run(main, 2).returns == ["none", "none"]
        finally:
            before.kill()


def test_other_ways_to_wait():
    def main():
        import os

        def start(code):
            command = ["sh", "-c", f"sleep 0.05; exit {code}"]
            return os.posix_spawn("/bin/sh", command, os.environ)

        first = os.waitid(os.P_PID, start(1), os.WEXITED).si_status
        second = os.wait4(start(2), 0)
        third = os.wait3(0) if start(3) else None
        fourth = os.waitpid(start(4), 0)[1]
        nothing = os.waitpid(start(5), os.WNOHANG)
        os.wait()
        return first, second[1] >> 8, third[1] >> 8, fourth >> 8, nothing, os.system("exit 6") >> 8

    assert run(main, 2).returns == [(1, 2, 3, 4, (0, 0), 6)] * 2


def test_input_and_output_of_a_child_larger_than_pipes():
    def main():
        import subprocess

        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        data = b"0123456789" * 100_000
        return child.communicate(data)[0] == data

    assert run(main, 2).returns == [True, True]


# After each line it waits until the line has been read; for 30 s at most.
LINES = """
for i in 1 2 3; do
    echo $i
    for j in $(seq 1000); do
        [ -e read$i ] && continue 2
        sleep 0.03
    done
    exit 5
done
"""


def test_lines_of_a_child_as_they_come(tmp_path, monkeypatch):
    def main():
        import subprocess
        import time

        child = subprocess.Popen(["sh", "-c", LINES], stdout=subprocess.PIPE, text=True)
        dates = []
        for line in child.stdout:
            dates.append((line.strip(), time.monotonic()))
            open(f"read{line.strip()}", "w").close()
        return dates, child.wait()

    monkeypatch.chdir(tmp_path)
    ((dates, status),) = run(main).returns
    assert [line for line, _ in dates] == ["1", "2", "3"]
    assert status == 0
    assert dates[0][1] < dates[1][1] < dates[2][1]


def test_the_child_of_a_fork_is_a_plain_process():
    def main():
        import os
        import sys
        import threading
        import time

        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            begin = time.monotonic()
            seen = []
            thread = threading.Thread(target=lambda: (time.sleep(0.05), seen.append(1)))
            thread.start()
            thread.join()
            plain = time.monotonic() - begin >= 0.05 and time.time() > 1.5e9
            own = os.environ["PMI_RANK"]
            os.write(writer, b"%d %s %d" % (plain, own.encode(), len(seen)))
            sys.exit(7)
        os.close(writer)
        status = os.waitpid(pid, 0)[1]
        return os.read(reader, 100), os.waitstatus_to_exitcode(status)

    assert run(main, 2).returns == [(b"1 0 1", 7), (b"1 1 1", 7)]


ENDS = """
import atexit, os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
parent = os.getpid()
def say(text):
    os.write(1, f"{text} of the {'rank' if os.getpid() == parent else 'child'}\\n".encode())
atexit.register(say, "first")
world.Barrier()
pid = os.fork()
if pid:
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    atexit.register(say, "second")
    if sys.argv[1] == "error":
        raise ValueError("wrong")
    if sys.argv[1] == "barrier":
        world.Barrier()
    if sys.argv[1] == "exit":
        sys.exit(3)
"""


@pytest.mark.parametrize(("how", "status"), [("end", 0), ("exit", 3), ("error", 1), ("barrier", 1)])
def test_the_child_of_a_fork_ends_as_a_process_does(how, status, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(ENDS)
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "1", "--compute", "none", file, how],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "second of the child", "first of the child", str(status), "first of the rank"
    ]  # fmt: skip
    lines = done.stderr.splitlines()
    if how in ("end", "exit"):
        assert lines == []
    else:
        assert [line for line in lines if line.startswith("  File")] == [
            f'  File "{file}", line {16 if how == "error" else 18}, in <module>'
        ]
        assert ("ValueError: wrong" in lines[-1]) == (how == "error")
        assert ("is no rank" in lines[-1]) == (how == "barrier")


def test_the_child_of_a_fork_takes_no_part_in_communication():
    def main():
        import os

        from mpi4py import MPI

        world = MPI.COMM_WORLD
        pid = os.fork()
        if pid == 0:
            # Some of them would not have to wait.
            calls = (
                world.recv, lambda: world.send(1, 0), lambda: world.isend(1, 0), world.Ibarrier,
                lambda: world.irecv(), world.Barrier, lambda: world.iprobe(),
            )  # fmt: skip
            for count, call in enumerate(calls):
                try:
                    call()
                except RuntimeError as error:
                    if "is no rank" not in str(error):
                        os._exit(50 + count)
                else:
                    os._exit(60 + count)
            os._exit(5)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert run(main, 2).returns == [5, 5]


def test_a_child_at_a_terminal():
    def main():
        import os
        import select
        import time

        pid, terminal = os.forkpty()
        if pid == 0:
            os.execvp("sh", ["sh", "-c", "sleep 1; echo ready"])
        begin = time.monotonic()
        ready, _, _ = select.select([terminal], [], [], 60.0)
        waited = time.monotonic() - begin
        output = os.read(terminal, 100)
        os.waitpid(pid, 0)
        os.close(terminal)
        return bool(ready), 0.05 < waited < 30, output.strip()

    assert run(main, 2).returns == [(True, True, b"ready")] * 2


@pytest.mark.parametrize("handled", [False, True])
def test_a_child_of_a_fork_ends_by_a_signal_as_a_process_does(handled, tmp_path):
    """The handlers that end a simulation are not the child's; those of the program are."""
    file = tmp_path / "program.py"
    file.write_text(f"""
import os, signal, sys, time
from mpi4py import MPI

if {handled}:
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(7))
ready, told = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(told, b"x")
    time.sleep(60)
    os._exit(1)
os.read(ready, 1)
os.kill(pid, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""")
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "1", "--compute", "none", str(file)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == ("7\n" if handled else "-15\n"), done.stdout + done.stderr
    assert done.stderr == ""
