"""Programs that print what they see: ranks print what processes under `mpiexec` print."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pysmpi import run

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
MPIEXEC = shutil.which("mpiexec", path=os.path.dirname(sys.executable) + os.pathsep + os.defpath)


def rows(command: list[str], program: str, directory: Path) -> list[dict[str, object]]:
    directory.mkdir()
    done = subprocess.run(
        [*command, str(PROGRAMS / f"{program}.py"), str(directory)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads((directory / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("program", ["numbers_for_waits", "locks_and_copies"])
def test_ranks_print_what_processes_print(program, tmp_path):
    if MPIEXEC is None:
        pytest.skip("there is no mpiexec to compare with (pip install mpich)")
    real = rows([MPIEXEC, "-n", "2", sys.executable], program, tmp_path / "real")
    pysmpi = [sys.executable, "-m", "pysmpi", "run", "-n", "2"]
    simulated = rows(pysmpi, program, tmp_path / "simulated")
    assert len(real[0]) > 400
    different = [
        f"rank {rank}: {row}\n  mpiexec: {real[rank][row]}\n  pysmpi:  {simulated[rank][row]}"
        for rank in range(2)
        for row in real[rank]
        if real[rank][row] != simulated[rank].get(row)
    ]
    assert not different, "\n".join(different)


def test_functions_of_os_can_do_in_ranks_what_they_can_do_elsewhere(tmp_path):
    program = tmp_path / "abilities.py"
    program.write_text(
        "import os\n"
        "for can in 'dir_fd', 'effective_ids', 'fd', 'follow_symlinks':\n"
        "    able = getattr(os, 'supports_' + can)\n"
        "    print(can, *sorted(n for n in dir(os) if vars(os)[n] in (*able, 0)))\n"
    )
    real = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, timeout=100
    )
    command = [sys.executable, "-m", "pysmpi", "run", "-q", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert "chdir" in real.stdout and done.stdout == real.stdout


def test_each_import_of_mpi_initializes_its_rank_unless_the_program_says_otherwise(tmp_path):
    program = tmp_path / "imports.py"
    program.write_text(
        "import sys\n"
        "import mpi4py\n"
        "later = len(sys.argv) > 1\n"
        "mpi4py.rc.initialize = not later\n"
        "from mpi4py import MPI\n"
        "assert MPI.Is_initialized() is not later\n"
        "if later: MPI.Init()\n"
        "import mpi4py.MPI\n"
        "assert MPI.COMM_WORLD.allreduce(1) == 3\n"
    )
    for arguments in ([], ["later"]):
        result = run(program, 3, args=arguments, compute="none")
        assert result.exit_status == 0
