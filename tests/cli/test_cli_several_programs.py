"""Several programs in one world: `pysmpi run -n 2 a.py : -n 2 b.py`, as mpiexec starts them."""

from __future__ import annotations

import pytest

import pysmpi

SHOW = """
import os, sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
print(NAME, comm.rank, comm.size, comm.Get_attr(MPI.APPNUM), sys.argv, os.environ.get("OWN"),
      os.environ.get("ALL"), os.path.basename(os.getcwd()), comm.allreduce(1))
"""


def test_each_program_has_its_ranks_arguments_variables_and_directory(status, write, tmp_path):
    (tmp_path / "sub").mkdir()
    write("a.py", SHOW.replace("NAME", "'a'"))
    (tmp_path / "sub" / "b.py").write_text(SHOW.replace("NAME", "'b'"))
    result, out, err = status(
        "run", "-q", "-n", "2", "-genv", "ALL", "1", "-env", "OWN", "2", "python", "a.py", "x",
        ":", "-wdir", "sub", "-x", "OWN=3", "-np", "1", "python", "b.py", "::",
        ":", "-c", "import os; print('c', 'OWN' in os.environ); "
        "from mpi4py import MPI; MPI.COMM_WORLD.allreduce(1)",
    )  # fmt: skip
    assert result == 0, err
    here = tmp_path.name
    # The output of MPICH's mpiexec.
    assert sorted(out.splitlines()) == [
        f"a 0 4 0 ['a.py', 'x'] 2 1 {here} 4",
        f"a 1 4 0 ['a.py', 'x'] 2 1 {here} 4",
        "b 2 4 1 ['b.py', '::'] 3 1 sub 4",
        "c False",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ok.py", ":"], "expected a program after ':'"),
        (["ok.py", ":", "nope.py"], "nope.py: expected a Python program"),
        (["ok.py", ":", "-n", "0", "ok.py"], "-n: expected at least 1 rank after ':', got 0"),
        (["ok.py", ":", "-n", "ok.py"], "-n: expected at least 1 rank after ':', got ok.py"),
        (["ok.py", ":", "--model", "x", "ok.py"], "--model: expected -n, -x, -env, -wdir or a"),
        (["ok.py", ":", "-genv", "A", "1", "ok.py"], "-genv A: expected before the first ':'"),
        (["-wdir", "none", "ok.py"], "-wdir: no such directory: none"),
        (["--check-shadow", "ok.py", ":", "ok.py"], "--check-shadow: expected one program"),
    ],
)
def test_what_is_wrong_after_a_colon_is_said(status, write, words, message):
    write("ok.py", "")
    result, out, err = status("run", *words)
    assert result == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_several_functions_from_python():
    def one():
        from mpi4py import MPI

        return MPI.COMM_WORLD.allgather("one")

    def two(number):
        from mpi4py import MPI

        return MPI.COMM_WORLD.allgather(f"two {number}")

    result = pysmpi.run([(one, 2), (two, 1, [5])], compute="none")
    assert result.returns == [["one", "one", "two 5"]] * 3
    with pytest.raises(pysmpi.UsageError, match="functions only or scripts only"):
        pysmpi.run([(one, 1), (__file__, 1)])
    with pytest.raises(pysmpi.UsageError, match="expected at least 1 rank, got 0"):
        pysmpi.run([(one, 0)])
