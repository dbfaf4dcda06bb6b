"""Files that cannot be written: each command names the file, with the status 2."""

from __future__ import annotations

import contextlib
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import environment

LIMIT = 4096  # bytes of a file: more is refused as on a full disk

PROGRAM = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
for step in range(200):
    comm.sendrecv(bytes(100), 1 - comm.rank, source=1 - comm.rank)
    comm.allreduce(step)
"""
STUDY = "program: ok.py\nranks: [1, 2, 3, 4, 5, 6]\noptions: {compute: none}\n"
FORMATS = ["jsonl", "json", "csv", "ti", "paje", "goal", "parquet", "jsonl.gz"]
RUN = ["run", "-q", "-n", "2", "--compute", "none"]
WRITERS = {
    **{f"run {kind}": ([*RUN, "--trace", f"out.{kind}", "p.py"], f"out.{kind}")
       for kind in FORMATS},
    **{f"convert {kind}": (["trace", "convert", "t.jsonl", f"out.{kind}"], f"out.{kind}")
       for kind in FORMATS},
    **{f"replay {kind}": (["replay", "-q", "t.jsonl", "--trace", f"out.{kind}"], f"out.{kind}")
       for kind in FORMATS},
    "page": (["view", "t.jsonl", "-o", "out.html"], "out.html"),
    "picture": (["view", "t.jsonl", "-o", "out.svg"], "out.svg"),
    "page of a run": ([*RUN, "--view", "out.html", "p.py"], "out.html"),
    "page of a replay": (["replay", "-q", "t.jsonl", "--view", "out.html"], "out.html"),
    "platform": (["platform", "convert", "many.yaml", "-o", "out.xml"], "out.xml"),
    "drawing": (["platform", "draw", "graphene", "-o", "out.svg"], "out.svg"),
    "algorithm": (["collectives", "draw", "bcast", "binomial_tree", "-o", "out.svg"], "out.svg"),
    "transitions": (["coherence", "study", "sr1", "--export", "out.aut"], "out.aut"),
    "report": ([*RUN, "--report", "/dev/full", "p.py"], "--report /dev/full"),
    "trace": ([*RUN, "--trace", "/dev/full", "--trace-format", "csv", "p.py"], "--trace /dev/full"),
    "compute": (["run", "-q", "-n", "2", "--record-compute", "/dev/full", "p.py"], "/dev/full"),
    "labels in files": ([*RUN, "-o", "/dev/full", "loud.py"], "/dev/full"),
    "journal": (["sweep", "full.yaml", "-o", "results"], "journal.jsonl"),
}  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> bytes:
    from pysmpi.cli.main import status_of

    folder = tmp_path_factory.mktemp("trace")
    (folder / "p.py").write_text(PROGRAM)
    assert status_of([*RUN, "--trace", str(folder / "t.jsonl"), str(folder / "p.py")]) == 0
    return (folder / "t.jsonl").read_bytes()


@contextlib.contextmanager
def small_disk():
    """Files of this process cannot grow beyond the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # Python would keep the part of a module's bytecode that the disk takes.
    writes, sys.dont_write_bytecode = not sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
        sys.dont_write_bytecode = not writes


@pytest.mark.parametrize("name", WRITERS)
def test_the_file_is_named(name, status, write, tmp_path: Path, trace):
    words, file = WRITERS[name]
    if file.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is an extra")
    write("p.py", PROGRAM)
    write("loud.py", "import os\nos.write(1, b'x' * 100)\n")
    write("ok.py", "pass\n")
    write("full.yaml", STUDY)
    hosts = "\n".join(f"- {{name: host-{i}, speed: 1Gf}}" for i in range(200))
    write("many.yaml", f"name: many\nrouting: full\nhosts:\n{hosts}\n")
    (tmp_path / "t.jsonl").write_bytes(trace)
    if name == "journal":
        (tmp_path / "results").mkdir()
        (tmp_path / "results" / "journal.jsonl").symlink_to("/dev/full")
    with small_disk():
        code, _, err = status(*words)
    last = err.rstrip("\n").rpartition("\n")[2]
    assert code == 2, err
    assert last.startswith("pysmpi: error: ") and file in last, err
    assert "Traceback" not in err
    temporary = [path.name for path in tmp_path.iterdir() if path.name.startswith(".pysmpi-")]
    assert not temporary


def test_an_archive_of_otf2(tmp_path: Path, trace):
    """The library writes small files, and has messages of its own."""
    pytest.importorskip("otf2", reason="otf2 is an extra")
    (tmp_path / "t.jsonl").write_bytes(trace)
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "trace", "convert", "t.jsonl", "out.otf2"],
        capture_output=True, text=True, cwd=tmp_path, timeout=120,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )  # fmt: skip
    assert done.returncode == 2
    assert "out.otf2: cannot be written: the library otf2 could not write" in done.stderr
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr


def test_a_speed_that_cannot_be_kept_is_not_called_kept(status, monkeypatch, tmp_path: Path):
    from pysmpi.time import host_speed

    monkeypatch.setattr(host_speed, "LONG_BLOCKS", 3)
    monkeypatch.setattr(host_speed, "cache_file", lambda: Path("/proc/none/speed.json"))
    code, out, _ = status("calibrate", "host")
    assert code == 0
    assert "cannot be kept in /proc/none/speed.json: " in out
    assert '"kept_in": null' in status("calibrate", "host", "--json")[1]
