"""Shadow execution from the command line: options, summary, report, the check."""

from __future__ import annotations

import json

import pytest

PROGRAM = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD

def work(a, out):
    np.matmul(a, a, out=out)

def table(n):
    return np.arange(n)

def guess(a):
    a[0, 0] += 1.0
    return float(a[0, 0])

def round():
    comm.allreduce(1)
    comm.barrier()

a, out = np.ones((40, 40)), np.zeros((40, 40))
for i in range(30):
    table(i)
    work(a, out)
    round()
while guess(a) < 12.0:
    comm.barrier()
    if a[0, 0] > 50.0 or comm.allreduce(1) > 99:
        break
    if len(seen := globals().setdefault("seen", [])) > 40:
        break
    seen.append(1)
print(out[0, 0])
"""


@pytest.fixture
def program(write) -> str:
    write("program.py", PROGRAM)
    return "program.py"


def test_the_summary_says_so_once(status, program):
    code, _, err = status(
        "run", "-n", "2", "--compute", "100us", "--sample", "__main__:work:iters=3", program
    )
    assert code == 0
    assert "sampled __main__:work (local): 8 passes ran, 52 were skipped" in err
    assert err.count("results are wrong") == 1
    assert "results are wrong" not in status("run", "-n", "2", program)[2]


def test_the_report_holds_the_figures(status, program, tmp_path):
    arguments = ["--compute", "none", "--once", "__main__:table", "--sample", "nowhere:f"]
    code, _, err = status("run", "-n", "3", *arguments, "--report", "r.json", program)
    assert code == 0
    assert "nowhere:f was never loaded" in err
    shadow = json.loads((tmp_path / "r.json").read_text())["shadow"]
    assert shadow["sampled"] == []
    assert shadow["once"][0] == {
        "place": "__main__:table",
        "ran": 30,
        "shared": 60,
        "charged_seconds": 0.0,
        "saved_seconds": None,
        "one_object_for_all": False,
    }


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--sample", "work"], "--sample work: expected MODULE:FUNCTION"),
        (["--sample", "__main__:work:iters=0"], "iters: expected a number from 1 on, got '0'"),
        (["--sample", "__main__:wrk"], "close to it are work"),
        (["--sample", "__main__:round"], "cannot be sampled, since it communicates"),
        (["--once", "__main__:work"], "writes to its arguments"),
        (["--once", "__main__:work:by=shape"], "expected one of iters=, writable="),
        (["--check-shadow", "--check-tolerance", "much"], "such as 5%"),
        (["--check-shadow", "--trace", "t.json"], "expected no --trace"),
    ],
)
def test_wrong_options(status, program, arguments, part):
    code, out, err = status("run", "-n", "2", *arguments, program)
    assert code == 2
    assert part in err
    assert "Traceback" not in err


def test_the_check_passes_where_nothing_is_harmed(status, program):
    code, out, err = status(
        "run", "-n", "2", "--compute", "1us", "--check-shadow", "--sample", "__main__:work",
        "--sample", "__main__:round:scope=collective", program,
    )  # fmt: skip
    assert "check: passed" in err
    assert "every rank made the same MPI calls" in err
    assert code == 0
    assert out.split() == ["40.0"] * 4


def test_the_check_fails_where_control_flow_differs(status, program, tmp_path):
    code, _, err = status(
        "run", "-n", "2", "--compute", "1us", "--check-shadow", "--check-tolerance", "500%",
        "--sample", "__main__:guess:iters=2", "--report", "r.json", program,
    )  # fmt: skip
    assert code == 1
    assert "2 ranks made other MPI calls; call " in err
    assert "with shadow options" in err and "check: FAILED" in err
    check = json.loads((tmp_path / "r.json").read_text())["check"]
    assert check["ranks_that_differ"] == 2 and not check["passed"]


def test_the_check_fails_where_times_differ(status, write):
    write(
        "p.py",
        """
from mpi4py import MPI
n = 0
def turn():
    global n
    n += 1
    if n > 6:
        MPI.COMM_WORLD.bcast(bytes(5_000_000))
    MPI.COMM_WORLD.barrier()
for _ in range(12):
    turn()
""",
    )
    code, _, err = status(
        "run", "-n", "2", "--compute", "none", "--check-shadow",
        "--sample", "__main__:turn:scope=collective,iters=2", "p.py",
    )  # fmt: skip
    assert code == 1
    assert "check: FAILED" in err and "every rank made the same MPI calls" in err


def test_the_check_covers_data_that_is_not_sent(status, write):
    write(
        "p.py",
        """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
found = np.zeros(1)
comm.Bcast(np.ones(1) if comm.rank == 0 else found)
if comm.rank and found[0]:
    comm.Send(found, 0)
elif comm.rank == 0:
    comm.Iprobe()
""",
    )
    arguments = ["run", "-n", "2", "--compute", "none", "--check-shadow", "--data", "none", "p.py"]
    code, _, err = status(*arguments)
    assert code == 1
    assert "1 rank made other MPI calls; call 2 of rank 1 is Send(dest=0)" in err
    assert "and nothing more with shadow options" in err


def test_every_kind_of_program(status, program, tmp_path):
    import py_compile
    import zipfile

    sample = ["run", "--compute", "none", "--sample", "__main__:work:iters=3"]
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(PROGRAM)
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", PROGRAM)
    py_compile.compile(program, "compiled.pyc")
    for words in (["-c", PROGRAM], ["-m", "package"], ["package"], ["archive.zip"]):
        code, _, err = status(*sample, *words)
        assert code == 0, err
        assert "4 passes ran, 26 were skipped" in err
    code, _, err = status(*sample, "compiled.pyc")
    assert code == 2 and "compiled.pyc comes without source" in err
    assert status("run", "--compute", "none", "--sample", "auto", "compiled.pyc")[0] == 0


def test_reports_of_sampled_runs_repeat(status, program, tmp_path):
    texts = []
    for name in ("a.json", "b.json"):
        sampled = ["--sample", "__main__:work", "--once", "__main__:table"]
        status("run", "-n", "2", "--compute", "1us", *sampled, "--report", name, program)
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]


def test_the_check_of_a_run_without_shadow_options(status, program):
    code, _, err = status("run", "-n", "2", "--compute", "none", "--check-shadow", program)
    assert code == 0
    assert "no shadow option had an effect" in err
