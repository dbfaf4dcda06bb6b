"""Compiled programs: calls before `MPI_Init` and after `MPI_Finalize` end the job, as in MPICH."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import pysmpi
from pysmpi.abi import sites
from pysmpi.cli.cc import line
from pysmpi.mpi import calls

pytest.importorskip(
    "pysmpi.abi.engine", reason="pysmpi was installed without a C compiler, or not on Linux"
)
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler", allow_module_level=True)

SOURCE = Path(__file__).parent / "programs" / "outside.c"
REFUSED = (
    "Comm_rank", "Barrier", "Send", "Type_contiguous", "Get_address", "Query_thread", "Group_size",
)  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    target = str(tmp_path_factory.mktemp("outside") / "outside")
    subprocess.run(line("cc", ["-g", str(SOURCE), "-o", target]), check=True)
    return target


@pytest.mark.parametrize("when, text", [("before", "before MPI_Init"),
                                        ("after", "after MPI_Finalize")])  # fmt: skip
@pytest.mark.parametrize("compute", ["none", "native"])
def test_a_call_ends_the_job_at_its_line(
    program: str, when: str, text: str, compute: str, capfd: pytest.CaptureFixture[str]
) -> None:
    source = SOURCE.read_text().splitlines()
    for name in REFUSED:
        with pytest.raises(pysmpi.ProgramError) as failure:
            pysmpi.run(program, nprocs=2, args=[when, name], compute=compute)
        number = next(i for i, each in enumerate(source, 1) if f"MPI_{name}(" in each)
        assert f"called MPI_{name} {text}, at " in str(failure.value)
        assert f"outside.c:{number} in refused" in str(failure.value)
        assert "went on" not in capfd.readouterr().out


def test_some_calls_are_allowed_and_sessions_allow_all(
    program: str, capfd: pytest.CaptureFixture[str]
) -> None:
    pysmpi.run(program, nprocs=3, args=["allowed"])
    assert capfd.readouterr().out.splitlines() == ["0 failures"] * 3


def test_starting_and_ending_change_no_boundary(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would cost each rank more than all the rest of its start."""
    changes: list[object] = []
    replace = calls.replace_functions
    monkeypatch.setattr(
        "pysmpi.mpi.processes.inactive.replace_functions",
        lambda wrap: (changes.append(wrap), replace(wrap))[1],
    )
    pysmpi.run(program, nprocs=2, args=["allowed"])
    assert changes == []


@pytest.mark.parametrize("compute", ["none", "native"])
def test_lines_are_looked_up_when_they_are_shown(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compute: str
) -> None:
    """A look takes as long as several ranks; calls before MPI_Init are no exception."""
    new = str(shutil.copy(program, tmp_path))  # no earlier test has looked up its lines
    places: list[str] = []
    answer = sites._answer
    monkeypatch.setattr(sites, "_answer", lambda *words: places.append(words[-1]) or answer(*words))
    pysmpi.run(new, nprocs=4, args=["allowed"], compute=compute)
    assert places == []

    with pytest.raises(pysmpi.ProgramError, match=r"outside\.c:\d+ in refused"):
        pysmpi.run(new, nprocs=4, args=["before", "Barrier"], compute=compute)
    assert len(places) == 1
