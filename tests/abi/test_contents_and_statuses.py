"""Compiled programs: arguments of datatypes in the form of their constructor, empty statuses."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import pysmpi
from pysmpi.abi.interfaces import file_of
from pysmpi.cli.cc import line

SOURCE = Path(__file__).parent / "programs" / "contents.c"
# MPI 4.1, section 5.1.13: integers, addresses, large counts and datatypes.
EXPECTED = """\
dup 0 0 0 1: | |
contiguous 1 0 0 1: 3 | |
vector 3 0 0 1: 3 2 5 | |
create_hvector 2 1 0 1: 3 2 | 24 |
indexed 5 0 0 1: 2 2 3 4 9 | |
create_hindexed 3 2 0 1: 2 2 3 | 16 40 |
create_indexed_block 4 0 0 1: 2 2 4 9 | |
create_hindexed_block 2 2 0 1: 2 2 | 16 40 |
create_struct 3 2 0 2: 2 2 3 | 16 40 |
create_resized 0 2 0 1: | -8 24 |
create_subarray 5 0 0 1: 1 4 2 2 -1 | |
contiguous_c 0 0 1 1: | | 3
vector_c 0 0 3 1: | | 3 2 5
create_hvector_c 0 0 3 1: | | 3 2 24
indexed_c 0 0 5 1: | | 2 2 3 4 9
create_hindexed_c 0 0 5 1: | | 2 2 3 16 40
create_indexed_block_c 0 0 4 1: | | 2 2 4 9
create_hindexed_block_c 0 0 4 1: | | 2 2 16 40
create_struct_c 0 0 5 2: | | 2 2 3 16 40
create_resized_c 0 0 2 1: | | -8 24
create_subarray_c 2 0 3 1: 1 -1 | | 4 2 2
"""


@pytest.mark.skipif(
    shutil.which("cc") is None or not file_of("psm_ompi.so").exists(),
    reason="there is no C compiler",
)
def test_arguments_have_the_form_of_the_constructor(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "contents"
    subprocess.run(line("cc", [str(SOURCE), "-o", str(target)]), check=True)
    pysmpi.run(str(target), nprocs=1)
    assert capfd.readouterr().out == EXPECTED


@pytest.mark.skipif(
    shutil.which("cc") is None or not file_of("psm_ompi.so").exists(),
    reason="there is no C compiler",
)
@pytest.mark.parametrize("interface", ["mpich", "openmpi", "standard"])
def test_statuses_of_null_and_idle_requests_are_empty(
    interface: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = SOURCE.with_name("empty_status.c")
    target = tmp_path / "empty"
    words = ["--abi", interface, str(source), "-o", str(target)]
    subprocess.run(line("cc", words), check=True)
    pysmpi.run(str(target), nprocs=1)
    assert capfd.readouterr().out == "11111110 0 5 55555555\n"
