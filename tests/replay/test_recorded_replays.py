"""A replay can be recorded: its recording has the form of a run's, and every command reads it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pysmpi
from pysmpi.analysis.graph import read
from pysmpi.analysis.path import critical_path
from pysmpi.cli.main import status_of
from pysmpi.errors import UsageError
from pysmpi.replay import Replay
from pysmpi.trace.conversion import convert
from pysmpi.trace.lines import read_lines
from pysmpi.trace.model import Recording

MACHINE = {"platform": "graphene", "compute": "3us"}


def everything() -> None:
    """A program with some of everything that is replayed."""
    import threading
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    data, back = np.ones(9_000), np.zeros(9_000)
    for step in range(2):
        comm.Sendrecv(data, right, recvbuf=back, source=left)
        request = comm.Irecv(back, MPI.ANY_SOURCE, 3 + step)
        comm.Isend(data[:10], right, 3 + step).Wait()
        request.Wait()
        comm.Allreduce(data[:100], back[:100])
        later = comm.Iallreduce(data, back)
        time.sleep(1e-4 * (comm.rank + 1))
        later.Wait()
    half = comm.Split(comm.rank % 2)
    half.bcast({"a": 1})
    thread = threading.Thread(target=half.Barrier)
    thread.start()
    thread.join()
    window = MPI.Win.Create(back, comm=comm)
    window.Fence()
    window.Put(data, right)
    window.Fence()
    window.Free()


def messages_of(recording: Recording) -> Counter[tuple[int, int, int]]:
    return Counter((one.source, one.destination, one.nbytes) for one in recording.messages)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pysmpi.Result]:
    """A recorded run."""
    path = tmp_path_factory.mktemp("run") / "run.jsonl"
    return path, pysmpi.run(everything, 4, trace=path, **MACHINE)


def test_the_recording_of_a_replay_is_that_of_the_run(run, tmp_path: Path):
    path, result = run
    again = Recording()
    replayed = Replay([(path, 0.0)]).run(again)
    assert replayed.seconds == pytest.approx(result.seconds, rel=1e-3)
    known = read_lines(path)
    assert messages_of(again) == messages_of(known)
    for rank in range(4):
        calls = [(call.name, call.site) for call in known.calls_of(rank) if call.name]
        assert [(call.name, call.site) for call in again.calls_of(rank) if call.name] == calls
        first, last = known.calls_of(rank, 0)[0], again.calls_of(rank, 0)[0]
        assert last.start == pytest.approx(first.start) and last.end == pytest.approx(first.end)
    assert again.complete and again.seconds == replayed.seconds


def test_it_can_be_replayed_again_and_on_another_machine(run, tmp_path: Path):
    path, _ = run
    second = tmp_path / "second.jsonl"
    status = status_of(["replay", str(path), "--platform", "laptop", "--trace", str(second)])
    assert status == 0
    plain = Replay([(path, 0.0)], platform="laptop").run()
    assert read_lines(second).seconds == pytest.approx(plain.seconds, rel=1e-3)
    assert Replay([(second, 0.0)]).run().seconds == pytest.approx(plain.seconds, rel=1e-3)
    graph = read(str(second))
    assert critical_path(graph).seconds == pytest.approx(plain.seconds, rel=1e-3)


def test_time_independent_traces_are_recorded_too(run, tmp_path: Path):
    path, _ = run
    trace, recorded = tmp_path / "run.ti", tmp_path / "again.jsonl"
    convert(str(path), str(trace))
    report = tmp_path / "report.json"
    assert status_of(
        ["replay", str(trace), "--platform", "graphene", "--trace", str(recorded), "--view",
         str(tmp_path / "page.html"), "--report", str(report), "--explain"]
    ) == 0  # fmt: skip
    plain = Replay([(trace, 0.0)], platform="graphene").run()
    found = read_lines(recorded)
    assert found.seconds == pytest.approx(plain.seconds, rel=1e-3)
    assert len(found.messages) == plain.messages
    assert sum(message.nbytes for message in found.messages) == plain.bytes
    assert {"Send", "Recv", "Allreduce"} & {call.name for call in found.calls}
    assert json.loads(report.read_text())["analysis"]["critical_path"]["seconds"] > 0.0
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    causes = critical_path(read(str(recorded))).by_cause()
    assert causes["sleep"] > 3e-4 and causes["compute"] < 1e-3
    assert Replay([(recorded, 0.0)]).run().seconds == pytest.approx(plain.seconds, rel=1e-3)


def test_several_traces_are_not_recorded(run):
    path, _ = run
    with pytest.raises(UsageError, match="expected one trace, got several"):
        Replay([(path, 0.0), (path, 0.0)], platform="graphene").run(Recording())


def test_view_names_the_command_for_a_trace_without_dates(tmp_path: Path, capsys):
    trace = tmp_path / "run.ti"
    trace.write_text("0 init\n0 compute 1e6\n0 finalize\n")
    assert status_of(["view", str(trace)]) == 2
    assert "pysmpi replay" in capsys.readouterr().err
