"""Explorations on a cluster: the workers of Dask give the results that this computer gives."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pysmpi.cli.arguments import CommandLine
from pysmpi.cli.explore import ProgramJobs
from pysmpi.cli.main import status_of
from pysmpi.errors import UsageError
from pysmpi.explore.executions import Executions
from pysmpi.explore.exploration import SearchLimits
from pysmpi.explore.observer import Observer
from pysmpi.explore.remote import on_workers
from pysmpi.job.options import Options

distributed = pytest.importorskip("distributed", reason="the extra sweep is not installed")

ORDERS = """
import sys
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank:
    comm.send(comm.rank, dest=0)
else:
    order = [comm.recv(source=MPI.ANY_SOURCE) for _ in range(comm.size - 1)]
    if sys.argv[1:] and order[0] == int(sys.argv[1]):
        raise ValueError("wrong order")
    print(order)
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def outcome(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(name).read_text())
    del found["seconds"]
    found["results"] = sorted(count for _, count in found["results"])
    found["outputs"] = sorted(found["outputs"])
    for failure in found["failures"]:
        del failure["found_after"]  # depends on the order of the outcomes
    return found


def bare(report: str) -> list[str]:
    """The lines of a report, without parts that depend on the order of the outcomes."""
    report = re.sub(r"execution \d+|; \d+ decisions|-schedule \S+", "", report)
    return sorted(report.splitlines())


def test_workers_give_the_result_of_this_computer(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.py").write_text(ORDERS)
    words = ["explore", "-q", "-n", "4", "--keep-going", "--no-shrink", "--database", "none"]
    words += ["--check", "none"]
    assert status_of([*words, "--json", "here.json", "orders.py", "3"]) == 1
    here = capfd.readouterr().err
    words += ["--scheduler", address]
    assert status_of([*words, "--json", "there.json", "orders.py", "3"]) == 1
    assert bare(capfd.readouterr().err) == bare(here)
    found = outcome("there.json")
    assert found == outcome("here.json")
    assert found["complete"] and found["executions"] == 12
    assert len(found["outputs"]) == 4 and len(found["failures"]) == 1


def test_a_program_that_the_workers_cannot_run_is_refused(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("pysmpi.cluster.client.PATIENCE", 1.0)  # nobody answers there
        status = status_of(["explore", "-n", "2", "--scheduler", "tcp://127.0.0.1:9", __file__])
    assert status == 2
    assert "expected the address of a scheduler" in capfd.readouterr().err

    def work(executor: Executions) -> None:
        executor.submit(Observer(), None)
        executor.next()

    line = CommandLine([], "script", "missing.py", [], [], {})
    with distributed.Client(address) as client:
        executors = on_workers(client, ProgramJobs(line, Options()), None)
        with pytest.raises(UsageError, match="on a worker: .*missing.py: expected a Python"):
            executors(2, [], SearchLimits()).serve(work)
