"""HPL and the transport sweep solve their problems on any grid of ranks."""

from __future__ import annotations

import re

import pytest

CASES = {
    "hpl.py": ["--size", "100", "--block", "12"],
    "sweep3d.py": ["--edge", "8", "--iterations", "3"],
}


@pytest.mark.parametrize("program", CASES)
@pytest.mark.parametrize("ranks", [1, 6])
def test_simulated(simulated, program, ranks):
    done = simulated(ranks, program, *CASES[program])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VERIFICATION SUCCESSFUL" in done.stdout


def test_flux_does_not_depend_on_the_ranks_nor_on_the_size_of_messages(simulated):
    found = set()
    for ranks, options in ((1, []), (4, ["--planes", "3", "--angles", "2"]), (7, [])):
        done = simulated(ranks, "sweep3d.py", *CASES["sweep3d.py"], *options)
        found.add(re.search("mean flux .*", done.stdout).group())
    assert len(found) == 1


@pytest.mark.parametrize("program", CASES)
def test_as_on_real_ranks(mpiexec, simulated, program):
    outputs = []
    for done in (mpiexec(4, program, *CASES[program]), simulated(4, program, *CASES[program])):
        assert done.returncode == 0, done.stdout + done.stderr
        outputs.append(
            [line for line in done.stdout.splitlines() if line[:4] not in ("time", "rate")]
        )
    assert outputs[0] == outputs[1]


def test_a_wrong_solution_ends_with_status_1(simulated):
    done = simulated(4, "../tests/apps/wrong_hpl.py", *CASES["hpl.py"])
    assert done.returncode == 1
    assert "VERIFICATION FAILED" in done.stdout
