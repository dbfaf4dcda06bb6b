"""Remedies of a program: each is tried in all orders, and only those that work count."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from pysmpi.cli.main import status_of
from pysmpi.explore.events import Decision, LocatedMatch, Offer, Trace
from pysmpi.explore.executor import Executor

HEAD = "from mpi4py import MPI\n\ncomm = MPI.COMM_WORLD\nrank, size = comm.rank, comm.size\n"

SORTED = """
if rank == 0:
    parts = [comm.recv() for _ in range(size - 1)]
    assert parts == sorted(parts)
else:
    comm.send(rank, dest=0)
"""
PHASES = """
if rank == 0:
    first = [comm.recv() for _ in range(size - 1)]
    second = [comm.recv() for _ in range(size - 1)]
    assert set(first) == {"first"}
else:
    comm.send("first", dest=0)
    comm.send("second", dest=0)
"""
STEPS = """
for step in range(2):
    if rank == 0:
        for _ in range(size - 1):
            assert comm.recv() == step
    else:
        comm.send(step, dest=0)
"""
TAGS = """
if rank == 2:
    assert (comm.recv(), comm.recv()) == ("a", "b")
elif rank == 0:
    comm.send("a", dest=2, tag=1)
else:
    comm.send("b", dest=2, tag=2)
"""
ONE_TAG = """
if rank == 0:
    first = comm.recv()
    rest = comm.recv(), comm.recv()
    assert first == 1
elif rank == 1:
    comm.send(1, dest=0, tag=1)
else:
    comm.send(2, dest=0, tag=2)
    comm.send(2, dest=0, tag=1)
"""
NEIGHBOURS = """
for step in range(2):
    comm.send(step, dest=(rank + 1) % size)
    comm.send(step, dest=(rank - 1) % size)
    assert [comm.recv(), comm.recv()] == [step, step]
"""


def remedies(text: str, tmp_path: Path, *more: str) -> list[dict[str, Any]]:
    """The remedies of the only failure of a program on three ranks."""
    (tmp_path / "p.py").write_text(HEAD + text)
    words = ["explore", "-q", "-n", "3", "-j", "1", "--check", "none", "--database", "none", *more]
    assert status_of([*words, "--json", "out.json", "p.py"]) == 1
    (failure,) = json.loads((tmp_path / "out.json").read_text())["failures"]
    assert failure["remedy"] == (failure["remedies"] or [{"text": ""}])[0]["text"]
    found: list[dict[str, Any]] = failure["remedies"]
    return found


IN_TURN = "names the sources of its messages (ranks 1, 2 in turn)"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (SORTED, [f"recv p.py:7 {IN_TURN}"]),
        (PHASES, [
            f"recv p.py:7 {IN_TURN}",
            "a barrier stands before send p.py:12, and before recv p.py:8 (call 1)",
        ]),
        (STEPS, [
            "recv p.py:9 names the sources of its messages (ranks 1, 2, 2, 1 in turn)",
            "a barrier stands before send p.py:11, and before recv p.py:9 (calls 1, 3)",
        ]),
        (TAGS, [
            "recv p.py:7 names the tags of its messages (1, 2 in turn)",
            "recv p.py:7 names the sources of its messages (ranks 0, 1 in turn)",
            "a barrier stands before send p.py:11, and before recv p.py:7 (call 2)",
        ]),
        (ONE_TAG, [
            "recv p.py:7 names the source of its message (rank 1)",
            "a barrier stands before send p.py:13, and before recv p.py:8 (call 1)",
        ]),
    ],
)  # fmt: skip
def test_the_remedies_that_let_all_orders_pass(
    text: str, wanted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = remedies(text, tmp_path)
    assert [one["text"] for one in found] == wanted
    assert all(one["complete"] and not one["buffered"] for one in found)


def test_a_program_whose_sends_must_be_buffered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = remedies(NEIGHBOURS, tmp_path)
    assert [one["text"] for one in found] == [
        "recv p.py:9 names the source of each message of the passing order",
        "a barrier stands before send p.py:7",
    ]
    assert all(one["buffered"] for one in found)
    assert "all orders with buffered sends pass if a barrier" in capsys.readouterr().err


def test_explanations_go_on_from_the_first_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begun: list[int] = []
    real = Executor._begin

    def begin(self: Executor, decider: Any, *arguments: Any) -> int:
        if decider.strategy is not None and decider.sites is None:
            begun.append(1)
        return real(self, decider, *arguments)

    monkeypatch.setattr(Executor, "_begin", begin)
    reports = []
    for snapshots in (True, False):
        monkeypatch.setattr(Executor, "snapshots", snapshots)
        begun.clear()
        remedies(PHASES, tmp_path)
        report = json.loads(Path("out.json").read_text())
        del report["seconds"]
        reports.append((report, len(begun)))
    (with_them, few), (without, many) = reports
    assert with_them == without
    assert few <= 4 and many >= 12


def test_a_trace_survives_its_way_to_the_search() -> None:
    one = Decision("match w:0#0 1#0", "match", (0, 1), "w:0", "", "w:0#0")
    other = one._replace(name="match w:0#0 2#0", pids=(0, 2))
    trace = Trace(
        [one, other], [0, 1], [[one, other], [other]], [[], [one]], [Offer("w:0", 0, 0, 1, 3)],
        matches=[LocatedMatch(1, "send", 1, 0, "recv", 1, 0, 1, 0, 0, 0)],
    )  # fmt: skip
    copy = pickle.loads(pickle.dumps(trace, 5))
    assert copy == trace and isinstance(copy.events[0], Decision)
    assert isinstance(copy.arrivals[0], Offer) and copy.options[1][0] is copy.options[0][1]
