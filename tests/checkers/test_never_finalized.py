"""A rank that ends without MPI.Finalize where mpi4py does not call it."""

from __future__ import annotations

from pathlib import Path

import pytest

import pysmpi


def findings(program: str, path: Path) -> list[tuple[str, list[int], int | None]]:
    """The codes of a run with two ranks, and the ranks and the line of each."""
    path.write_text("import mpi4py\n" + program)
    try:
        result = pysmpi.run(path, nprocs=2, check="all", compute="none")
    except pysmpi.ProgramError as error:
        result = error.result
    return [
        (one.code, place.ranks, place.site and place.site.line)
        for one in result.findings
        for place in one.places
    ]


WRONG = {
    "finalize": ("mpi4py.rc.finalize = False\nfrom mpi4py import MPI\n", [0, 1], None),
    "initialize": ("mpi4py.rc.initialize = False\nfrom mpi4py import MPI\nMPI.Init()\n", [0, 1], 4),
    "thread": (
        "mpi4py.rc(initialize=False)\nfrom mpi4py import MPI\nMPI.Init_thread()\n",
        [0, 1],
        4,
    ),
    "one rank": (
        "mpi4py.rc.finalize = False\nfrom mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank:\n    MPI.Finalize()\n",
        [0],
        None,
    ),
    "exit": (
        "mpi4py.rc.finalize = False\nfrom mpi4py import MPI\nraise SystemExit\n",
        [0, 1],
        None,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_end_without_finalize(name: str, tmp_path: Path) -> None:
    program, ranks, line = WRONG[name]
    assert findings(program, tmp_path / "program.py") == [("PSM132", ranks, line)]


@pytest.mark.parametrize("program", [
    "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n",
    "mpi4py.rc.finalize = False\nfrom mpi4py import MPI\nMPI.Finalize()\n",
    "mpi4py.rc.finalize = False\nimport atexit\nfrom mpi4py import MPI\n"
    "atexit.register(MPI.Finalize)\n",
    "mpi4py.rc.initialize = False\nfrom mpi4py import MPI\nMPI.Init()\nMPI.Finalize()\n",
    "mpi4py.rc.initialize = False\nmpi4py.rc.finalize = True\nfrom mpi4py import MPI\nMPI.Init()\n",
    "mpi4py.rc.initialize = False\nfrom mpi4py import MPI\n",
    "print(1)\n",
])  # fmt: skip
def test_programs_that_need_no_finalize_or_call_it(program: str, tmp_path: Path) -> None:
    assert findings(program, tmp_path / "program.py") == []
