"""`getopt` and its kin in compiled programs: as in a program alone, in each rank for itself."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pysmpi
from pysmpi.abi.interfaces import file_of
from pysmpi.cli.cc import line

SOURCE = Path(__file__).parent / "programs" / "options.c"
STRINGS = ("ab:c::", "+ab:c::", "-ab:c::", ":ab:", "W;ab:", "", "b:a-")
WORDS = (
    "-a", "-b", "-bx", "-c", "-cy", "-abz", "-ac", "file", "-", "--", "-x", "-n", "-bv", "other",
    "--name", "--name=5", "--nu", "--n=1", "--na", "--verb", "--ver", "--very=2", "--maybe",
    "--may=3", "--unknown", "-name", "-verbose", "-Wname=4", "-W", "--a", "--=", "-axb", "",
)  # fmt: skip


def lists(number: int) -> list[list[str]]:
    """Lists of words: the kind of the function, the option string, and arguments."""
    draw = random.Random(number)
    return [
        [
            draw.choice("gqlo") + draw.choice(STRINGS),
            *draw.choices(WORDS, k=draw.randint(0, 7)),
        ]
        for _ in range(number)
    ]


@pytest.mark.skipif(
    shutil.which("cc") is None or not file_of("psm_ompi.so").exists(),
    reason="there is no C compiler",
)
@pytest.mark.skipif(sys.platform != "linux", reason="the C library of GNU is compared")
def test_options_are_those_of_the_rank(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = [word for some in lists(400) for word in (*some, ";")][:-1]
    alone = tmp_path / "alone"
    subprocess.run(["cc", "-w", "-DALONE", str(SOURCE), "-o", str(alone)], check=True)
    done = subprocess.run([alone, *words], capture_output=True, text=True, check=True)
    expected = done.stdout, done.stderr.replace("alone\n", "options\n")
    assert len(done.stdout.splitlines()) == 400
    assert "ambiguous" in done.stderr
    for model, flags in (("copied", []), ("shared", ["-fPIC"])):
        target = tmp_path / model / "options"
        target.parent.mkdir()
        subprocess.run(line("cc", [*flags, str(SOURCE), "-o", str(target)]), check=True)
        pysmpi.run(str(target), nprocs=1, args=words)
        assert capfd.readouterr() == expected
    # Ranks with different words take turns.
    pysmpi.run(str(target), nprocs=3, args=words)
    found = capfd.readouterr()
    for one, every in zip(expected, found, strict=True):
        assert sorted(3 * one.splitlines()) == sorted(every.splitlines())
