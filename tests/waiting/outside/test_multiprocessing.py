"""`multiprocessing` and process pools in ranks; their processes are real ones."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor

def square(x):
    return x * x

def put(queue, lock, rank):
    with lock:
        queue.put((rank, os.getpid()))

def fail():
    sys.exit(3)

def main(method):
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    context = multiprocessing.get_context(method)
    codes = []
    for target, args in ((square, (2,)), (fail, ())):
        process = context.Process(target=target, args=args)
        process.start()
        process.join()
        codes.append(process.exitcode)
    queue, lock = context.Queue(), context.Lock()
    members = [context.Process(target=put, args=(queue, lock, world.rank)) for _ in range(2)]
    for process in members:
        process.start()
    got = [queue.get() for _ in members]
    for process in members:
        process.join()
    with context.Pool(2) as pool:
        squares = pool.map(square, range(4))
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        more = list(executor.map(square, range(3)))
    ours = {rank for rank, _ in got} == {world.rank} and len({pid for _, pid in got}) == 2
    answers = world.gather((codes, ours, squares, more))
    if world.rank == 0:
        print(answers == [([0, 3], True, [0, 1, 4, 9], [0, 1, 4])] * world.size, answers)

if __name__ == "__main__":
    main(sys.argv[1])
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_queues_and_pools(method, tmp_path):
    file = tmp_path / "program.py"
    # The children of `spawn` import the file as well.
    file.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", "--compute", "none", str(file),
         method],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True"), done.stdout + done.stderr
    assert done.stderr == ""


def test_threads_of_a_rank_exclude_each_other_by_a_recursive_lock():
    import pysmpi

    def main():
        import multiprocessing
        import threading
        import time

        lock = multiprocessing.get_context("fork").RLock()
        log = []

        def work(name):
            with lock, lock:
                log.append(name)
                time.sleep(1.0)
                log.append(name)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return log, time.monotonic()

    ((log, seconds),) = pysmpi.run(main, 1, compute="none").returns
    assert log == [0, 0, 1, 1]
    assert seconds == pytest.approx(2.0, abs=0.01)


def test_a_process_pool_that_is_left_open_ends_with_its_rank(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import get_context\n"
        "pool = ProcessPoolExecutor(1, get_context('fork'))\n"
        "print(pool.submit(abs, -1).result())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", str(file)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "1\n1\n"), done.stderr


def test_numbers_of_threads_are_safe_in_c():
    import pysmpi

    def main():
        import ctypes
        import sys
        import threading

        number = threading.get_ident()
        if not sys.platform.startswith("linux"):
            return True
        # Some libraries name their threads like this.
        name = ctypes.CDLL(None).pthread_setname_np
        name.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        return name(number, b"worker") != 0 and threading.get_ident() == number

    assert pysmpi.run(main, 2, compute="none").returns == [True, True]
