"""`pysmpi run` as a user types it: output, exit statuses, files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

HELLO = """
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
total = comm.allreduce(comm.rank)
print("rank", comm.rank, "of", comm.size, "total", total, *sys.argv[1:])
"""

EXCHANGE = """
import numpy
from mpi4py import MPI
comm = MPI.COMM_WORLD
data = numpy.full(1000, comm.rank)
for step in range(3):
    comm.Sendrecv(data, (comm.rank + 1) % comm.size, recvbuf=data.copy(),
                  source=(comm.rank - 1) % comm.size)
table = {name: comm.rank for name in {"a", "b", "c"}}
comm.bcast(sorted(table), root=1)
comm.Isend(data, comm.rank).Wait() if comm.rank < 0 else None
comm.Barrier()
"""

BROKEN = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
def work():
    if comm.rank == 3:
        {}["missing"]
work()
comm.Barrier()
"""


def test_output_and_summary_are_apart(pysmpi, write):
    write("hello.py", HELLO)
    done = pysmpi("run", "-n", "4", "--compute", "none", "hello.py", "-n", "7", "--quiet")
    assert done.returncode == 0
    lines = sorted(done.stdout.splitlines())
    assert lines == [f"rank {rank} of 4 total 6 -n 7 --quiet" for rank in range(4)]
    first, second = done.stderr.splitlines()[:2]
    assert first.startswith("pysmpi: predicted time ")
    assert first.endswith("4 ranks on 1 host of cluster")
    assert second == "pysmpi: model hybrid, preset neutral, selector ompi5, compute none"
    assert all(line.startswith("pysmpi: ") for line in done.stderr.splitlines())


def test_quiet_says_nothing(pysmpi, write):
    write("hello.py", HELLO)
    done = pysmpi("run", "-n", "2", "-q", "hello.py")
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize(
    "words",
    [
        ["-np", "2", "hello.py", "x"],
        ["--np=2", "python", "-u", "hello.py", "x"],
        ["-n2", "python3", "-W", "ignore", "hello.py", "x"],
        ["-n", "2", "-m", "hello", "x"],
        ["-n", "2", "python", "-m", "hello", "x"],
        ["-n", "2", "--", "hello.py", "x"],
        ["-n", "2", "-platform", "graphene", "-cfg", "smpi/wtime:0", "hello.py", "x"],
    ],
)
def test_spellings(status, write, words):
    write("hello.py", HELLO)
    code, out, _ = status("run", "-q", *words)
    assert code == 0
    assert sorted(out.splitlines()) == ["rank 0 of 2 total 1 x", "rank 1 of 2 total 1 x"]


def test_words_of_launchers(status):
    program = "import os; print(os.environ['FIRST'], os.environ['SECOND'])"
    code, out, err = status(
        "run", "-n", "2", "--oversubscribe", "-bind-to", "core", "--mca", "btl", "self",
        "-x", "FIRST=1", "-genv", "SECOND", "2", "-c", program,
    )  # fmt: skip
    assert code == 0
    assert out == "1 2\n1 2\n"
    assert "ignored, because ranks are simulated: --oversubscribe, -bind-to core, --mca" in err


def test_exit_status_is_the_programs(status):
    code, _, err = status("run", "-n", "2", "-c", "import sys; sys.exit(7)")
    assert code == 7
    assert "the program's exit status is 7" in err


def test_exit_message(status):
    code, _, err = status("run", "-n", "2", "-q", "-c", "import sys; sys.exit('no input')")
    assert code == 1
    assert "no input" in err


def test_exception_in_one_rank(pysmpi, write):
    write("broken.py", BROKEN)
    done = pysmpi("run", "-n", "4", "-q", "broken.py")
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0] == "PSM102 exception in a rank: rank 3"
    assert lines[1] == "rank 3: Traceback (most recent call last):"
    assert "KeyError: 'missing'" in done.stderr
    assert "ranks 0-2 were still running and were stopped" in done.stderr
    assert lines[-1] == "  help: pysmpi explain PSM102"
    # Frames of pysmpi itself are not shown.
    assert "pysmpi/" not in done.stderr


def test_abort(status, write):
    write("abort.py", "from mpi4py import MPI\nMPI.COMM_WORLD.Abort(9)\n")
    code, _, err = status("run", "-n", "3", "-q", "abort.py")
    assert code == 9
    assert "PSM103 job aborted: rank 0 called MPI_Abort with error code 9 at abort.py:2" in err


def test_mpi_errors_have_a_status_of_their_own(status, write):
    write(
        "long.py",
        "import numpy\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"
        "if comm.rank == 0:\n    comm.Send(numpy.zeros(9), 1)\n"
        "else:\n    comm.Recv(numpy.zeros(3), 0)\n",
    )
    code, _, err = status("run", "-n", "2", "-q", "long.py")
    assert code == 3
    assert err.startswith("PSM104 message truncated: rank 1\n")
    code, _, err = status("run", "-q", "-c", "from mpi4py import MPI; MPI.COMM_WORLD.send(1, 5)")
    assert code == 3
    assert err.startswith("PSM105 MPI error: rank 0\n")
    assert "dest is 5, expected 0 to 0" in err


def test_syntax_error_of_the_program(status, write):
    write("wrong.py", "def f(:\n")
    code, out, err = status("run", "-n", "4", "wrong.py")
    assert (code, out) == (1, "")
    assert err.count("SyntaxError") == 1
    assert "Traceback" not in err


