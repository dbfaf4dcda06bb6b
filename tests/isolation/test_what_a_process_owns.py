"""A rank sees the same state as a process, row by row."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import owned
import pytest

RANKS = 3
CHANGES = 1  # the rank that makes the changes
INPUT = "one\ntwo\nthree\nfour\n"
MPIEXEC = shutil.which("mpiexec", path=os.path.dirname(sys.executable) + os.pathsep + os.defpath)

Rows = list[dict[str, str]]


def _run(command: list[str], directory: Path) -> Rows:
    done = subprocess.run(
        [*command, str(owned.PROGRAM), str(directory)],
        input=INPUT, capture_output=True, text=True, timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    found = []
    for rank in range(RANKS):
        rows = json.loads((directory / f"{rank}.json").read_text())
        rows["end"] = (directory / f"{rank}.exit").read_text()
        found.append(rows)
    return found


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Rows:
    command = [sys.executable, "-m", "pysmpi", "run", "-n", str(RANKS)]
    return _run(command, tmp_path_factory.mktemp("simulated"))


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> Rows:
    if MPIEXEC is None:
        pytest.skip("there is no mpiexec to compare with (pip install mpich)")
    command = [MPIEXEC, "-n", str(RANKS), sys.executable]
    return _run(command, tmp_path_factory.mktemp("real"))


def test_ranks_see_what_processes_see(real, simulated):
    different = [
        f"rank {rank}: {row}\n  mpiexec: {real[rank][row]}\n  pysmpi:  {simulated[rank][row]}"
        for rank in range(RANKS)
        for row in real[rank]
        if owned.reason(row) is None and not owned.is_open(row)
        and real[rank][row] != simulated[rank][row]
        and not (row == "end" and rank == CHANGES)  # it has its changes at its end
    ]  # fmt: skip
    assert not different, "\n".join(different)


def test_rows_with_a_reason_differ(real, simulated):
    differing = {
        row
        for there, here in zip(real, simulated, strict=True)
        for row in there
        if there[row] != here[row]
    }
    assert not [row for row in real[0] if owned.reason(row) and row not in differing]


def test_what_one_rank_changes_others_do_not_see(simulated):
    rows = [row for row in simulated[0] if " -> " in row and owned.reason(row) is None]
    rows = [row for row in rows if not owned.is_open(row)]
    changed, *others = simulated[CHANGES], simulated[0], simulated[2]
    assert len(rows) > 80
    assert not [row for row in rows if changed[row] in [other[row] for other in others]]


def test_the_rows_are_those_of_the_page(simulated):
    rows = owned.rows()
    assert {row for _, row in rows} == set(simulated[0]) - {"end"}
    assert {group for group, _ in rows} == set(owned.GROUPS)
    for beginning in owned.DIFFERS:
        assert any(row.startswith(beginning) for _, row in rows), beginning
    text = owned.PAGE.read_text()
    assert text == owned.page(), "run python tests/isolation/owned.py"


def test_two_runs_in_one_process_leave_nothing_behind(write):
    path = write(
        "caller.py",
        """
        import gc, json, locale, logging, os, random, signal, sys, tempfile, threading, time
        import multiprocessing, decimal, resource, warnings
        import numpy
        import pysmpi
        from pysmpi.isolation.loading.loader import ScriptProgram
        from pysmpi.job.job import Job
        from pysmpi.job.options import Options

        def variables_of_c():
            with open("/proc/self/environ"):
                pass
            return os.popen("env | sort").read()

        def seen():
            random.seed(1)
            numpy.random.seed(1)
            return [
                sys.argv, sys.path, sys.meta_path, sys.path_hooks, sys.stdout, sys.stderr,
                sys.stdin, sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook,
                sys.gettrace(), sys.getprofile(), sys.getrecursionlimit(), sys.getswitchinterval(),
                sys.get_int_max_str_digits(), sys.dont_write_bytecode, hasattr(sys, "made_up"),
                gc.isenabled(), gc.get_debug(), gc.get_threshold(), print,
                resource.getrlimit(resource.RLIMIT_NOFILE), os.sched_getaffinity(0),
                sys.get_asyncgen_hooks(), sys.modules["__main__"],
                os.getcwd(), os.umask(0o22), dict(os.environ), variables_of_c(), os.getpid(),
                [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)],
                warnings.filters, warnings.showwarning, tempfile.tempdir, time.tzname, time.time,
                locale.setlocale(locale.LC_ALL, None), decimal.getcontext().prec,
                logging.root.handlers, logging.root.level, logging.root.manager.disable,
                logging.lastResort, threading.excepthook, threading.enumerate(),
                signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGUSR1),
                signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.signal, time.sleep,
                multiprocessing.get_start_method(), random.random(), numpy.random.rand(),
            ]

        text = '''
        from mpi4py import MPI
        import gc, io, locale, logging, os, signal, sys, tempfile, threading, time, warnings
        import multiprocessing, random, resource
        if MPI.COMM_WORLD.rank == 1:
            sys.argv.append("x"); sys.path.insert(0, "x"); sys.meta_path.append(1)
            sys.stdin = sys.stdout = io.StringIO(); sys.excepthook = sys.displayhook = len
            sys.made_up = 1; sys.setrecursionlimit(999); sys.setswitchinterval(0.5)
            sys.set_int_max_str_digits(700); gc.disable(); gc.set_debug(gc.DEBUG_SAVEALL)
            os.chdir("/"); os.umask(0o77); os.environ["LEFT"] = "1"; del os.environ["PATH"]
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1); os.close(0)
            warnings.simplefilter("error"); tempfile.tempdir = "/"; os.environ["TZ"] = "Asia/Tokyo"
            time.tzset(); locale.setlocale(locale.LC_ALL, "C"); logging.basicConfig(level=1)
            logging.disable(50); logging.lastResort = None; threading.excepthook = len
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
            multiprocessing.set_start_method("spawn", force=True); random.seed(9)
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard)); gc.set_threshold(7)
            os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); sys.set_asyncgen_hooks(len)
        MPI.COMM_WORLD.Barrier()
        if MPI.COMM_WORLD.rank == 0:
            assert "LEFT" not in os.environ and os.getenv("TZ") != "Asia/Tokyo"
        sys.excepthook = sys.__excepthook__
        '''
        import textwrap
        with open("program.py", "w") as file:
            file.write(textwrap.dedent(text))
        multiprocessing.get_start_method()  # from Python 3.14 on, it looks for a directory
        before = seen()
        lists = [list(one) if isinstance(one, list) else one for one in before]
        for _ in range(2):
            result = Job(ScriptProgram("program.py"), Options(nprocs=3)).run()
            assert result.exit_status == 0, result.error
            for one, two in zip(lists, seen()):
                assert one == two, (one, two)
        os.write(1, b"the same")
        """,
    )
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, cwd=os.path.dirname(path),
        stdin=subprocess.DEVNULL, timeout=300,
    )  # fmt: skip
    assert done.stdout == "the same", done.stderr
