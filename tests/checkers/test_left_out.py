"""Findings in libraries: the report names the package, and `--check` leaves findings out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pysmpi
from pysmpi.checkers import chosen, exemptions
from pysmpi.errors import UsageError
from pysmpi.mpi import MPI
from pysmpi.python.installed import package, site_directories

LIBRARY = """
def halves(comm):
    return comm.Split(comm.rank % 2)

def lost(comm):
    comm.isend(1, (comm.rank + 1) % comm.size)
    comm.recv()

def differ(comm):
    return comm.allreduce(1) if comm.rank else comm.bcast(1)
"""
PLACE = os.path.join("splitter", "__init__.py")

splitter: dict[str, Any] = {}
exec(compile(LIBRARY, os.path.join(site_directories()[0], PLACE), "exec"), splitter)


def program() -> None:
    comm = MPI.COMM_WORLD
    splitter["halves"](comm)
    splitter["lost"](comm)
    comm.Split(0)


def differing() -> None:
    splitter["differ"](MPI.COMM_WORLD)


def run(main: Any, check: Any) -> list[Any]:
    try:
        pysmpi.run(main, 2, check=check, compute="none")
    except pysmpi.ProgramError as error:
        return list(error.result.findings)
    return []


@pytest.mark.parametrize(
    ("check", "left"),
    [
        ("all", ["PSM117", "PSM119", "PSM119"]),
        ("all,-PSM119", ["PSM117"]),
        (["all", "-psm119"], ["PSM117"]),
        ("all,-PSM119:splitter", ["PSM117", "PSM119"]),
        ("all,-PSM119:test_left_out", ["PSM117", "PSM119"]),
        ("all,-all:splitter", ["PSM119"]),
        ("all,-leaks", ["PSM117"]),
        ("leaks,requests,-leaks", ["PSM117"]),
        ("all,-PSM117:split,-all:site-packages", ["PSM117", "PSM119", "PSM119"]),
        ("all,-leaks,-PSM117", []),
        ("none,-PSM117", []),
    ],
)
def test_findings_are_left_out(check: Any, left: list[str]) -> None:
    assert sorted(one.code for one in run(program, check)) == left


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("-leaks", "write --check all,-leaks"),
        ("-PSM119,-PSM117", "write --check all,-PSM119"),
        ("all,-leak", "did you mean leaks?"),
        ("all,-PSM999", "expected -CHECKER, -CODE"),
        ("all,-PSM119:", "expected -CHECKER, -CODE"),
        ("all,-leaks:splitter", "expected -CHECKER, -CODE"),
        ("all,-:splitter", "expected -CHECKER, -CODE"),
        ("all,-all", "expected none, or -all:PACKAGE"),
    ],
)
def test_wrong_names_are_refused(check: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(check)
        exemptions(check)
    assert said in str(caught.value)


def test_calls_that_differ_name_the_library() -> None:
    (finding,) = (one for one in run(differing, "collectives") if one.code == "PSM111")
    assert [place.package for place in finding.places] == ["splitter", "splitter"]
    assert [str(place.site).rpartition(":")[2] for place in finding.places] == [
        f"{differing.__code__.co_firstlineno + 1} in differing"
    ] * 2
    assert finding.plain()["places"][0]["library"].endswith("in differ")


def test_the_package_of_a_file() -> None:
    (place, *_) = site_directories()
    assert package(os.path.join(place, "one", "two", "three.py")) == "one"
    assert package(os.path.join(place, "single.py")) == "single"
    assert package(os.path.join(os.path.dirname(os.__file__), "queue.py")) == "queue"
    assert package(os.path.join("here", "heat.py")) == "heat"


def test_a_report_names_both_lines_and_a_search_leaves_findings_out(tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / PLACE
    library.parent.mkdir(parents=True)
    library.write_text(LIBRARY)
    (tmp_path / "heat.py").write_text(
        "from mpi4py import MPI\nimport splitter\nsplitter.halves(MPI.COMM_WORLD)\n"
        "splitter.lost(MPI.COMM_WORLD)\nMPI.COMM_WORLD.Split(0)\n"
    )

    def command(*words: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", words[0], "-q", "-n", "2", *words[1:], "heat.py"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(library.parents[1])},
        )  # fmt: skip
        return done.returncode, done.stderr.splitlines()

    status, lines = command("run", "--check", "all")
    assert status == 3
    at = next(i for i, line in enumerate(lines) if "heat.py:3" in line)
    where = os.path.join("site-packages", PLACE)
    assert lines[at + 1] == f"    made by the package splitter: {where}:3 in halves"
    assert "  not your code? --check all,-PSM119:splitter leaves this out" in lines
    at = next(i for i, line in enumerate(lines) if "heat.py:5" in line)
    assert lines[at + 1].startswith("  why:")

    status, lines = command("explore", "--database", "none")
    assert (status, lines[0].split()[0]) == (1, "PSM117")
    again = next(line for line in lines if "repeat: pysmpi run" in line)
    assert again.count("--check") == 1
    status, lines = command("explore", "--database", "none", "--check", "-PSM117:splitter")
    assert (status, lines) == (0, [])