def test_deadlock(pysmpi, write):
    write(
        "stuck.py",
        "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"
        "if comm.rank == 1:\n    comm.recv(source=0, tag=7)\ncomm.Barrier()\n",
    )
    done = pysmpi("run", "-n", "4", "-q", "--compute", "none", "stuck.py")
    assert done.returncode == 3
    assert done.stderr.startswith("PSM101 deadlock at t=")
    assert "again: pysmpi run -n 4 -q --compute none stuck.py" in done.stderr


def test_deadlock_raised_in_the_ranks(status, write):
    program = write(
        "stuck.py",
        "from mpi4py import MPI\n"
        "try:\n    MPI.COMM_WORLD.recv(source=0)\n"
        "except MPI.Exception as error:\n"
        "    print(MPI.COMM_WORLD.rank, error.Get_error_class() == MPI.ERR_PENDING)\n",
    )
    code, out, _ = status("run", "-n", "2", "-q", "--on-deadlock", "raise", "stuck.py")
    assert code == 0
    assert sorted(out.splitlines()) == ["0 True", "1 True"]
    program.write_text("from mpi4py import MPI\nMPI.COMM_WORLD.recv(source=0)\n")
    code, _, err = status("run", "-n", "2", "-q", "--on-deadlock", "raise", "stuck.py")
    assert code == 3
    assert err.startswith("PSM101 deadlock")


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".csv"])
def test_reports_and_traces_are_the_same_bytes(pysmpi, write, tmp_path: Path, suffix):
    write("exchange.py", EXCHANGE)
    found = []
    for seed in ("1", "2"):
        trace, report = f"trace{seed}{suffix}", f"report{seed}.json"
        done = pysmpi(
            "run", "-n", "4", "--platform", "graphene", "--compute", "none", "--trace", trace,
            "--report", report, "exchange.py", PYTHONHASHSEED=seed,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.append(((tmp_path / trace).read_bytes(), (tmp_path / report).read_bytes()))
    assert found[0] == found[1]
    assert len(found[0][0]) > 100


def test_report(status, write, tmp_path: Path):
    write("exchange.py", EXCHANGE)
    code, *_ = status(
        "run", "-n", "3", "--platform", "graphene", "--seed", "5", "--report", "r.json",
        "--compute", "1us", "exchange.py",
    )  # fmt: skip
    assert code == 0
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["nprocs"] == len(report["ranks"]) == report["hosts"] == 3
    assert report["platform"] == "graphene"
    assert report["model"] == "hybrid"
    assert report["seed"] == 5
    assert report["wall_seconds"] is None
    assert report["messages"] > 9
    assert report["bytes"] >= 9 * 8000
    assert 0.0 < report["seconds"] < 1.0
    for rank in report["ranks"]:
        assert rank["state"] == "finished"
        assert 0.0 <= rank["wait_seconds"] <= rank["communication_seconds"]
        total = rank["compute_seconds"] + rank["communication_seconds"]
        assert total == pytest.approx(rank["end_seconds"])
    code, *_ = status("run", "--report", "r.json", "-c", "pass")
    assert json.loads((tmp_path / "r.json").read_text())["wall_seconds"] > 0.0


def test_report_of_a_failure(status, write, tmp_path: Path):
    write("broken.py", BROKEN)
    code, *_ = status("run", "-n", "4", "--report", "r.json", "--trace", "t.json", "broken.py")
    assert code == 1
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["exit_status"] == 1
    assert "KeyError" in report["error"]
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_recorded_compute_is_played_back(pysmpi, write, tmp_path: Path):
    write("exchange.py", EXCHANGE)
    done = pysmpi("run", "-n", "2", "-q", "--record-compute", "blocks", "exchange.py")
    assert done.returncode == 0, done.stderr
    reports = []
    for name in ("one", "two"):
        done = pysmpi(
            "run", "-n", "2", "-q", "--compute", "blocks", "--report", name, "exchange.py"
        )
        assert done.returncode == 0, done.stderr
        reports.append((tmp_path / name).read_bytes())
    assert reports[0] == reports[1]
    assert json.loads(reports[0])["ranks"][0]["compute_seconds"] > 0.0


def test_closed_pipe(start):
    # A reader such as `head` may stop; that is no error.
    listing = start("collectives", "list")
    listing.stdout.close()
    assert listing.stderr.read() == ""
    listing.stderr.close()
    assert listing.wait(60) == 0


def test_a_shared_package_that_mixes_ranks_is_named(pysmpi, write):
    """A package with an extension module is loaded once; its globals may be a rank's."""
    main = "from mpi4py import MPI\nimport mixed\nmixed.use(MPI.COMM_WORLD.rank)\n"
    package = Path(write("main.py", main)).parent / "mixed"
    package.mkdir()
    (package / "fast.abi3.so").touch()
    (package / "__init__.py").write_text(
        """
class Registry:
    items = []


def use(item):
    Registry.items.append(item)
    if len(Registry.items) > 1:
        raise ValueError("too many")
"""
    )
    done = pysmpi("run", "-n", "2", "main.py")
    assert done.returncode == 1
    assert "which have changed mixed.Registry.items;" in done.stderr
    assert "--private mixed" in done.stderr
    assert pysmpi("run", "-n", "2", "--private", "mixed", "main.py").returncode == 0


def test_commands_are_found_in_the_path(status, tmp_path, monkeypatch):
    shell = f"#!/bin/sh\n'''exec' {sys.executable} \"$0\" \"$@\"\n' '''\n"
    for name, first in (("tool", f"#!{sys.executable}\n"), ("wrapped", shell)):
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text(f"{first}import sys\nprint(sys.argv)\n")
        command.chmod(0o755)
        monkeypatch.setenv("PATH", str(command.parent))
        result, out, err = status("run", "-q", "-n", "2", name, "x")
        assert result == 0, err
        assert out.splitlines() == [str([str(command), "x"])] * 2
