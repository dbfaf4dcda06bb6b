"""Searches from snapshots find the same; executions that would share something begin anew."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pysmpi.cli.main import status_of
from pysmpi.explore import snapshot
from pysmpi.explore.executions import Executions, Trial
from pysmpi.explore.executor import Executor
from pysmpi.explore.snapshot import possible
from pysmpi.explore.systematic import SearchTree
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options

# Memory that a program has not set is a part of its states, and differs from search to search.
PROGRAMS = [
    path
    for path in sorted((Path(__file__).parent / "programs").glob("*.py"))
    if "empty(" not in path.read_text()
]
MOST = 30  # executions of a program

linux = pytest.mark.skipif(not possible(), reason="snapshots need the files of Linux in /proc")


class Recorded(Executor):
    """Notes how its executions have begun."""

    begun: list[bool] = []

    def submit(self, decider: Any, tag: object) -> None:
        super().submit(decider, tag)
        self.begun.append(self._snapshot is not None)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_searches_find_the_same_with_snapshots(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["explore", "-q", "-n", "3", "-j", "1", "--keep-going", "--no-shrink"]
    words += ["--database", "none", "--runs", str(MOST), "--json", "found.json", str(path)]
    outcomes = []
    for snapshots, many in ((True, 0), (True, MOST), (False, 0)):
        monkeypatch.setattr(Executor, "snapshots", snapshots)
        monkeypatch.setattr(snapshot, "MANY", many)
        status = status_of(words)
        found = json.loads(Path("found.json").read_text())
        del found["seconds"]
        outcomes.append((status, capfd.readouterr(), found))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def gather(before: Callable[[Any], Any], after: Callable[[Any], Any]) -> object:
    """A program with a part before the first choice, and one after each of two."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    held = before(comm)
    if comm.rank:
        comm.send(comm.rank, dest=0)
        return None
    order = []
    for _ in range(2):
        order.append(comm.recv())
        after((held, order))
    return order


def searched(
    before: Callable[[Any], Any], after: Callable[[Any], Any] = lambda held: None
) -> tuple[list[Trial], list[bool]]:
    """All executions of a program, and whether there was a snapshot at the begin of each."""

    def work(executor: Executions) -> list[Trial]:
        tree = SearchTree()
        trials = []
        while (task := tree.next()) is not None:
            executor.submit(tree.observer(task), task)
            done, trial = executor.next()
            tree.learn(done, trial.trace)
            trials.append(trial)
        return trials

    job = Job(FunctionProgram(gather, (before, after)), Options(nprocs=3, compute="none"))
    executor = Recorded(lambda: job)
    executor.begun = []
    return executor.serve(work), executor.begun


def nothing(comm: Any) -> None:
    pass


@linux
def test_the_part_before_the_first_choice_is_executed_once() -> None:
    def before(comm: Any) -> int:
        print("before", comm.rank, flush=True)
        return 3

    def after(state: Any) -> None:
        print("after", state, flush=True)

    trials, begun = searched(before, after)
    assert begun == [False, True]
    outputs = [trial.output.decode().splitlines() for trial in trials]
    start = [f"before {rank}" for rank in range(3)]
    assert [sorted(lines[:3]) for lines in outputs] == [start, start]
    assert [lines[3:] for lines in outputs] == [
        ["after (3, [1])", "after (3, [1, 2])"], ["after (3, [2])", "after (3, [2, 1])"],
    ]  # fmt: skip
    assert [trial.returns for trial in trials] == ["[[1, 2], None, None]", "[[2, 1], None, None]"]


def opened(comm: Any) -> object:
    return open(__file__) if not comm.rank else None


def shared(comm: Any) -> object:
    import mmap

    return mmap.mmap(-1, 4096) if not comm.rank else None


def written(comm: Any) -> None:
    if not comm.rank:
        Path("written").write_text("once")


def process(comm: Any) -> None:
    import subprocess

    if not comm.rank:
        subprocess.run(["true"], check=True)


def child(comm: Any) -> object:
    if comm.rank:
        return None
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    return pid, writer


@linux
@pytest.mark.parametrize("before", [opened, shared, written, process, child])
def test_what_executions_would_share_is_made_anew_in_each(
    before: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trials, begun = searched(before)
    assert begun == [False, False]
    assert [trial.returns for trial in trials] == ["[[1, 2], None, None]", "[[2, 1], None, None]"]


@linux
def test_executions_begin_anew_once_one_has_changed_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def after(state: Any) -> None:
        if state[1] == [2]:
            Path("second").write_text("first")

    from pysmpi.explore import executor

    seen: list[bool] = []
    real = executor.Executor._ended

    def ended(self: Any, *args: Any) -> Any:
        found = real(self, *args)
        seen.append(self.snapshots)
        return found

    monkeypatch.setattr(executor.Executor, "_ended", ended)
    _, begun = searched(nothing, after)
    assert begun == [False, True]
    assert seen == [True, False]


@linux
@pytest.mark.parametrize("ends", [True, False])
def test_an_execution_that_dies_or_never_ends_is_one_failure(ends: bool) -> None:
    def after(state: Any) -> None:
        while state[1] == [2]:
            if ends:
                import ctypes

                system = ctypes.CDLL(None)
                system.signal(signal.SIGUSR1, 0)
                system.kill(system.getpid(), signal.SIGUSR1)

    def work(executor: Executions) -> Trial:
        assert isinstance(executor, Executor)
        tree = SearchTree()
        for last in (False, True):
            task = tree.next()
            assert task is not None
            executor.submit(tree.observer(task), task)
            if last and not ends:
                executor.timeout = 0.01
            done, trial = executor.next()
            if not last:
                tree.learn(done, trial.trace)
        assert executor._snapshot is not None
        return trial

    job = Job(FunctionProgram(gather, (nothing, after)), Options(nprocs=3, compute="none"))
    trial = Executor(lambda: job).serve(work)
    assert trial.killed is not ends
    expected = "the execution ended with status -10 and no result" if ends else "no end"
    assert expected in (trial.error, trial.cause)
