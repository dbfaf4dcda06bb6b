"""Random programs in C give the same data under pysmpi and MPICH, in each binary interface."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from pysmpi.abi.interfaces import INTERFACES, file_of
from tests.random_c.__main__ import Comparison
from tests.random_c.translation import translated

sys.path.insert(0, str(Path(__file__).parents[1] / "differential"))

from test_random_programs import draw_programs  # noqa: E402

PROGRAMS = int(os.environ.get("PYSMPI_PROGRAMS", "120")) // 6


def test_a_program_is_translated_to_calls() -> None:
    step = {
        "do": "bcast", "comm": 1, "a": 2, "b": 0, "count": 3, "salt": 4, "dtype": "f8",
        "in_place": False, "kind": "int", "form": "persistent", "counts": [1, 5],
        "type": ["vector", 2, 1, 3, ["struct", [1, 2], ["i4", "u8"]]],
    }  # fmt: skip
    comm = {"kind": "split", "a": 1, "b": 2, "parent": 7}
    text = translated([{"comms": [comm], "steps": [step]}])
    assert "MPI_Type_create_struct(2, (int[]){1, 2}, at_t" in text
    assert "MPI_Type_vector(2, 1, 4, t" in text
    assert 'comms[1] = communicator(comms[0], "split", 1, 2);' in text
    assert ".counts = {1, 5}, .number_of_counts = 2, .dtype = F8, .type = type_0" in text


@pytest.mark.peers
@pytest.mark.skipif(
    not all(shutil.which(name) for name in ("cc", "mpiexec"))
    or not file_of("psm_ompi.so").exists(),
    reason="there is no C compiler or no real MPI to compare with",
)
def test_same_data_in_c(tmp_path: Path) -> None:
    comparison = Comparison(tmp_path, list(INTERFACES))
    found = comparison.compare(draw_programs(PROGRAMS, 77), 3, ("--compute", "none"))
    assert not found, "\n".join(found)
