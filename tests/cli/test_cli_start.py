"""The modules that a plain run loads: a start has to be short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pysmpi.__main__ import _hash_seed

# Modules that only some options need, and that take long to load.
LATER = (
    "pysmpi.abi.elf", "pysmpi.trace.recorder", "pysmpi.trace.formats",
    "pysmpi.analysis.observation", "unittest",
)  # fmt: skip
COMPRESSION = {"bz2", "lzma", "shutil", "tempfile"}  # the last two load the others
PACKAGES = "import click, greenlet, numpy, yaml"


def test_a_plain_run_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    program = tmp_path / "hello.py"
    program.write_text("from mpi4py import MPI\nprint(MPI.COMM_WORLD.rank)\n")
    loaded = loaded_by("-m", "pysmpi", "run", "-n", "2", str(program))
    assert "pysmpi.job.job" in loaded
    assert loaded.isdisjoint(LATER)
    assert not COMPRESSION & loaded - loaded_by("-c", PACKAGES)


def loaded_by(*words: str) -> set[str]:
    """The modules that a command of Python loads."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0
    return set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE))


@pytest.mark.parametrize("package", ["click", "greenlet"])
def test_a_package_that_is_missing_is_named_and_is_no_bug(tmp_path: Path, package: str) -> None:
    program = tmp_path / "hello.py"
    program.write_text("print('hello')\n")
    hidden = (
        "import runpy, sys\n"
        f"class Hidden:\n"
        f"    def find_spec(self, name, *rest):\n"
        f"        if name == {package!r}:\n"
        f"            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        f"sys.argv = ['pysmpi', 'run', {str(program)!r}]\n"
        "runpy.run_module('pysmpi', run_name='__main__')\n"
    )
    command = [sys.executable, "-c", hidden]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr.startswith(f"pysmpi: error: {sys.executable} has no package {package!r}")
    assert "pip install" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "seed"),
    [
        (["run", "--seed", "7", "program.py"], "7"),
        (["run", "--seed=7"], "7"),
        (["run", "--seed", "4294967295"], "4294967295"),
        (["run", "--seed", "4294967296"], "0"),
        (["run", "--seed=4294967303"], "7"),
        (["run", "--seed", "-1"], "4294967295"),
        (["run", "--seed"], None),
        (["run", "--seed", "one"], None),
        (["run", "-n", "2"], None),
        (["run", "program.py", "--seed", "7"], None),  # an argument of the program
    ],
)
def test_each_seed_stands_for_a_hash_seed_of_python(words: list[str], seed: str | None) -> None:
    """Python accepts 0 to 4294967295."""
    assert _hash_seed(words) == seed
