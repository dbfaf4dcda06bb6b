"""The applications print the same check values for any number of ranks, real or simulated."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

APPS = Path(__file__).resolve().parents[2] / "apps"

# program, arguments, the lines that are the same for any number of ranks
CASES = [
    pytest.param("npb_cg.py", ["--class", "S"], r"(?m)^ (?:VERIFICATION|Zeta is).*$", id="npb_cg"),
    pytest.param(
        "jacobi2d.py",
        ["--size", "61", "--iterations", "20"],
        r"(?m)^(?:residual|checksum).*$",
        id="jacobi2d",
    ),
    pytest.param(
        "master_worker.py",
        ["--limit", "100000", "--task", "3000"],
        r"(?m)^(?:primes|sum).*$",
        id="master_worker",
    ),
    pytest.param(
        "nbody.py",
        ["--bodies", "67", "--steps", "5"],
        r"(?m)^(?:energy|centre|check).*$",
        id="nbody",
    ),
    pytest.param(
        "dft.py",
        ["--grid", "16", "--orbitals", "7", "--iterations", "3"],
        r"(?m)^(?:iteration|electrons|VERIFICATION).*$",
        id="dft",
    ),
]
EXPECTED = {
    "npb_cg.py": [" VERIFICATION SUCCESSFUL", " Zeta is       0.859717750786E+01"],
    "jacobi2d.py": ["residual  0.012105244259146", "checksum  122.06884837602"],
    "master_worker.py": ["primes   9592", "sum      454396537"],
    "nbody.py": [
        "energy    -0.17525821",
        "centre    0.07335726",
        "check     as on one rank",
    ],
    "dft.py": [
        "iteration   1      0.54593317 hartree",
        "iteration   2      0.42107080 hartree",
        "iteration   3      0.27503745 hartree",
        "electrons          7.00000000",
        "VERIFICATION SUCCESSFUL",
    ],
}


def check(done, program, pattern):
    assert done.returncode == 0, done.stderr
    found = re.findall(pattern, done.stdout)
    for line, expected in zip(found, EXPECTED[program], strict=True):
        assert line.startswith(expected)
    return found


@pytest.mark.parametrize("program, arguments, pattern", CASES)
def test_app_under_mpiexec(mpiexec, program, arguments, pattern):
    found = [check(mpiexec(ranks, program, *arguments), program, pattern) for ranks in (1, 2, 4)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("program, arguments, pattern", CASES)
def test_app_simulated_as_real(mpiexec, simulated, program, arguments, pattern):
    real = check(mpiexec(4, program, *arguments), program, pattern)
    assert check(simulated(4, program, *arguments), program, pattern) == real


@pytest.mark.parametrize("program, arguments, pattern", CASES)
def test_app_simulated_with_many_ranks(simulated, program, arguments, pattern):
    few = check(simulated(2, program, *arguments), program, pattern)
    assert check(simulated(32, program, *arguments), program, pattern) == few


@pytest.mark.parametrize("program", ["jacobi2d.py", "master_worker.py", "nbody.py"])
def test_app_takes_any_number_of_ranks(simulated, program):
    arguments = {
        "jacobi2d.py": ["--size", "20", "--iterations", "3"],
        "master_worker.py": ["--limit", "5000", "--task", "400"],
        "nbody.py": ["--bodies", "20", "--steps", "2"],
    }[program]
    outputs = []
    for ranks in (1, 3, 7):
        done = simulated(ranks, program, *arguments)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    last = {output[-1] for output in outputs}
    assert len(last) == 1


def test_pingpong_under_mpiexec(mpiexec):
    done = mpiexec(4, "pingpong.py", "--max", "4096", "--repeats", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("check: 14 of 14 messages came back unchanged\n")


def test_pingpong_simulated(simulated):
    done = simulated(4, "pingpong.py", "--max", "4096", "--repeats", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("check: 14 of 14 messages came back unchanged\n")
    times = [float(line.split()[1]) for line in done.stdout.splitlines()[1:-1]]
    assert all(time > 0 for time in times)
    assert times[-1] > times[0]


def test_cg_with_fewer_iterations_is_not_verified(simulated):
    done = simulated(2, "npb_cg.py", "--class", "S", "--iterations", "2")
    assert done.returncode == 0, done.stderr
    assert "NO VERIFICATION PERFORMED" in done.stdout
    assert "VERIFICATION SUCCESSFUL" not in done.stdout


def test_cg_wants_a_power_of_two(mpiexec):
    done = mpiexec(3, "npb_cg.py")
    assert done.returncode != 0
    assert "found 3 ranks, expected a power of two" in done.stderr


def test_dft_folded_takes_the_same_time_and_a_fraction_of_the_memory(tmp_path):
    found = []
    for options in ([], ["--fold", "64KiB"], ["--data", "none"]):
        report = tmp_path / "report.json"
        command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "8", "--compute", "1ms"]
        command += [*options, "--report", str(report), str(APPS / "dft.py")]
        done = subprocess.run(
            [*command, "--grid", "24", "--orbitals", "16", "--iterations", "2"],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        # Arrays that share memory, or have none, have no correct values: dft.py says so.
        assert done.returncode == (1 if options else 0), done.stderr
        found.append(json.loads(report.read_text()))
    plain, folded, without = found
    for other in (folded, without):
        assert other["seconds"] == plain["seconds"]
        assert other["messages"] == plain["messages"] and other["bytes"] == plain["bytes"]
    assert folded["folding"]["needed_bytes"] > 6 * folded["folding"]["taken_bytes"]
