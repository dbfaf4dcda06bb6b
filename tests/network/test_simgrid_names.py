"""Every option of SimGrid acts, is refused, or is named in the summary as without effect."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.platform.config import COLLECTIVES, OPTIONS, Settings, canonical
from pysmpi.platform.simgrid_names import FOREIGN, OLD_SPELLINGS

DATA = Path(__file__).parents[1] / "data" / "simgrid_options.json"
# By version: the options that its sources, its help and its documentation name.
KNOWN = json.loads(DATA.read_text())
TWO = """\
name: two
config: {smpi/wtime: 0}
hosts: [{name: a}, {name: b}]
links: [{name: l, bandwidth: 1MBps, latency: 10ms}]
routes: [{from: a, to: b, via: [l]}]
"""


@pytest.mark.parametrize("version", KNOWN)
def test_every_name_of_a_version_has_a_row(version):
    assert len(KNOWN[version]) > 130
    for name in KNOWN[version]:
        known = canonical(name, version)
        assert known in OPTIONS or known in FOREIGN or known.removeprefix("smpi/") in COLLECTIVES


def test_old_spellings_mean_options():
    for old, new in OLD_SPELLINGS.items():
        assert canonical(old, "") == new == canonical(new, "")
    assert not FOREIGN.keys() & OPTIONS.keys() and not FOREIGN.keys() & OLD_SPELLINGS.keys()
    # Those of SimGrid's files that are old, too.
    settings = Settings({"smpi/bw_factor": "0:0.5", "contexts/guard_size": "64"})
    assert settings.value("smpi/bw-factor").factor(1) == 0.5
    assert settings.foreign == ["contexts/guard-size"]


@pytest.mark.parametrize("row", FOREIGN.values(), ids=str)
def test_a_row_says_what_happens(row):
    assert row.line().strip("; ")
    if row.harmless is not None:
        with pytest.raises(UsageError, match=f"^{row.name}: .*'surprise'; [^;]+$"):
            Settings({row.name: "surprise"})
    for value in ("1",) if row.harmless is None else row.harmless:
        assert Settings({row.name: value}).foreign == [row.name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host/model", "ptask_L07"), ("network/solver", "bmf"), ("cpu/solver", "fairbottleneck"),
        ("maxmin/concurrency-limit", "100"), ("smpi/comp-adjustment-file", "missing.csv"),
        ("plugin", "host_dvfs"), ("plugin", "cmonkey"), ("cmonkey/time", "3"),
        ("network/latency-factor", ""), ("network/bandwidth-factor", ""), ("smpi/wtime", ""),
        ("smpi/np", "4"), ("smpi/buffering", "some"), ("tracing/smpi/format", "OTF"),
        ("network/TCP-gamma", ""), ("network/crosstraffic", ""),
    ],
)  # fmt: skip
def test_values_that_would_change_something_are_refused(name, value):
    with pytest.raises(UsageError, match=name):
        pysmpi.run(lambda: None, 1, compute="none", cfg={name: value})


def test_factors_and_overheads_of_smpi_may_be_empty():
    empty = Settings({"smpi/lat-factor": "", "smpi/bw-factor": "", "smpi/os": ""})
    assert empty.value("smpi/lat-factor").factor(100) == 1.0
    assert empty.value("smpi/bw-factor").factor(100) == 1.0
    assert empty.value("smpi/os").affine(100) == 0.0


def run(tmp_path, *words, program="from mpi4py import MPI"):
    path = tmp_path / "prog.py"
    path.write_text(program)
    return subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-n", "2", *words, str(path)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_summary_names_what_has_no_effect(tmp_path):
    machine = tmp_path / "two.yaml"
    machine.write_text(TWO.replace("wtime: 0", "wtime: 0, contexts/stack_size: 8, tracing: yes"))
    said = run(tmp_path, "--platform", str(machine), "--cfg", "cpu/optim:Full").stderr
    assert "pysmpi: without effect: contexts/stack-size, cpu/optim, tracing (why: " in said
    assert "without effect" not in run(tmp_path, "--cfg", "smpi/wtime:0").stderr


@pytest.mark.slow
def test_traces_and_leaks_are_those_of_the_command(tmp_path):
    program = "from mpi4py import MPI\nMPI.COMM_WORLD.Dup()\nMPI.COMM_WORLD.Barrier()\n"
    ended = run(
        tmp_path, "--cfg", "tracing:yes", "--cfg", "tracing/filename:run.trace",
        "--cfg", "smpi/list-leaks:5", program=program,
    )  # fmt: skip
    assert (tmp_path / "run.trace").read_text().startswith("%EventDef")
    assert "PSM1" in ended.stderr and "never freed" in ended.stderr
    run(tmp_path, "--cfg", "tracing/smpi:yes", "--cfg", "tracing/smpi/format:TI", program=program)
    assert "init" in (tmp_path / "simgrid.trace").read_text()


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    return {"platform": path, "compute": "none", "map_by": "node"}


def test_without_buffers_every_send_waits_for_its_receive(two):
    def main():
        import time

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank == 0:
            comm.Send(bytearray(1), 1)
            return MPI.Wtime()
        time.sleep(1)
        return comm.Recv(bytearray(1), 0)

    assert pysmpi.run(main, 2, **two).returns[0] < 0.5
    cfg = {"smpi/buffering": "infty"}
    assert pysmpi.run(main, 2, cfg=cfg, **two).returns[0] < 0.5
    cfg = {"smpi/buffering": "zero"}
    assert pysmpi.run(main, 2, cfg=cfg, **two).returns[0] == pytest.approx(1.01, rel=1e-2)


@pytest.mark.parametrize(
    ("call", "waits"),
    [
        ("comm.Bcast(bytearray(1), 0)", True), ("comm.Gather(b'1', bytearray(2), 1)", True),
        ("comm.Reduce(b'1', bytearray(1), MPI.MAX, 1)", True),
        ("comm.Scatter(bytearray(2), bytearray(1), 0)", True),
        ("comm.Scan(b'1', bytearray(1), MPI.MAX)", True),
        ("comm.Exscan(b'1', bytearray(1), MPI.MAX)", True),
        ("comm.Gatherv(b'1', bytearray(2), 1)", True),
        ("comm.Scatterv(bytearray(2), bytearray(1), 0)", True),
        ("comm.Ibcast(bytearray(1), 0).Wait()", False),
    ],
)  # fmt: skip
def test_collectives_may_wait_for_all_ranks(two, call, waits):
    def main(call):
        import time

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank == 1:
            time.sleep(1)
        exec(call, {"comm": comm, "MPI": MPI})
        return MPI.Wtime()

    options = {"args": (call,), "selector": "default", **two}
    assert pysmpi.run(main, 2, **options).returns[0] < 1
    cfg = {"smpi/barrier-collectives": "yes"}
    dates = pysmpi.run(main, 2, cfg=cfg, **options).returns
    assert (dates[0] >= 1) == waits
    assert dates[1] < 1.05  # the wait itself takes no time


@pytest.mark.slow
def test_platform_check_refuses_what_run_refuses(tmp_path):
    path = tmp_path / "bad.yaml"
    bad = {
        "smpi/os": "NaN:-1:nan", "smpi/wtime": "-5", "network/model": "nope", "loggp/L": "inf",
        "smpi/bcast": "nope", "disk/scope": "moon", "host/model": "ptask_L07",
        "smpi/host-speed": "fast",
    }  # fmt: skip
    path.write_text(TWO.replace("{smpi/wtime: 0}", json.dumps(bad)))
    ended = subprocess.run(
        [sys.executable, "-m", "pysmpi", "platform", "check", str(path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    lines = ended.stderr.splitlines()
    assert ended.returncode == 2 and len(lines) == len(bad)
    for name, line in zip(bad, lines):
        assert line.startswith(f"pysmpi: error: {path}: ")
        assert name.removeprefix("smpi/") in line
        with pytest.raises(UsageError):
            path.write_text(TWO.replace("{smpi/wtime: 0}", json.dumps({name: bad[name]})))
            pysmpi.run(lambda: None, 1, platform=path)
