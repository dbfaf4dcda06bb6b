"""The start of compiled programs: what a run loads and starts, and the files of its ranks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pysmpi
from pysmpi.abi.process import CompiledProcess
from pysmpi.cli.cc import line

pytest.importorskip(
    "pysmpi.abi.engine", reason="pysmpi was installed without a C compiler, or not on Linux"
)
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler", allow_module_level=True)

SOURCE = r"""
#include <mpi.h>
#include <stdio.h>

static int mine = 5;
int zero;

int main(int argc, char **argv)
{
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mine += rank;
    zero -= rank;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (mine + zero != 5 || sum != 5 * size + size * (size - 1) / 2)
        printf("rank %d: %d %d %d\n", rank, mine, zero, sum);
    if (rank == 0)
        printf("end");
    MPI_Finalize();
    return 0;
}
"""
# Python runs the command line, and writes which modules it has loaded and which processes started.
WATCHED = """
import json, sys
started = []
def watch(event, arguments):
    if event in ("os.posix_spawn", "os.fork", "os.exec", "subprocess.Popen"):
        started.append(event)
sys.addaudithook(watch)
from pysmpi.__main__ import main
try:
    main()
finally:
    with open(sys.argv[-1], "w") as stream:
        json.dump([sorted(sys.modules), started], stream)
"""
# Of the standard library and of other distributions, and packages of pysmpi. A module that a run of
# a compiled program needs from now on costs each such run its time.
UNUSED = (
    "asyncio", "bz2", "concurrent", "difflib", "email", "http", "importlib.metadata", "logging",
    "lxml", "lzma", "matplotlib", "multiprocessing", "networkx", "scipy", "selectors",
    "shutil", "socket", "subprocess", "tempfile", "unittest", "yaml", "zipfile",
    *(f"pysmpi.{name}" for name in (
        "analysis", "calibrate", "checkers", "cluster", "coherence", "debugging", "explore",
        "faults", "pytest_plugin", "record", "replay", "sweeps", "trace",
    )),
)  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("start")
    (folder / "start.c").write_text(SOURCE)
    target = str(folder / "start")
    subprocess.run(line("cc", ["-g", str(folder / "start.c"), "-o", target]), check=True)
    return target


def test_a_run_loads_what_it_needs_and_starts_no_process(program: str, tmp_path: Path) -> None:
    result = tmp_path / "loaded.json"
    words = ["run", "-n", "4", "--compute", "none", program, str(result)]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *words], capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.returncode) == ("end", 0), done.stderr
    modules, started = json.loads(result.read_text())
    assert started == []
    assert "pysmpi.abi.program" in modules
    loaded = [name for name in UNUSED if name in modules]
    loaded += [name for name in modules if name.startswith(tuple(f"{one}." for one in UNUSED))]
    assert loaded == []


@pytest.mark.parametrize("again", [True, False])
def test_ranks_have_their_own_data_with_one_file_and_with_one_each(
    program: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    again: bool,
) -> None:
    """The C library decides whether it loads a file again: without this, each rank has a copy."""
    files: list[str] = []
    load: Callable[..., Any] = CompiledProcess.load

    def noted(self: CompiledProcess, *arguments: Any) -> Any:
        files.append(os.readlink(f"/proc/self/fd/{arguments[-1]}"))
        bases, possible = load(self, *arguments)
        assert possible
        numbers.add(os.fstat(arguments[-1]).st_ino)
        return bases, again

    numbers: set[int] = set()
    monkeypatch.setattr(CompiledProcess, "load", noted)
    for _ in range(2):
        pysmpi.run(program, nprocs=5, compute="none")
    assert capfd.readouterr().out == "endend"
    assert len(files) == 10 and all("memfd:start" in one for one in files)
    assert (len(numbers) == 2) is again
    open_files = []
    for number in os.listdir("/proc/self/fd"):
        try:
            open_files.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue  # that of the list
    assert not any("memfd:start" in one for one in open_files)
