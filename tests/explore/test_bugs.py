"""Programs that fail in rare orders only: found, repeated from the printed command, shrunk.

`programs/` holds small ones. Those of `applications/` have the size of the programs of `apps/`: all
of them run in the usual order, and two are explored; `PYSMPI_ALL_ORDERS=1` explores all of them,
also with `pct`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from pysmpi.cli.main import status_of

PROGRAMS = Path(__file__).parent / "programs"

# Program, ranks, arguments, cause, most executions, most deviations after shrinking.
BUGS = [
    ("master_worker", 4, ["4"], "PSM101", 300, 1),
    ("halo", 4, [], "PSM102", 600, 5),
    ("reduction", 4, [], "PSM102", 300, 3),
    ("termination", 3, [], "PSM102", 300, 2),
    ("waitany", 4, [], "PSM102", 300, 1),
    ("counter", 3, [], "PSM102", 300, 2),
    ("producers", 3, ["2"], "PSM102", 300, 4),
    ("ring", 3, [], "PSM101", 10, 1),
    ("header", 3, ["FILE"], "PSM102", 300, 1),
    ("polling", 3, [], "PSM101", 100, 1),
    ("stealing", 3, [], "PSM101", 100, 1),
    ("owner", 3, [], "PSM115", 10, 1),
]


def in_the_usual_order(path: Path, ranks: int, arguments: list[str]) -> list[str]:
    """The words of a program with its arguments; it succeeds when no order is chosen."""
    file = str(Path("log").resolve())
    words = [str(path), *(file if one == "FILE" else one for one in arguments)]
    assert status_of(["run", "-q", "-n", str(ranks), "--compute", "none", *words]) == 0
    return words


def failure_of(search: list[str], words: list[str], code: str, deviations: int) -> dict[str, Any]:
    """The failure that a search finds, with its cause in few decisions."""
    assert status_of([*search, "--json", "found.json", *words]) == 1
    failure: dict[str, Any] = json.loads(Path("found.json").read_text())["failures"][0]
    assert failure["cause"].startswith(code)
    assert failure["deviations"] <= deviations
    return failure


ENDLESS = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank:
    comm.send(comm.rank, dest=0)
elif [comm.recv() for _ in range(2)] == [2, 1]:
    while True:
        pass
"""


def test_the_order_of_a_killed_execution_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "endless.py").write_text(ENDLESS)
    for _ in range(2):  # the second search has no order to try first
        words = "explore -q -n 3 -j 1 --timeout 0.5 --page page.html endless.py".split()
        assert status_of(words) == 1
        told = capsys.readouterr().err
        assert "no end" in told and "which was killed: its order is not known" in told
        assert "repeat:" not in told and "Repeat it" not in Path("page.html").read_text()


