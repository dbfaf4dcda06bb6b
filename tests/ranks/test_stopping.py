"""Ranks that are stopped: their exceptions, their output, their remains; hard exits."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import pysmpi

# The command, which abandons ranks that do not end sooner.
COMMAND = """
import sys
from pysmpi.ranks import stopping
stopping.GRACE = 0.5
from pysmpi.__main__ import main
main()
"""
START = """
import os, sys, threading, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
def fail():
    if comm.rank == 1:
        if sys.argv[1] == "abort":
            comm.Abort(5)
        raise ValueError("wrong")
"""


def run(
    text: str, *arguments: str, ranks: int = 3, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    program = START + textwrap.dedent(text)
    return subprocess.run(
        [sys.executable, "-c", COMMAND, "run", "-q", "-n", str(ranks), "--compute", "none",
         "-c", program, *arguments],
        capture_output=True, text=True, timeout=100, cwd=cwd,
    )  # fmt: skip


CASES = {
    "finalizers": """
        import atexit, concurrent.futures, weakref
        class Thing:
            def __init__(self):
                self.window = MPI.Win.Allocate(8, comm=comm)
                self.file = MPI.File.Open(comm, os.devnull, MPI.MODE_RDONLY)
                self.request = comm.Irecv(bytearray(8), source=0, tag=7)
            def __del__(self):
                print("deleted")
                os.write(1, b"deleted")
                try:
                    self.request.Wait()
                finally:
                    self.file.Close()
                    self.window.Free()
        def generate():
            thing = Thing()
            try:
                yield
            finally:
                os.write(2, b"closed")
                comm.Barrier()
        def work(seconds):
            thing = Thing()
            thing.me = thing
            time.sleep(seconds)
        one, two, three = Thing(), [Thing()], generate()
        two.append(two)
        next(three)
        weakref.finalize(one, lambda: (comm.Barrier(), print("finalized")))
        watched = weakref.ref(one, lambda one: (comm.Barrier(), os.write(1, b"watched")))
        atexit.register(lambda: (comm.Barrier(), print("exit")))
        pool = concurrent.futures.ThreadPoolExecutor(1)
        pool.submit(work, 10 + comm.rank)
        time.sleep(1)
        fail()
        comm.recv(source=1)
    """,
    "unittest": """
        import unittest
        class Suite(unittest.TestCase):
            def test_first(self):
                comm.Barrier()
                fail()
                comm.Barrier()
        for i in range(200):
            setattr(Suite, f"test_later_{i}", lambda self: comm.Barrier())
        unittest.main(argv=["suite"])
    """,
    "retries for ever": """
        comm.Barrier()
        fail()
        while True:
            try:
                comm.recv(source=1)
            except BaseException as error:
                print("again", error)
    """,
    "sleeps for ever": """
        comm.Barrier()
        fail()
        while True:
            try:
                time.sleep(1)
            except BaseException as error:
                print("again", error)
    """,
    "polls for ever": """
        comm.Barrier()
        fail()
        while True:
            try:
                comm.iprobe(source=1)
                time.sleep(0)
            except BaseException as error:
                print("again", error)
    """,
    "computes for ever": """
        comm.Barrier()
        fail()
        number = 0
        while True:
            try:
                comm.recv(source=1)
            except BaseException:
                while True:
                    try:
                        number += 1
                    except BaseException:
                        pass
    """,
    "waits for the world outside": """
        comm.Barrier()
        fail()
        try:
            comm.recv(source=1)
        except BaseException:
            import ctypes
            while True:
                try:
                    ctypes.CDLL(None).usleep(100_000)
                except BaseException:
                    pass
    """,
    "a pool of threads": """
        from concurrent.futures import ThreadPoolExecutor
        comm.Barrier()
        with ThreadPoolExecutor(5) as pool:
            futures = [pool.submit(comm.recv, source=1, tag=i) for i in range(4)]
            if comm.rank == 1:
                pool.submit(fail).result()
            print([future.exception() for future in futures])
    """,
    "a finalizer that calls MPI": """
        class Thing:
            def __init__(self):
                self.comm = comm.Dup()
            def __del__(self):
                print("finalizer")
                self.comm.Barrier()
                self.comm.Free()
        kept = Thing()
        def work():
            local = Thing()
            fail()
            comm.Barrier()
        work()
    """,
    "an event loop": """
        import asyncio
        async def work():
            while True:
                try:
                    comm.recv(source=1)
                except BaseException as error:
                    print("again", error)
                await asyncio.sleep(0)
        comm.Barrier()
        fail()
        if comm.rank == 0:
            asyncio.run(work())
        comm.Barrier()
    """,
    "a generator": """
        def items():
            try:
                while True:
                    yield comm.recv(source=1)
            finally:
                print("closed")
                comm.Barrier()
        comm.Barrier()
        stream = items()
        fail()
        next(stream)
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_an_abort_is_all_that_is_reported(name: str) -> None:
    done = run(CASES[name], "abort")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("PSM103 job aborted: rank 1 called MPI_Abort with error code 5")
    assert len(lines) == 2
    assert done.stdout == ""
    assert done.returncode == 5


