"""Command lines of mpiexec, smpirun and srun: each option does what it means, or says what does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

WRITER = """
import os, subprocess, sys
from mpi4py import MPI

comm = MPI.COMM_WORLD
print("begun", comm.rank, end=" ")
comm.barrier()
print("ended", comm.rank, flush=True)
sys.stdout.buffer.write(b"bytes \\xff\\x00\\n")
sys.stdout.flush()
os.write(1, b"written\\n")
subprocess.run([sys.executable, "-S", "-c", "print('child', flush=True)"])
comm.barrier()
print("error", comm.rank, file=sys.stderr)
sys.stdout.write("last")
"""
LINES = [b"begun {} ended {}", b"bytes \xff\x00", b"written", b"child", b"last"]


@pytest.fixture
def run(tmp_path: Path):
    import subprocess
    import sys

    from cli.conftest import environment

    (tmp_path / "writer.py").write_text(WRITER)
    (tmp_path / "ok.py").write_text("pass\n")

    def start(*words: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "pysmpi", "run", "--compute", "none", *words]
        return subprocess.run(
            command, capture_output=True, timeout=120, cwd=tmp_path, env=environment()
        )

    return start


def lines_of(rank: int) -> list[bytes]:
    return [line.replace(b"{}", b"%d" % rank) for line in LINES]


@pytest.mark.parametrize(
    "option, begin, begin_of_errors",
    [
        ("-l", b"[%d] ", b"[%d] "),
        ("-prepend-rank", b"[%d] ", b"[%d] "),
        ("--label", b"%d: ", b"%d: "),
        ("--tag-output", b"[1,%d]<stdout>:", b"[1,%d]<stderr>:"),
    ],
)
def test_each_line_begins_with_the_rank(run, option, begin, begin_of_errors):
    """Lines are whole, whoever wrote their parts: Python, its buffer, C or a child process."""
    done = run("-q", "-n", "3", option, "writer.py")
    assert done.returncode == 0, done.stderr
    found = done.stdout.split(b"\n")
    for rank in range(3):
        own = [line for line in found if line.startswith(begin % rank)]
        assert own == [begin % rank + line for line in lines_of(rank)]
    assert len(found) == 3 * len(LINES)
    wanted = {begin_of_errors % rank + b"error %d" % rank for rank in range(3)}
    assert set(done.stderr.split(b"\n")) == {*wanted, b""}


@pytest.mark.parametrize(
    "words, out, err",
    [
        (["--output-filename", "to/out"], "to/out.{}", "to/out.{}"),
        (["-outfile-pattern", "o.%r", "-errfile-pattern", "e.%r"], "o.{}", "e.{}"),
        (["-o", "slurm.%t"], "slurm.{}", "slurm.{}"),
        (["--output=dir=d"], "d/rank.{}/stdout", "d/rank.{}/stderr"),
    ],
)
def test_a_file_for_each_rank(run, tmp_path: Path, words, out, err):
    done = run("-q", "-n", "2", *words, "writer.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    for rank in range(2):
        text = b"\n".join(lines_of(rank))
        error = b"error %d\n" % rank
        found = (tmp_path / out.format(rank)).read_bytes()
        if out == err:
            assert sorted(found) == sorted(text + error)
        else:
            assert found == text
            assert (tmp_path / err.format(rank)).read_bytes() == error


def test_files_that_cannot_be_written(run):
    done = run("-n", "2", "-o", "/proc/none/x.%t", "writer.py")
    assert done.returncode == 2
    assert b"/proc/none/x.0: cannot be written: " in done.stderr
    done = run("-n", "1", "-o", "x.%q", "writer.py")
    assert b"-o x.%q: expected %t or %r for the rank, got '%q'" in done.stderr


def test_much_output_of_many_ranks(run):
    program = (
        "from mpi4py import MPI\nimport sys\nrank = MPI.COMM_WORLD.rank\n"
        "for i in range(20):\n    sys.stdout.write(str(rank) * 50_000 + '\\n')\n"
        "    MPI.COMM_WORLD.barrier()\n"
    )
    done = run("-q", "-n", "8", "-l", "-c", program)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 160
    for line in lines:
        rank = line[1:2]
        assert line == b"[" + rank + b"] " + rank * 50_000


def test_a_closed_reader_ends_labelled_output(run, tmp_path: Path):
    import subprocess
    import sys

    from cli.conftest import environment

    line = f"{sys.executable} -m pysmpi run -q -n 2 -l -c 'print(5)' | true"
    done = subprocess.run(
        line, shell=True, capture_output=True, cwd=tmp_path, env=environment(), timeout=120
    )
    assert b"Traceback" not in done.stderr


@pytest.fixture
def report(status, tmp_path: Path, write):
    """The figures of a run: its hosts by rank."""
    write("ok.py", "pass\n")
    write("hosts", "cluster-n1:2\ncluster-n5 slots=3\n")

    def hosts(*words: str) -> list[str]:
        code, _, err = status("run", "--compute", "none", "--report", "r.json", *words, "ok.py")
        assert code == 0, err
        data = json.loads((tmp_path / "r.json").read_text())
        return [rank["host"].removeprefix("cluster-n") for rank in data["ranks"]]

    return hosts


@pytest.mark.parametrize(
    "words, hosts",
    [
        (["-host", "cluster-n3,cluster-n1:2"], "3 1 1"),
        (["--host", "cluster-n3", "--host", "cluster-n4"], "3 4"),
        (["-H", "cluster-n3,cluster-n4", "-n", "4"], "3 4 3 4"),
        (["-hosts", "cluster-n[8-10]"], "8 9 10"),
        (["-w", "cluster-n[1,4]", "--ntasks-per-node", "2"], "1 1 4 4"),
        (["--hostfile", "hosts"], "1 1 5 5 5"),
        (["-hostfile", "hosts", "-np", "3"], "1 1 5"),
        (["-f", "hosts", "-ppn", "1"], "1 5"),
        (["-N", "2", "-n", "6"], "0 0 0 1 1 1"),
        (["-N", "3"], "0 1 2"),
        (["--nodes=2", "--ntasks-per-node=2"], "0 0 1 1"),
        (["--ntasks", "2"], "0 0"),
    ],
)
def test_hosts(report, words, hosts):
    assert report(*words) == hosts.split()


@pytest.mark.parametrize("option", ["-map", "--display-map", "--display=map"])
def test_the_map_of_ranks(status, write, option):
    write("ok.py", "pass\n")
    code, _, err = status("run", "-n", "2", option, "-H", "cluster-n7", "ok.py")
    assert code == 0
    assert "pysmpi: rank 1 on cluster-n7, core 1\n" in err


def test_programs_in_a_file(status, write):
    write("p.py", "import sys\nfrom mpi4py import MPI\nprint(MPI.COMM_WORLD.rank, sys.argv[1:])\n")
    write("config", "# two programs\n-n 1 p.py one\n-n 2 \\\n p.py 'two words'\n")
    code, out, err = status("run", "-q", "-configfile", "config")
    assert code == 0, err
    assert sorted(out.splitlines()) == ["0 ['one']", "1 ['two words']", "2 ['two words']"]
    write("multi", "0 p.py first\n1-2 p.py %t:%o\n* p.py rest\n")
    for words in (
        ["-n", "4", "--multi-prog", "multi"],
        ["--multi-prog", "multi", "-n", "4"],
        ["--multi-prog", "-n", "4", "multi"],
        ["--multi-prog", "--compute", "none", "--ntasks=4", "multi"],
        ["--multi-prog", "multi", "-n", "4", "--compute", "none"],
        ["--multi-prog=multi", "-np", "4"],
    ):
        code, out, err = status("run", "-q", *words)
        assert code == 0, (words, err)
        assert sorted(out.splitlines()) == ["0 ['first']", "1 ['1:0']", "2 ['2:1']", "3 ['rest']"]


def test_the_working_directory(status, write, tmp_path: Path):
    (tmp_path / "sub").mkdir()
    write("sub/p.py", "import os\nprint(os.path.basename(os.getcwd()))\n")
    for option in ("-chdir", "-D", "--wdir"):
        code, out, err = status("run", "-q", option, "sub", "p.py")
        assert (code, out) == (0, "sub\n"), err


def test_the_wall_time_is_limited(run):
    endless = "import hashlib\nwhile True: hashlib.sha256(bytes(99))"
    done = run("-n", "2", "--timeout", "0.5", "-c", endless)
    assert done.returncode == 124
    assert b"pysmpi: ended after 0.5 s of wall time (--timeout)" in done.stderr
    # It may pass before the ranks run.
    done = run("-n", "2", "--timeout", "0.000001", "-c", endless)
    assert done.returncode == 124, done.stderr
    assert b"pysmpi: ended after 1e-06 s of wall time (--timeout)" in done.stderr
    assert run("-n", "1", "--timeout", "100", "ok.py").returncode == 0


def test_traces_of_smpirun(status, write, tmp_path: Path):
    write("ok.py", "from mpi4py import MPI\nMPI.COMM_WORLD.barrier()\n")
    assert status("run", "-n", "2", "-trace-ti", "-trace-file", "t", "ok.py")[0] == 0
    assert "barrier" in (tmp_path / "t").read_text()
    assert status("run", "-n", "2", "-trace", "ok.py")[0] == 0
    assert "%EventDef" in (tmp_path / "smpi_simgrid.trace").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["-v"], ["-verbose"], ["--log=smpi.thres:debug"], ["-keep-temps"], ["-tmpdir", "x"],
        ["-no-privatize"], ["--cpus-per-task", "2"], ["--mpi=pmix"], ["--cpu-bind=cores"], ["-u"],
        ["--report-bindings"], ["-J", "name"], ["--timestamp-output"],
    ],
)  # fmt: skip
def test_options_without_effect(status, write, words):
    write("ok.py", "pass\n")
    code, _, err = status("run", "-n", "1", *words, "ok.py")
    assert code == 0
    assert f"pysmpi: ignored, because ranks are simulated: {' '.join(words)}\n" in err


@pytest.mark.parametrize(
    "words, message",
    [
        (["-c", "2", "ok.py"], "-n N sets the number of ranks (-c of mpirun)"),
        (["-c4", "ok.py"], "-n N sets the number of ranks (-c of mpirun)"),
        (["-gdb", "ok.py"], "--pdb"),
        (["-wrapper", "valgrind", "ok.py"], "WRAPPER python -m pysmpi run"),
        (["-replay", "t", "ok.py"], "pysmpi replay FILE"),
        (["-trace-resource", "ok.py"], "--view FILE.html"),
        (["-rankfile", "r", "ok.py"], "--map-by"),
        (["-host", "a,,b", "ok.py"], 'expected "HOST"'),
        (["-host", "n[3-1]", "ok.py"], "expected numbers such as [0-3,7], got '3-1'"),
        (["-host", "moon", "ok.py"], 'no host "moon"'),
        (["-host"], "-host: expected a value after it"),
        (["-N", "0", "ok.py"], "-N: expected a number of nodes above 0, got '0'"),
        (["--timeout", "nan", "ok.py"], "--timeout: expected seconds above 0, got 'nan'"),
        (["--display", "tree", "ok.py"], "--display: expected map, got 'tree'"),
        (["-configfile"], "-configfile: expected a file after it"),
        (["-configfile", "nope"], "nope: cannot be read"),
        (["--multi-prog", "-n", "2"], "--multi-prog: expected a file after it"),
        (["--multi-prog", "gap", "-n", "2"], "gap: expected a program of rank 0, got none"),
        (["ok.py", ":", "-l", "ok.py"], "-l: expected before the first ':'"),
        (["okk.py"], "did you mean ok.py?"),
    ],
)
def test_what_is_refused(status, write, words, message):
    write("ok.py", "pass\n")
    write("gap", "1 ok.py\n")
    code, out, err = status("run", *words)
    assert (code, out) == (2, "")
    assert err.startswith("pysmpi: error: ") and err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    "words, message",
    [
        (["-n", "4", "prog.py"], "did you mean pysmpi run -n 4 prog.py?"),
        (["-np", "4", "prog.py"], "did you mean pysmpi run -np 4 prog.py?"),
        (["--platform", "graphene", "a b.py"], "pysmpi run --platform graphene 'a b.py'?"),
        (["mpiexec", "-n", "4", "prog.py"], "did you mean pysmpi run -n 4 prog.py?"),
        (["smpirun", "-np", "4", "./a b"], "did you mean pysmpi run -np 4 './a b'?"),
        (["smpicc", "-O2", "a.c"], "did you mean pysmpi cc -O2 a.c?"),
        (["mpif90", "a.f90"], "did you mean pysmpi fc a.f90?"),
    ],
)
def test_a_run_without_its_command(status, words, message):
    code, _, err = status(*words)
    assert code == 2 and message in err


def test_words_in_place_of_options(status):
    assert status("help", "models") == status("models", "--help")
    assert status("help") == status("--help")
    assert status("version") == status("--version")
    assert status("run", "-version") == status("--version")
    assert status("explain", "deadlock") == status("explain", "PSM101")
    assert status("explain", "Livelock")[1].startswith("# PSM106")


@pytest.mark.parametrize(
    "value, status",
    [
        ("2**70", 255), ("-(2**70)", 255), ("2**63", 255), ("2**40", 0), ("2**31", 0), ("-1", 255),
        ("256", 0), ("257", 1), ("True", 1), ("3.5", 1), ("None", 0), ("(1, 2)", 1), ("'x'", 1),
    ],
)  # fmt: skip
def test_exit_statuses_are_those_of_python(value, status, write):
    """Compared with the interpreter's own answer."""
    import subprocess
    import sys

    import pysmpi

    path = write("leave.py", f"import sys\nsys.exit({value})\n")
    assert subprocess.run([sys.executable, "-S", path], stderr=-3, timeout=300).returncode == status
    assert pysmpi.run(path, 1, check=False).exit_status == status


