"""Scripts of SimGrid: their commands, the runs that these are, and the comparison of outputs."""

from __future__ import annotations

from pathlib import Path

from tests.smpi_suite.__main__ import difference
from tests.smpi_suite.scripts import commands, run_of

SCRIPT = """\
p A comment
! output sort
! expect return 3
$ ${bindir:=.}/bin/smpirun -map -np 4 -platform ${platfdir:=.}/small.xml -hostfile ../hosts \\
  --log=xbt.thres:warning ./ring 5 -v --cfg=smpi/wtime:0 --log=smpi_mpi.:verbose
> [0.000000] [smpi/INFO] [rank 0] -> Tremblay
> hello
$ rm -f x
$ bin/smpirun -trace-ti -np 2 -platform a.xml ./ring
"""


def test_a_script_has_commands_with_outputs(tmp_path: Path) -> None:
    script = tmp_path / "ring.tesh"
    script.write_text(SCRIPT)
    first, second, third = commands(script)
    assert (first.status, second.status) == (3, 0)
    assert first.output[1:] == ["hello"]
    run = run_of(first.words)
    assert run is not None and not run.reason
    assert (run.ranks, run.program, run.arguments) == (4, "./ring", ["5", "-v"])
    assert (run.platform, run.hostfile) == ("./small.xml", "../hosts")
    assert run.settings == ["smpi/wtime:0"] and run.calls
    assert run_of(second.words) is None
    assert "traces" in run_of(third.words).reason


def test_outputs_are_compared_without_messages_of_simgrid() -> None:
    expected = [
        "[0.000000] [smpi/INFO] [rank 0] -> Tremblay", "b", "a", "",
        "[Jupiter:1:(2) 0.002948] [smpi_mpi/VERBOSE] SMPI - Leaving MPI_Recv",
        "[Jupiter:1:(2) 0.002948] [smpi_bench/DEBUG] Handle real computation time",
    ]  # fmt: skip
    line = "[Jupiter:1:(2) 0.002948] [smpi_mpi/VERBOSE] SMPI - Leaving MPI_Recv"
    assert not difference(expected, f"a\nb\n{line}\n")
    assert "1 lines missing" in difference(expected, f"a\n{line}\n")
    assert "1 lines missing" in difference(expected, f"a\nb\n{line.replace('948', '949')}\n")
