"""The NAS Parallel Benchmarks verify by NPB's own values, on simulated and on real ranks."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

APPS = Path(__file__).resolve().parents[2] / "apps"

CASES = [
    pytest.param(4, "npb_ep.py", [], id="ep"),
    pytest.param(4, "npb_is.py", [], id="is"),
    pytest.param(4, "npb_ft.py", [], id="ft"),
    pytest.param(4, "npb_mg.py", [], id="mg"),
    pytest.param(4, "npb_lu.py", [], id="lu"),
    pytest.param(5, "npb_dt.py", ["BH"], id="dt-bh"),
    pytest.param(5, "npb_dt.py", ["WH"], id="dt-wh"),
    pytest.param(12, "npb_dt.py", ["SH"], id="dt-sh"),
]


def results(output: str) -> list[str]:
    """The output of an application without the lines that depend on the clock."""
    return [line for line in output.splitlines() if not re.match(" (Time in|Mop/s)", line)]


@pytest.fixture
def class_s(simulated):
    """Runs a benchmark of class S."""
    return lambda ranks, program, arguments: simulated(ranks, program, *arguments, "--class", "S")


@pytest.mark.parametrize("ranks, program, arguments", CASES)
def test_class_s_verifies(class_s, ranks, program, arguments):
    done = class_s(ranks, program, arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("Verification *= *SUCCESSFUL", done.stdout)


@pytest.mark.parametrize(
    "ranks, program, arguments",
    [case for case in CASES if case.id in ("is", "mg", "ft", "dt-bh")],
)
def test_results_are_those_of_real_ranks(mpiexec, class_s, ranks, program, arguments):
    real = mpiexec(ranks, program, *arguments)
    assert real.returncode == 0, real.stdout + real.stderr
    assert results(class_s(ranks, program, arguments).stdout) == results(real.stdout)


@pytest.mark.parametrize("ranks", [32])
def test_coarse_grids_with_fewer_points_than_ranks(simulated, ranks):
    done = simulated(ranks, "npb_mg.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_pencils(simulated):
    # More ranks than planes along z.
    done = simulated(128, "npb_ft.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("Processor array *: *2x *64", done.stdout)


@pytest.mark.parametrize(
    "program, spoil",
    [
        (
            "npb_is",
            "app.CLASSES['S'] = replace(app.CLASSES['S'], ranks=(0, 18, 346, 64917, 65464))",
        ),
        ("npb_mg", "app.CLASSES['S'] = replace(app.CLASSES['S'], norm=5.3077071e-05)"),
        ("npb_dt", "app.CLASSES['S'].sums['BH'] += 1"),
        ("dft", "app.Calculation.orthonormality = lambda self: 1e-3"),
    ],
)
def test_wrong_results_end_with_status_1(tmp_path, program, spoil):
    wrapper = tmp_path / "spoiled.py"
    wrapper.write_text(
        f"import sys\nsys.path.insert(0, {str(APPS)!r})\nimport {program} as app\n"
        f"from dataclasses import replace\n{spoil}\nsys.exit(app.main())\n"
    )
    command = [sys.executable, "-m", "pysmpi", "run", "-n", "5" if program == "npb_dt" else "4"]
    arguments = ["--grid", "12", "--orbitals", "2"] if program == "dft" else []
    done = subprocess.run(
        [*command, "--compute", "none", str(wrapper), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search("Verification *= *UNSUCCESSFUL|VERIFICATION FAILED", done.stdout)


@pytest.mark.parametrize(
    "program, ranks, expected",
    [
        ("npb_is.py", 3, "expected a power of two"),
        ("npb_is.py", 256, "expected at most 128"),
        ("npb_dt.py", 4, "expected 5 or more, one for each node"),
        ("npb_lu.py", 64, "leave fewer than 4 points"),
    ],
)
def test_numbers_of_ranks_that_do_not_do(simulated, program, ranks, expected):
    done = simulated(ranks, program)
    assert done.returncode == 1
    assert expected in done.stderr


@pytest.fixture
def npb(load):
    return load("npb")


@pytest.mark.parametrize("count", [0, 1, 2, 5, 100])
def test_random_numbers(npb, count):
    state, expected = 271828183, []
    for _ in range(count):
        state = state * 5**13 % 2**46
        expected.append(state / 2**46)
    assert npb.uniforms(271828183, count).tolist() == expected
    assert npb.skip(271828183, count) == state


@pytest.fixture
def with_npb(npb, load, monkeypatch):
    """Load a benchmark that imports npb."""
    monkeypatch.setitem(sys.modules, "npb", npb)
    return load


def naive_filter(data, new, weight):
    """NPB's window filter, one feature after the other."""
    data = data.copy()
    for i in range(4, len(data) - 4, 4):

        def square(at):
            return sum((data[at : at + 4] - new[at : at + 4]) ** 2)

        here, after, before = square(i), square(i + 4), square(i - 4)
        chosen = i
        if after < here:
            chosen, here = i + 4, after
        if before < here:
            chosen = i - 4
        data[i : i + 4] = weight * new[chosen : chosen + 4]
    return data


def test_window_filter(with_npb):
    dt = with_npb("npb_dt")
    random = np.random.default_rng(5)
    for _ in range(20):
        data, new = random.integers(0, 4, (2, 160)).astype(float)
        expected = naive_filter(data, new, 0.75)
        np.testing.assert_allclose(dt.window_filter(data, new, 0.75), expected, rtol=1e-15)


def test_blocks_are_derivatives_of_the_flux(with_npb):
    lu = with_npb("npb_lu")
    grid = dataclasses.make_dataclass("Grid", ["edge"])(3)
    blocks = lu.Blocks(grid, 1.0)  # 2 / h: convection counts once
    blocks.viscous = 0.0
    state = np.array([1.3, 0.4, -0.2, 0.7, 2.5])
    for axis in range(3):
        found = blocks.neighbours(state[:, None], axis, 1)[0]
        for column in range(5):
            step = 1e-6 * np.eye(5)[column]
            difference = lu.convection(state + step, axis) - lu.convection(state - step, axis)
            np.testing.assert_allclose(found[:, column], difference / 2e-6, atol=1e-8)
