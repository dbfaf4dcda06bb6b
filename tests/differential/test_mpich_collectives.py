"""Collectives give the results of a real MPICH: one program under `mpiexec` and under pysmpi.

Cases are drawn at random and done in one run of each, because starting processes takes long. More
of them: PYSMPI_CASES=2000 pytest tests/differential/test_mpich_collectives.py
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path

import draws
import numpy as np
import pytest
import real_mpich
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "programs" / "collective_cases.py"
CASES = int(os.environ.get("PYSMPI_CASES", "100"))
SIZES = (1, 2, 3, 4, 5, 7, 8, 9)
BATCH = 9  # ranks of the real run
PLAIN = ("plain", "plain")

sys.path.insert(0, str(PROGRAM.parent))
import collective_choices as program  # noqa: E402

# Datatypes of two elements each, so that the two sides may use different ones.
SHAPES = st.sampled_from([name for name in program.EXTENTS if name != "plain"])


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
        "topology": draw(st.sampled_from(program.TOPOLOGIES)),
        "shapes": draw(st.just(PLAIN) | st.tuples(SHAPES, SHAPES)),
    }


def draw_cases(number: int) -> list[dict]:
    """The cases of one batch; hypothesis draws them, the same all day."""
    draws.say()
    found: list[dict] = []

    @seed(draws.SEED)
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
    """The cases, and the results of MPICH."""
    if not real_mpich.mpich():
        pytest.skip("no MPICH with mpi4py on this machine")
    folder = tmp_path_factory.mktemp("mpich")
    todo = draw_cases(CASES)
    (folder / "cases.json").write_text(json.dumps(todo))
    out = folder / "results.pickle"
    real_mpich.run(BATCH, PROGRAM, folder / "cases.json", out)
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
