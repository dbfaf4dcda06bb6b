"""The headers of MBI's codes, the verdict on a report, and a code as MBI writes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pysmpi.abi.interfaces import file_of
from pysmpi.cli.cc import line
from tests.mbi.__main__ import Verdict, run, table
from tests.mbi.source import Code, codes

TEXT = """\
/* ///////// a code
BEGIN_MBI_TESTS
  $ mpirun -np 4 $zero_buffer ${EXE} 1
  | ERROR: CallMatching
  | MPI_Bcast at wrong.c:17 is matched with MPI_Barrier line wrong.c:19.
  $ mpirun -np 2 ${EXE}
  | OK
  |
END_MBI_TESTS
///////// */
#include <mpi.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && argc > 1) MPI_Bcast(&rank, 1, MPI_INT, 0, MPI_COMM_WORLD);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"""
CHANGED = """\
/* BEGIN_MBI_TESTS
  $ mpirun -np 2 ${EXE}
  | ERROR: LocalConcurrency
  | The buffer in MPI_Iallgather is modified at changed.c:12.
END_MBI_TESTS */
#include <mpi.h>
int main(int argc, char **argv)
{
    int value = 1, all[2];
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Iallgather(&value, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request); value++;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
"""


def test_a_header_describes_tests(tmp_path: Path) -> None:
    path = tmp_path / "wrong.c"
    path.write_text(TEXT)
    assert list(codes(path)) == [
        Code(path, 4, ("1",), False, "CallMatching", frozenset({17, 19})),
        Code(path, 2, (), True, "", frozenset()),
    ]


@pytest.mark.skipif(
    shutil.which("cc") is None or not file_of("psm_ompi.so").exists(),
    reason="there is no C compiler",
)
def test_a_code_is_run_and_judged(tmp_path: Path) -> None:
    path, program = tmp_path / "wrong.c", tmp_path / "program"
    path.write_text(TEXT)
    subprocess.run(line("cc", ["-g", "-w", str(path), "-o", str(program)]), check=True)
    wrong, right = [Verdict(code, *run(code, program)) for code in codes(path)]
    assert wrong.found and wrong.right and wrong.named, wrong.report
    assert not right.found, right.report
    assert "recall 1.000, precision 1.000" in table([wrong, right])
    path = tmp_path / "changed.c"
    path.write_text(CHANGED)
    subprocess.run(line("cc", ["-g", "-w", str(path), "-o", str(program)]), check=True)
    (changed,) = [Verdict(code, *run(code, program)) for code in codes(path)]
    assert changed.right and changed.named, changed.report
    assert "recall 0.000" in table([Verdict(wrong.code, "", 0.0), right])