# The options of Hydra, MPICH's mpiexec, with their values; `-rankmap` is refused with a reason.
HYDRA = """
    -genv A=1 -genvlist A,B -genvnone -genvall -f hosts -hosts a,b -wdir . -env A=1 -envlist A
    -envnone -envall -n 2 -np 2 -memory-alloc-kinds system -launcher ssh -launcher-exec ssh
    -enable-x -disable-x -rmk slurm -topolib hwloc -bind-to core -map-by core -membind firsttouch
    -demux poll -disable-auto-cleanup -disable-hostname-propagation -errfile-pattern err.%r
    -gpus-per-proc 1 -hybrid-hosts -iface eth0 -info -localhost a -nameserver a:1
    -order-nodes ascending -outfile-pattern out.%r -pmi-port -ppn 2 -prepend-pattern %r:
    -prepend-rank -print-all-exitcodes -profile -skip-launch-node -usize 4 -verbose
"""


def test_every_option_of_hydra_is_known() -> None:
    from pysmpi.cli.arguments import split
    from pysmpi.cli.run import command
    from pysmpi.errors import UsageError

    arity = {
        name: 0 if getattr(param, "is_flag", False) else 1
        for param in command.params
        for name in param.opts
    }
    line = split([*HYDRA.split(), "app.py", "3"], arity)
    assert line.target == "app.py" and line.arguments == ["3"]
    assert "-demux poll" in line.ignored and "-pmi-port" in line.ignored
    assert split(["-pernode", "app.py"], arity).options == ["--map-by", "ppr:1:node"]
    assert split(["-prepend-pattern", "{%r of %%} ", "a.py"], arity).launcher.label == (
        "{{{rank} of %}} "
    )
    with pytest.raises(UsageError, match="--hostfile, --map-by and --rank-by"):
        split(["-rankmap", "0,0,1", "app.py"], arity)


def test_a_host_that_is_not_there_is_answered_with_one_that_is(status, write) -> None:
    write("app.py", "")
    code, _, err = status("run", "-n", "2", "--host", "a,b", "app.py")
    assert code == 2
    assert 'there is no host "a" among 64, such as "cluster-n0"; --platform gives' in err
