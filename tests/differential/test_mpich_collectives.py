"""Collectives give what a real MPICH gives: the same program under `mpiexec` and under pysmpi.

Cases are drawn at random and done in one run of each, since starting processes takes long. More
of them: PYSMPI_CASES=2000 pytest tests/differential/test_mpich_collectives.py
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "programs" / "collective_cases.py"
CASES = int(os.environ.get("PYSMPI_CASES", "150"))
SIZES = (1, 2, 3, 4, 5, 7, 8, 9)
BATCH = 9  # ranks of the real run

sys.path.insert(0, str(PROGRAM.parent))
import collective_choices as program  # noqa: E402


@st.composite
def cases(draw: st.DrawFn) -> dict:
    """A collective call of up to nine ranks."""
    op = draw(st.sampled_from(program.OPERATIONS))
    dtype = draw(st.sampled_from(program.DTYPES))
    return {
        "size": draw(st.sampled_from(SIZES)),
        "op": op,
        "count": draw(st.sampled_from((0, 1, 2, 5, 33, 700, 5000))),
        "root": draw(st.integers(0, 8)),
        "in_place": draw(st.booleans()),
        "dtype": dtype,
        "operator": draw(st.sampled_from(program.operators(dtype))),
        "form": draw(st.sampled_from(("blocking", "nonblocking", "persistent"))),
        "counts": draw(st.lists(st.sampled_from((0, 1, 3, 40)), min_size=1, max_size=9)),
    }


def mpich() -> bool:
    """Whether mpiexec starts an mpi4py of MPICH."""
    if shutil.which("mpiexec") is None:
        return False
    code = "from mpi4py import MPI; print(MPI.Get_library_version()[:5], MPI.COMM_WORLD.size)"
    done = subprocess.run(
        ["mpiexec", "-n", "2", sys.executable, "-c", code],
        capture_output=True, text=True, timeout=60, env=_environment(),
    )  # fmt: skip
    # The two ranks may print at the same time.
    return done.stdout.count("MPICH") == 2 and done.stdout.count(" 2") == 2


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def draw_cases(number: int) -> list[dict]:
    """The cases of one batch; hypothesis draws them."""
    found: list[dict] = []

    @seed(20)
    @settings(
        max_examples=number, phases=(Phase.generate,), database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(cases())
    def collect(case: dict) -> None:
        found.append(case)

    collect()
    return found


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> tuple[list[dict], list]:
    """The cases, and what MPICH gives."""
    if not mpich():
        pytest.skip("no MPICH with mpi4py on this machine")
    folder = tmp_path_factory.mktemp("mpich")
    todo = draw_cases(CASES)
    (folder / "cases.json").write_text(json.dumps(todo))
    out = folder / "results.pickle"
    command = ["mpiexec", "-n", str(BATCH), sys.executable, str(PROGRAM)]
    done = subprocess.run(
        [*command, str(folder / "cases.json"), str(out)],
        capture_output=True, text=True, timeout=1200, env=_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return todo, pickle.loads(out.read_bytes())


@pytest.mark.parametrize("selector", ["ompi", "mpich4"])
def test_same_results(real, selector: str) -> None:
    import pysmpi

    todo, expected = real
    result = pysmpi.run(work, BATCH, args=(todo,), selector=selector, compute="none")
    for rank, (theirs, ours) in enumerate(zip(expected, result.returns, strict=True)):
        assert len(theirs) == len(ours)
        for (number, want), (same, got) in zip(theirs, ours, strict=True):
            assert number == same
            case = todo[number]
            np.testing.assert_array_equal(
                np.frombuffer(got, case["dtype"]), np.frombuffer(want, case["dtype"]),
                err_msg=f"rank {rank}: {case}",
            )  # fmt: skip


def work(todo: list[dict]) -> list:
    import importlib

    cases = importlib.import_module("collective_cases")
    return [(number, array.tobytes()) for number, array in cases.results(todo)]
