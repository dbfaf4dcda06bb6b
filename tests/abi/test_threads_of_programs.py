"""Threads of compiled programs compute while ranks take turns; their calls of MPI end the job."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pysmpi.cli.cc import line

pytest.importorskip(
    "pysmpi.abi.engine", reason="pysmpi was installed without a C compiler, or not on Linux"
)
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler", allow_module_level=True)

SOURCE = Path(__file__).parent / "programs" / "workers.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    target = str(tmp_path_factory.mktemp("workers") / "workers")
    subprocess.run(line("cc", ["-g", "-pthread", str(SOURCE), "-o", target]), check=True)
    return target


def line_of(text: str) -> int:
    return next(i for i, each in enumerate(SOURCE.read_text().splitlines(), 1) if text in each)


FAULT = f"workers.c:{line_of('/* the fault */')} in act"


@pytest.mark.parametrize(
    ("what", "status", "out", "report"),
    [
        ("", 0, "1 160000 2\n" * 3, ""),
        ("print", 0, "1 160000 2\n" * 3, None),
        ("idle", 0, "", ""),
        ("busy", 0, "", ""),
        ("call", 1, "", "rank 1 called MPI from another thread than its main one"),
        ("fault", 139, "", FAULT),
        ("exit", 3, "", "ended by sys.exit(9)"),
    ],
)
def test_threads_across_calls(
    program: str, what: str, status: int, out: str, report: str | None
) -> None:
    command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", "--compute", "none"]
    done = subprocess.run([*command, program, what], capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout) == (status, out), done.stderr
    if report is None:
        assert sorted(done.stderr) == sorted("".join(str(k) for k in range(1, 9)) * 6)
    elif report:
        assert report.replace("{}", "workers.c") in done.stderr.replace(
            str(SOURCE.parent) + "/", ""
        )
    else:
        assert done.stderr == ""
