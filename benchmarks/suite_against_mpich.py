"""mpi4py's own test suite under a real MPICH and in one simulation: the time of each.

    python benchmarks/suite_against_mpich.py --ranks 3 --files p2p cco_buf

Both run the suite's unmodified `main.py` on as many ranks, without the tests that only one of them
could pass. The real ranks share this machine's processors and wait by spinning. The simulated ones
take turns on one, so the suite's files are shared out among as many simulations as there are
processors, as the test job does; `--jobs 1` has them all in one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from side_by_side import (
    TOP,
    BenchmarkError,
    Measurement,
    need,
    parser,
    pysmpi,
    run,
    table,
    take_turns,
    write_json,
)

sys.path.insert(0, str(TOP / "tests" / "mpi4py_suite"))

from distribution import Unavailable, suite  # noqa: E402
from expectations import EXCLUDED, FILES, shared_out  # noqa: E402

WANTED = 1.0
# MPICH names Fortran types as supported that mpi4py's MPICH ABI does not have.
FAILS_UNDER_MPICH = "TestMPIABI.testGetFortranInfo"


def arguments(program: str, files: Sequence[str]) -> list[str]:
    """The suite's main.py with its arguments."""
    made = [program, "-q", "-x", FAILS_UNDER_MPICH]
    made += [word for name in EXCLUDED if "." in name for word in ("-x", name.partition(".")[2])]
    return made + [word for name in files for word in ("-i", rf"^test_{name}\.py$")]


def simulate(ranks: int, program: str, files: Sequence[str], jobs: int) -> int:
    """Run the files in several simulations at a time; return the worst exit status."""
    started = [
        subprocess.Popen(
            pysmpi("-q", "-n", ranks, "--on-deadlock", "raise", *arguments(program, group))
        )
        for group in shared_out(files, jobs)
    ]
    return max(process.wait() for process in started)


def main() -> int:
    """Run the suite both ways, print the table, judge the ratio of the wall times."""
    options = parser("mpi4py's test suite under MPICH and under pysmpi", repeats=1)
    options.add_argument("--ranks", type=int, default=3)
    options.add_argument("--jobs", type=int, default=os.cpu_count(), help="simulations at a time")
    options.add_argument("--simulated", action="store_true", help="just run it under pysmpi")
    options.add_argument(
        "--files", nargs="+", metavar="NAME", help="only these, p2p_buf for instance"
    )
    chosen = options.parse_args()
    try:
        program = str(suite() / "main.py")
    except Unavailable as error:
        raise BenchmarkError(f"mpi4py's test suite is not available: {error}") from None
    files = chosen.files or [name for name in FILES if f"test_{name}" not in EXCLUDED]
    if chosen.simulated:
        return simulate(chosen.ranks, program, files, chosen.jobs)
    launcher = need("mpiexec", "pip install mpich")
    real = [launcher, "-n", str(chosen.ranks), sys.executable, *arguments(program, files)]
    simulated = [sys.executable, __file__, "--simulated", "--ranks", str(chosen.ranks)]
    simulated += ["--jobs", str(chosen.jobs), "--files", *files]
    runs = {"MPICH": Measurement(real), "pysmpi": Measurement(simulated)}
    take_turns(list(runs.values()), chosen.repeats)

    lines, records = [], []
    for name, measurement in runs.items():
        wall, processor = measurement.fastest, min(measurement.processor)
        lines.append((name, f"{wall:.1f}", f"{processor:.1f}", f"{measurement.peak / 1e6:.0f}"))
        records.append({"name": name, **measurement.record()})
    print(table((f"suite, {chosen.ranks} ranks", "wall s", "processor s", "peak MB"), lines))
    ratio = runs["pysmpi"].fastest / runs["MPICH"].fastest
    print(f"ratio {ratio:.2f}, wanted at most {WANTED:.2f}")
    write_json(chosen.json, "suite_against_mpich", records)
    return 0 if ratio <= WANTED else 1


if __name__ == "__main__":
    run(main)
