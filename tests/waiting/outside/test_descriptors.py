"""Pipes and polling by threads of ranks, in virtual time."""

from __future__ import annotations

import pytest

import pysmpi


def run(main, size=1, **options):
    return pysmpi.run(main, size, **{"compute": "none", **options})


def test_a_read_of_a_pipe_waits_for_another_thread_of_the_rank():
    def main():
        import os
        import threading
        import time

        reader, writer = os.pipe()
        got = []

        def read():
            got.append((os.read(reader, 100), time.monotonic()))

        thread = threading.Thread(target=read)
        thread.start()
        time.sleep(2000.0)
        os.write(writer, b"hello")
        thread.join()
        os.close(reader)
        os.close(writer)
        return got

    result = run(main, 2)
    for ((data, date),) in result.returns:
        assert data == b"hello"
        assert date == pytest.approx(2000.0, abs=1e-3)
    assert result.wall_seconds < 0.1 * result.seconds


def test_more_than_a_pipe_holds_goes_through_files_over_it():
    def main():
        import os
        import threading

        reader, writer = os.pipe()
        got = []

        def read():
            with os.fdopen(reader, "rb") as stream:
                got.append(stream.read())

        thread = threading.Thread(target=read)
        thread.start()
        data = bytes(range(256)) * 4000
        with os.fdopen(writer, "wb") as stream:
            stream.write(data)
        thread.join()
        return got[0] == data

    assert run(main, 2).returns == [True, True]


def test_vectors_and_unbuffered_files():
    def main():
        import os
        import threading

        reader, writer = os.pipe()

        def write():
            with open(writer, "wb", buffering=0) as raw:
                assert raw.write(b"x" * 200_000) == 200_000
                assert os.writev(writer, [b"abc", bytearray(b"def")]) == 6

        thread = threading.Thread(target=write)
        thread.start()
        first, second = bytearray(1000), bytearray(24)
        got = os.readv(reader, [first, second])
        rest = 200_006 - got
        with open(reader, "rb", buffering=0) as raw:
            data = raw.readall()
        thread.join()
        return got, len(data) == rest, data[-6:]

    assert run(main).returns == [(1024, True, b"abcdef")]


@pytest.mark.parametrize(
    "how", ["select", "poll", "epoll", "SelectSelector", "PollSelector", "EpollSelector"]
)
def test_polling_times_out_in_virtual_time_and_sees_what_a_thread_writes(how):
    def main(how):
        import select
        import selectors
        import socket
        import threading
        import time

        mine, other = socket.socketpair()

        def wait(seconds):
            if how == "select":
                return bool(select.select([mine], [], [], seconds)[0])
            if how.endswith("Selector"):
                with getattr(selectors, how)() as chosen:
                    chosen.register(mine, selectors.EVENT_READ)
                    return bool(chosen.select(seconds))
            if how == "poll":
                poll = select.poll()
                poll.register(mine, select.POLLIN)
                return bool(poll.poll(seconds * 1000))
            with select.epoll() as epoll:
                epoll.register(mine, select.EPOLLIN)
                return bool(epoll.poll(seconds))

        begin = time.monotonic()
        nothing = wait(3000.0)
        middle = time.monotonic()
        threading.Thread(target=lambda: (time.sleep(300.0), other.send(b"."))).start()
        something = wait(3000.0)
        return nothing, middle - begin, something, time.monotonic() - middle

    result = run(main, 2, args=(how,))
    for nothing, first, something, second in result.returns:
        assert (nothing, something) == (False, True)
        assert first == pytest.approx(3000.0, abs=0.01)
        assert second == pytest.approx(300.0, abs=0.01)
    assert result.wall_seconds < 0.1 * result.seconds


def test_the_output_of_a_rank_goes_through_a_pipe_to_a_thread_that_reads_it():
    def main():
        import os
        import subprocess
        import threading

        reader, writer = os.pipe()
        pieces = []

        def read():
            while piece := os.read(reader, 4096):
                pieces.append(piece)

        thread = threading.Thread(target=read)
        thread.start()
        subprocess.run("echo from a child", shell=True, stdout=writer, check=True)
        with os.fdopen(writer, "w") as stream:
            print("from the rank", file=stream)
        thread.join()
        os.close(reader)
        return b"".join(pieces)

    assert run(main, 2).returns == [b"from a child\nfrom the rank\n"] * 2


def test_a_pipe_that_nobody_can_write_to_is_a_deadlock():
    def main():
        import os

        reader, writer = os.pipe()
        os.read(reader, 1)
        os.close(writer)

    result = run(main, 1, check=False)
    assert result.exit_status == 3
    assert "PSM101" in result.error
    assert "read" in result.error


def test_a_message_between_ranks_arrives_while_one_waits_for_a_pipe():
    def main():
        import os
        import threading

        from mpi4py import MPI

        world = MPI.COMM_WORLD
        reader, writer = os.pipe()
        got = []
        thread = threading.Thread(target=lambda: got.append(os.read(reader, 1)))
        thread.start()
        told = world.sendrecv(world.rank, 1 - world.rank, source=1 - world.rank)
        os.write(writer, b"%d" % told)
        thread.join()
        return got

    assert run(main, 2).returns == [[b"1"], [b"0"]]


def test_functions_stay_built_in_to_everybody():
    def main():
        import inspect
        import os
        import pickle
        import select

        return [
            (inspect.isbuiltin(f), pickle.loads(pickle.dumps(f)) is f, f.__name__)
            for f in (os.read, os.write, os.waitpid, select.select)
        ]

    names = ["read", "write", "waitpid", "select"]
    assert run(main).returns == [[(True, True, name) for name in names]]


def test_lines_stay_whole_where_ranks_wait_outside_mpi(tmp_path):
    import subprocess
    import sys

    (tmp_path / "prog.py").write_text(
        """
import os, sys, threading
from mpi4py import MPI
reader, writer = os.pipe()
thread = threading.Thread(target=os.read, args=(reader, 1))
thread.start()
for i in range(50):
    sum(range(1000))
    print("rank", MPI.COMM_WORLD.rank, "line", i, "end", flush=True)
os.write(writer, b"x")
thread.join()
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "4", "prog.py"],
        capture_output=True, text=True, timeout=100, cwd=tmp_path, check=True,
    )  # fmt: skip
    expected = {f"rank {rank} line {i} end" for rank in range(4) for i in range(50)}
    assert sorted(done.stdout.splitlines()) == sorted(expected)