@pytest.mark.parametrize("name", ["retries for ever", "a finalizer that calls MPI", "a generator"])
def test_the_error_of_one_rank_is_all_that_is_reported(name: str) -> None:
    done = run(CASES[name], "raise")
    assert done.stderr.startswith("PSM102 exception in a rank: rank 1\n")
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.endswith(
        "ranks 0,2 were still running and were stopped\n  help: pysmpi explain PSM102\n"
    )
    assert done.stdout == ""
    assert done.returncode == 1


def test_what_was_printed_before_is_not_lost() -> None:
    done = run(
        """
        print("before", comm.rank)
        comm.Barrier()
        try:
            fail()
            comm.Barrier()
        finally:
            print("after")
        """,
        "abort",
    )
    assert sorted(done.stdout.splitlines()) == ["before 0", "before 1", "before 2"]


def test_clauses_that_clean_up_run_once(tmp_path: Path) -> None:
    done = run(
        """
        from contextlib import contextmanager
        def note(word):
            with open(f"{comm.rank}.txt", "a") as file:
                file.write(word + " ")
        @contextmanager
        def window():
            try:
                yield
            finally:
                note("inner")
                comm.Barrier()
        try:
            try:
                with window():
                    comm.Barrier()
                    fail()
                    comm.Barrier()
            finally:
                note("middle")
                comm.Barrier()
        finally:
            note("outer")
        """,
        "abort",
        cwd=tmp_path,
    )
    assert done.returncode == 5
    assert {file.read_text() for file in tmp_path.iterdir()} == {"inner middle outer "}
    assert len(list(tmp_path.iterdir())) == 3


def test_a_daemon_that_catches_everything_ends_with_its_rank() -> None:
    done = run(
        """
        def work():
            while True:
                try:
                    time.sleep(1)
                except BaseException as error:
                    print("again", error)
        threading.Thread(target=work, daemon=True).start()
        comm.Barrier()
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_threads_end_while_their_rank_has_its_own_modules(tmp_path: Path) -> None:
    done = run(
        """
        import config
        config.name = f"rank {comm.rank}"
        def work():
            try:
                time.sleep(1000)
            finally:
                import config as seen
                with open(f"{comm.rank}.txt", "w") as file:
                    file.write(f"{seen.name} {sys.exc_info()[0].__name__}")
        threading.Thread(target=work, daemon=True).start()
        time.sleep(1)
        """,
        cwd=_with_config(tmp_path),
    )
    assert (done.returncode, done.stderr) == (0, "")
    texts = {file.name: file.read_text() for file in tmp_path.glob("*.txt")}
    assert texts == {f"{rank}.txt": f"rank {rank} Stop" for rank in range(3)}


def _with_config(directory: Path) -> Path:
    (directory / "config.py").write_text("name = None\n")
    return directory


def test_ranks_are_stopped_where_there_are_no_signals() -> None:
    def program() -> None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.Barrier()
        if comm.rank == 1:
            comm.Abort(5)
        number = 0
        try:
            comm.recv(source=1)
        except BaseException:
            while True:
                number += 1

    results: list[pysmpi.Result] = []
    thread = threading.Thread(
        target=lambda: results.append(pysmpi.run(program, 2, check=False, compute="none"))
    )
    thread.start()
    thread.join(60)
    assert [result.exit_status for result in results] == [5]


def test_streams_write_again_after_a_failed_run(capsys: pytest.CaptureFixture[str]) -> None:
    def program() -> None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.Barrier()
        try:
            if comm.rank == 1:
                raise ValueError("wrong")
            comm.Barrier()
        finally:
            print("after", comm.rank)

    pysmpi.run(program, 2, check=False, compute="none")
    print("shown")
    assert capsys.readouterr().out == "after 1\nshown\n"


# Statuses and output are those of MPICH's mpiexec.
@pytest.mark.parametrize("how", ["os._exit(7)", "thread(lambda: os._exit(7))"])
def test_a_hard_exit_ends_the_job_at_once(how: str) -> None:
    done = run(
        f"""
        import atexit
        def thread(function):
            started = threading.Thread(target=function)
            started.start()
            started.join()
        comm.Barrier()
        atexit.register(print, "at exit", comm.rank)
        try:
            if comm.rank == 1:
                {how}
        finally:
            print("finally", comm.rank)
        comm.Barrier()
        print("after", comm.rank)
        """
    )
    assert done.returncode == 7
    assert done.stderr.startswith(
        "PSM103 job aborted: rank 1 called os._exit(7) before MPI.Finalize at <string>:"
    )
    assert len(done.stderr.splitlines()) == 2
    # Ranks before this point print nothing, and neither does rank 1.
    assert "1" not in done.stdout
    assert "after" not in done.stdout and "at exit" not in done.stdout


def test_a_hard_exit_of_a_program_without_mpi_ends_its_rank_only() -> None:
    text = """
        import atexit, os
        atexit.register(print, "at exit", os.environ["PMI_RANK"])
        try:
            if os.environ["PMI_RANK"] == "1":
                os._exit(7)
            print("goes on", os.environ["PMI_RANK"])
        finally:
            if os.environ["PMI_RANK"] == "1":
                print("finally")
    """
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", "-c", textwrap.dedent(text)],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == [
        "at exit 0", "at exit 2", "goes on 0", "goes on 2"
    ]  # fmt: skip
    assert done.returncode == 7
    assert done.stderr == ""
