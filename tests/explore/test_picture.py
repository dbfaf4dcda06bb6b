"""The page of failures: what its diagrams show is what the executions did."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pysmpi.cli.main import status_of
from pysmpi.explore.events import DrawnDecision
from pysmpi.explore.exploration import FailingOrder
from pysmpi.explore.picture import BEFORE, MOST, page

SVG = "{http://www.w3.org/2000/svg}"

LATE = """
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 0:
    first = comm.recv()
    comm.send(first, dest=2)
    rest = [comm.recv() for _ in range(2)]
    assert first < 2, "<first> is 2 & not 1"
elif comm.rank == 1:
    comm.send(1, dest=0)
    comm.send(1, dest=0)
else:
    comm.recv(source=0)
    comm.send(2, dest=0)
"""
EARLY = LATE.replace("comm.recv(source=0)\n    comm.send(2, dest=0)", "pass").replace(
    "else:\n    pass", "else:\n    comm.send(2, dest=0)\n    comm.recv(source=0)"
)


def diagrams(text: str) -> list[ElementTree.Element]:
    """The diagrams of a page."""
    found = re.findall(r"<svg .*?</svg>", text, flags=re.DOTALL)
    return [ElementTree.fromstring(one) for one in found]


def explored(program: str, *words: str) -> tuple[int, str, dict[str, Any]]:
    """The status of a search, its page, and its outcome."""
    Path("prog.py").write_text(program)
    line = ["explore", "-q", "-n", "3", "-j", "1", "--check", "none", "--database", "none"]
    line += ["--sends", "buffered", "--page", "orders.html", "--json", "found.json"]
    status = status_of([*line, *words, "prog.py"])
    return status, Path("orders.html").read_text(), json.loads(Path("found.json").read_text())


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_both_orders_are_drawn_with_what_differs() -> None:
    status, text, found = explored(EARLY)
    assert status == 1
    (failure,) = found["failures"]
    passes, fails = diagrams(text)
    for picture, steps, others in (
        (passes, failure["passing_steps"], failure["steps"]),
        (fails, failure["steps"], failure["passing_steps"]),
    ):
        groups = picture.findall("g")
        assert [one.find("title").text for one in groups] == [step[1] for step in steps]
        differ = [one.get("class") == "differs" for one in groups]
        assert differ == [mine[0] != its[0] for mine, its in zip(steps, others, strict=True)]
        assert any(differ)
        ranks = [one for one in picture.findall("text") if one.get("class") == "rank"]
        assert [one.text for one in ranks] == ["rank 0", "rank 1", "rank 2"]
        # A message begins at its sender and ends at its receiver, not above its beginning.
        across = [float(one.get("x", "")) for one in ranks]
        for group, (_, _, rank, sender, sent) in zip(groups, steps):
            circle, arrow = group.find("circle"), group.find("path")
            assert float(circle.get("cx", "")) == across[rank]
            x, y = map(float, re.findall(r"M([\d.]+) ([\d.]+)", arrow.get("d", ""))[0])
            assert x == across[sender] and y <= float(circle.get("cy", ""))
            assert sent >= 0
    fatal = [one for one in fails.findall("line") if one.get("class") == "fatal"]
    assert len(fatal) == 1 and failure["inevitable"] == 1
    assert not [one for one in passes.findall("line") if one.get("class") == "fatal"]
    assert "&lt;first&gt; is 2 &amp; not 1" in text and "<first>" not in text
    assert failure["command"].replace(">", "&gt;") in text


def test_messages_begin_at_the_step_before_which_they_were_sent() -> None:
    status, _, found = explored(LATE.replace("first < 2", "rest != [1, 2]"), "--no-shrink")
    assert status == 1
    steps = found["failures"][0]["steps"]
    assert [(step[3], step[4]) for step in steps] == [(1, 0), (1, 0), (2, 1)]


def test_an_order_without_one_that_passes_is_drawn_alone() -> None:
    status, text, found = explored(
        "from mpi4py import MPI\nc = MPI.COMM_WORLD\n"
        "if c.rank:\n    c.isend(c.rank, 0)\nelse:\n    c.recv(), c.recv(), c.recv()\n"
    )
    assert status == 1 and found["failures"][0]["passing_steps"] == []
    (picture,) = diagrams(text)
    assert len(picture.findall("g")) == len(found["failures"][0]["steps"]) > 0
    assert not [one for one in picture.iter() if one.get("class") == "differs"]


def test_a_page_without_failures_says_so() -> None:
    status, text, _ = explored("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n")
    assert status == 0
    assert "No failure was found" in text


def test_long_orders_begin_shortly_before_the_first_difference() -> None:
    def steps(order: str) -> list[DrawnDecision]:
        names = [f"{i}" if i < 500 else f"{order} {i}" for i in range(1000)]
        return [DrawnDecision(name, f"{i}", 0, 1, i) for i, name in enumerate(names)]

    failure = FailingOrder("PSM102", "default", "error", 2, [], inevitable=501, parting=500)
    failure.steps, failure.passing_steps = steps("fails"), steps("passes")
    for picture in diagrams(page("prog.py", [failure])):
        numbers = [int(one.find("title").text) for one in picture.findall("g")]
        assert numbers == list(range(500 - BEFORE, 500 - BEFORE + MOST))


def test_a_page_that_cannot_be_written_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("prog.py").write_text("from mpi4py import MPI\n")
    words = ["explore", "-q", "-n", "1", "--database", "none", "--page", "none/a.html", "prog.py"]
    assert status_of(words) == 2
    assert "--page none/a.html: cannot be written: No such file" in capsys.readouterr().err
