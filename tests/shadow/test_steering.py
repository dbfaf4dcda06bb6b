"""Decisions by a rank's own arrays, by sizes, and by results of skipped functions."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from pysmpi.shadow.decisions import Steering, decisions
from tests.shadow.steered.__main__ import PROGRAMS, SAID, cell, run

OWN = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
x = np.random.default_rng(comm.rank).random(1000)
while x.max() > 1e-3:
    x = x * 0.5
    comm.Barrier()
"""
# Programs whose calls or work depend on sizes that follow from values; `x` holds random numbers.
SIZES = {
    "mask": "y = x[x > 0.5]\nfor i in range(len(y)): comm.Barrier()",
    "flatnonzero": "y = np.flatnonzero(x > 0.5)\nwhile y.size > k: k += 1; comm.Barrier()",
    "unique": "y = np.unique(x)\nif len(y) > 5: comm.Barrier()",
    "list": "y = [one for one in x if one > 0.5]\nif len(y) > 5: comm.Barrier()",
    "function": "def pick(a):\n    return a[a > 0.5]\ny = pick(x)\nif len(y) > 5: comm.Barrier()",
    "array": "y = np.nonzero(x)[0]\nz = np.zeros(len(y))",
}
FIXED = {
    "size": "if len(x) > 5: comm.Barrier()",
    "slice": "y = x[3:]\nif y.size > 5: comm.Barrier()",
    "computed": "y = np.sqrt(x) + 1.0\nfor i in range(y.shape[0]): comm.Barrier()",
    "printed": "if x.max() > 0.5: print('large')",
    "few": "z = np.random.random(3)\nif z.max() > 0.5: comm.Barrier()",
}
HEAD = """
import numpy as np
from mpi4py import MPI
comm, k = MPI.COMM_WORLD, 0
x = np.random.default_rng(comm.rank).random(1000)
"""


def found(tmp_path: Path, text: str, **options: Any) -> list[int]:
    file = tmp_path / "program.py"
    file.write_text(text)
    return [one.line for one in decisions(str(file), **options)]


def test_own_arrays_decide_only_where_they_are_folded(tmp_path: Path) -> None:
    assert found(tmp_path, OWN) == []
    assert found(tmp_path, OWN, arrays=True) == [6]


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_follow_from_values_decide(name: str, tmp_path: Path) -> None:
    assert found(tmp_path, HEAD + SIZES[name], arrays=True)


@pytest.mark.parametrize("name", FIXED)
def test_sizes_that_do_not_are_no_decisions(name: str, tmp_path: Path) -> None:
    assert found(tmp_path, HEAD + FIXED[name], arrays=True) == []


def test_results_of_skipped_functions_decide(tmp_path: Path) -> None:
    text = HEAD + "def f(a):\n    return a\nif f(x)[0] > 0.5: comm.Barrier()"
    assert found(tmp_path, text) == []
    assert found(tmp_path, text, functions={"f"})
    assert found(tmp_path, text, functions={"g"}) == []


def test_times_decide_where_compute_is_measured(tmp_path: Path) -> None:
    text = (
        HEAD + "t = MPI.Wtime()\nd = comm.allgather(MPI.Wtime() - t)\nif max(d) > 1: comm.Barrier()"
    )
    assert found(tmp_path, text) == []
    assert found(tmp_path, text, clocks=True)
    assert found(tmp_path, HEAD + "t = MPI.Wtime()\nprint(MPI.Wtime() - t)", clocks=True) == []


def test_functions_that_steer() -> None:
    steering = Steering()
    text = (
        HEAD
        + SIZES["function"]
        + "\nx = scale(x)\ndef scale(a): return 2 * a\ndef show(a): pass\nshow(y)"
    )
    steering.add("program", ast.parse(text))
    assert "pick" in steering
    assert "scale" in steering
    assert "show" not in steering


def test_functions_steer_through_reductions() -> None:
    steering = Steering()
    text = HEAD + "moved = count(x)\nwhile comm.allreduce(moved) > 0: moved = count(x)"
    steering.add("program", ast.parse(text))
    assert "count" in steering


def test_a_mesh_that_is_refined_says_that_folding_steers_it() -> None:
    seconds, status, summary = run("refined_mesh", ("--fold", "4KiB", "--compute", "100us"), 2)
    assert status == 0
    assert SAID.search(summary)
    assert seconds > 0.0


def test_sampling_leaves_out_what_steers() -> None:
    _, status, summary = run("refined_mesh", ("--sample", "auto", "--compute", "100us"), 2)
    assert status == 0
    assert "sampled numpy:sort" not in summary
    assert "sampled __main__:refine" not in summary


def test_a_cell_is_right_or_said() -> None:
    assert cell(1.0, 1.01, 0, "") == ("-1.0%", True)
    assert cell(1.0, 2.0, 0, "") == ("-50.0%", False)
    assert cell(1.0, 2.0, 0, "the program decides by its data, which is wrong") == (
        "-50.0%, said", True,
    )  # fmt: skip
    assert cell(0.0, 1.0, 1, "")[1]
    assert not cell(0.0, 1.0, 70, "")[1]
    assert len(PROGRAMS) >= 12