def assert_repeats(failure: dict[str, Any], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The printed command repeats the failure."""
    assert status_of(shlex.split(failure["command"])[1:]) in (1, 3)
    again = capsys.readouterr().err
    assert code in again and "not the recorded run" not in again


@pytest.mark.parametrize(
    ("name", "ranks", "arguments", "code", "most", "deviations"), BUGS, ids=[b[0] for b in BUGS]
)
def test_rare_orders_are_found_repeated_and_shrunk(
    name: str,
    ranks: int,
    arguments: list[str],
    code: str,
    most: int,
    deviations: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = in_the_usual_order(PROGRAMS / f"{name}.py", ranks, arguments)
    capsys.readouterr()
    # Executions at the same time would have the same file.
    jobs = "1" if "FILE" in arguments else "2"
    search = ["explore", "-q", "-n", str(ranks), "--runs", str(most), "-j", jobs]
    if code in ("PSM101", "PSM102"):
        # A checker would find some of them in any order.
        search += ["--check", "none"]
    failure = failure_of(search, words, code, deviations)
    printed = capsys.readouterr().err
    # A deadlock of sends that are not buffered needs no other decision.
    assert failure["sites"] or failure["schedule"].startswith("s:")
    assert failure["inevitable"] is not None
    assert f"repeat: {failure['command']}" in printed
    assert_repeats(failure, code, capsys)


APPLICATIONS = Path(__file__).parent / "applications"

# Program, ranks, arguments, cause, most executions, most deviations after shrinking.
APPLICATION_BUGS = [
    ("work_queue", 3, ["2"], "PSM102", 60, 2),
    ("halo_exchange", 4, [], "PSM102", 60, 4),
    ("load_balancer", 3, [], "PSM101", 60, 3),
    ("ticket_lock", 3, [], "PSM102", 60, 3),
    ("token_termination", 5, ["3"], "PSM102", 60, 7),
    ("pipelined_sort", 3, [], "PSM102", 60, 2),
    ("key_value_store", 4, [], "PSM102", 60, 2),
    ("checkpoint", 3, [], "PSM102", 60, 3),
    ("event_log", 3, ["FILE"], "PSM102", 60, 2),
    ("parameter_study", 3, ["FILE"], "PSM102", 60, 1),
]
EXPLORED = ("key_value_store", "parameter_study")
ALL = os.environ.get("PYSMPI_ALL_ORDERS") == "1"


@pytest.mark.parametrize(
    ("name", "ranks", "arguments", "code", "most", "deviations"),
    APPLICATION_BUGS,
    ids=[b[0] for b in APPLICATION_BUGS],
)
def test_rare_orders_of_applications(
    name: str,
    ranks: int,
    arguments: list[str],
    code: str,
    most: int,
    deviations: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = in_the_usual_order(APPLICATIONS / f"{name}.py", ranks, arguments)
    if name not in EXPLORED and not ALL:
        return
    search = ["explore", "-q", "-n", str(ranks), "--runs", str(most), "--check", "none"]
    # Executions at the same time would share the plain file.
    search += ["-j", "1" if name == "parameter_study" else "2", "--timeout", "20"]
    failure = failure_of(search, words, code, deviations)
    assert failure["ranks"] <= ranks
    assert_repeats(failure, code, capsys)
    if ALL and name != "ticket_lock":  # 120 steps are too many for pct in 300 runs
        pct = [*search, "--schedule", "pct:3", "--no-shrink", "--database", "none", "--runs", "300"]
        assert status_of([*pct, *words]) == 1


def test_a_known_failure_is_tried_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["explore", "-n", "3", "--no-shrink", "-j", "1", str(PROGRAMS / "stealing.py")]
    assert status_of(words) == 1
    assert "found by execution" in capsys.readouterr().err
    assert status_of(words) == 1
    found = capsys.readouterr().err
    assert "found by known failure" in found and "1 execution in" in found


def test_a_strategy_finds_a_bug_and_states_its_guarantee(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["explore", "-n", "4", "--schedule", "pct:2", "--runs", "100", "--seed", "1", "-j", "1"]
    assert status_of([*words, "--no-shrink", str(PROGRAMS / "waitany.py")]) == 1
    assert re.search(r"pct: depth 2, n=4 ranks, k=\d+ steps", capsys.readouterr().err)


DRIFTS = """
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 0:
    first = comm.recv()
    rest = [comm.recv() for _ in range(comm.size - 2)]
    assert first != comm.size - 1, "the last rank came first"
else:
    comm.send(comm.rank, dest=0)
"""


def test_a_smaller_job_that_always_fails_does_not_take_the_place_of_an_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("drifts.py").write_text(DRIFTS)
    words = ["explore", "-n", "3", "-j2", "--check", "none", "--json", "found.json", "drifts.py"]
    assert status_of(words) == 1
    (failure,) = json.loads(Path("found.json").read_text())["failures"]
    assert failure["ranks"] == 3 and failure["deviations"] == 1
    assert "-n 2 --replay-schedule default" in failure["unordered"]
    assert "-j2" not in failure["command"]
    shown = capsys.readouterr().err
    assert f"fails in its default order: {failure['unordered']}" in shown
    assert failure["parting"] == 0
    lines = [line.strip() for line in shown.splitlines()]
    passes = next(i for i, line in enumerate(lines) if line.startswith("passes: rank 0 recv"))
    assert "takes the message of rank 1" in lines[passes]
    assert lines[passes + 1].startswith("fails:  rank 0 recv")
    assert "takes the message of rank 2" in lines[passes + 1]
    remedy = "all orders pass if recv drifts.py:6 names the source of its message (rank 1)"
    assert any(line.startswith(remedy) for line in lines)


def test_a_bounded_search_has_a_status_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["explore", "-q", "-n", "4", "--check", "none", "-j", "1", "--database", "none"]
    program = "from mpi4py import MPI\nc = MPI.COMM_WORLD\nc.send(0, 0) if c.rank else "
    program += "[c.recv() for _ in range(c.size - 1)]\n"
    Path("gather.py").write_text(program)
    assert status_of([*words, "--runs", "2", "gather.py"]) == 4
    assert status_of([*words, "gather.py"]) == 0
    assert status_of([*words, "--schedule", "random", "--runs", "2", "gather.py"]) == 0


@pytest.mark.parametrize(("sends", "status"), [("buffered", 0), ("waiting", 1)])
def test_sends_hold_for_every_strategy(
    sends: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ring.py").write_text(
        "from mpi4py import MPI\nc = MPI.COMM_WORLD\nc.send(0, 1 - c.rank)\nc.recv()\n"
    )
    for schedule in ("random", "pct:2"):
        words = ["explore", "-q", "-n", "2", "--check", "none", "--database", "none", "--no-shrink"]
        words += ["--schedule", schedule, "--runs", "8", "--sends", sends, "ring.py"]
        assert status_of(words) == status
