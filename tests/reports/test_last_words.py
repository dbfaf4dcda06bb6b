"""Errors of ranks are shown when Python shows them: before it waits for threads."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import pysmpi

HEAD = """\
import atexit, concurrent.futures, queue, sys, threading, time
from mpi4py import MPI
"""
ENDS = {
    "exception": ("raise KeyError('setting missing')", "KeyError: 'setting missing'"),
    "text": ("sys.exit('no such setting')", "rank 0: no such setting"),
}
# Threads that Python waits for at the end of a process, and that never end.
WAITS = {
    "queue": (
        "threading.Thread(target=queue.Queue().get, name='reader').start()",
        "wait for thread reader",
    ),
    "event": ("threading.Thread(target=threading.Event().wait).start()", "thread Thread-1 (wait)"),
    "lock": (
        "lock = threading.Lock(); lock.acquire()\nthreading.Thread(target=lock.acquire).start()",
        "thread Thread-1 (acquire)",
    ),
    "pool": (
        "concurrent.futures.ThreadPoolExecutor(2).submit(threading.Event().wait)",
        "thread ThreadPoolExecutor-0_0",
    ),
    "receive": (
        "threading.Thread(target=MPI.COMM_WORLD.recv).start()",
        "thread Thread-1 (recv)",
    ),
}


class Done(NamedTuple):
    returncode: int
    stderr: str  # with the report of the run


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def run(program: str, ranks: int = 2) -> Done:
        path = tmp_path / "prog.py"
        path.write_text(HEAD + textwrap.dedent(program))
        result = pysmpi.run(str(path), ranks, compute="none", check=False)
        return Done(result.exit_status, capfd.readouterr().err + (result.error or ""))

    return run


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("end", ENDS)
def test_an_error_is_shown_before_a_rank_waits_for_its_threads(run, end, wait):
    code, text = ENDS[end]
    start, thread = WAITS[wait]
    done = run(f"{start}\n{code}")
    assert done.returncode == 3
    assert text in done.stderr, done.stderr
    report = done.stderr.index("PSM101 deadlock at")
    assert done.stderr.index(text) < report
    rows = done.stderr[report:].split("\n")
    row = next(line for line in rows if "ranks 0-1  at their end" in line)
    assert thread in row
    if end == "exception":
        assert "was ended by KeyError" in done.stderr[report:]
        assert done.stderr.count("Traceback") == 1


@pytest.mark.parametrize("end", ENDS)
def test_an_error_is_shown_once_if_the_threads_end(run, end):
    code, text = ENDS[end]
    done = run(f"""
        def work():
            time.sleep(1)
            print("worked", file=sys.stderr)
        threading.Thread(target=work).start()
        {code}
    """, ranks=1)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.index(text) < done.stderr.index("worked")
    assert done.stderr.count("Traceback") == (1 if end == "exception" else 0)
    assert done.stderr.count("no such setting") == (0 if end == "exception" else 1)
    if end == "exception":
        assert "rank 0: KeyError: 'setting missing' (the traceback is above)" in done.stderr


def test_a_daemon_delays_nothing(run):
    done = run("threading.Thread(target=threading.Event().wait, daemon=True).start()\n1 / 0")
    assert done.returncode == 1
    assert done.stderr.startswith("PSM102 exception in a rank: rank")
    assert "above" not in done.stderr


def test_exit_functions_come_after_the_error_and_show_their_own(run):
    done = run("""
        def fail():
            raise OSError("too late")
        atexit.register(fail)
        threading.Thread(target=time.sleep, args=(1,)).start()
        raise KeyError("first")
    """, ranks=1)  # fmt: skip
    first, last = done.stderr.index("KeyError: 'first'"), done.stderr.index("OSError: too late")
    assert first < done.stderr.index("Exception ignored in atexit callback") < last
    assert "During handling" not in done.stderr
    assert "pysmpi/" not in done.stderr
    assert done.returncode == 1


def test_each_rank_counts_its_threads(run):
    done = run("""
        names = [threading.Thread(target=print).name for _ in range(2)]
        pool = concurrent.futures.ThreadPoolExecutor(1)
        name = pool.submit(lambda: threading.current_thread().name).result()
        assert (names, name) == (["Thread-1 (print)", "Thread-2 (print)"], "ThreadPoolExecutor-0_0")
    """)
    assert done.returncode == 0, done.stderr


# Exit codes that are no integers, and what Python shows of them.
CODES = {
    "{'a': 1}": "{'a': 1}",
    "[]": "[]",
    "1.5": "1.5",
    "b'x'": "b'x'",
    "ValueError('bad')": "bad",
    "type('A', (), {'__str__': lambda self: 1 / 0})()": "",
}


@pytest.mark.parametrize("code", CODES)
def test_a_code_that_is_no_integer_is_shown(run, code):
    done = run(f"sys.exit({code})", ranks=1)
    assert done.returncode == 1
    assert f"rank 0: {CODES[code]}" in done.stderr.splitlines()


def test_sys_exit_in_an_exit_function_changes_no_status(run):
    done = run("atexit.register(sys.exit, 3)", ranks=1)
    assert done.returncode == 0
    assert "Exception ignored in atexit callback" in done.stderr
    assert "SystemExit: 3" in done.stderr
