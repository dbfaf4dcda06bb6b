"""mpi4py's own test suite under a real MPICH and in one simulation: what each takes.

    python benchmarks/suite_against_mpich.py --ranks 3 --files p2p cco_buf

Both run the suite's unmodified `main.py` on as many ranks, less what only one of them could pass.
The real ranks share this machine's processors and wait by spinning; the simulated ones take turns
on one.
"""

from __future__ import annotations

import sys

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
from expectations import EXCLUDED  # noqa: E402

WANTED = 1.0
# MPICH names Fortran types as supported that mpi4py's MPICH ABI does not have.
FAILS_UNDER_MPICH = "TestMPIABI.testGetFortranInfo"


def main() -> int:
    """Run the suite both ways, print the table, judge the ratio of the wall times."""
    options = parser("mpi4py's test suite under MPICH and under pysmpi", repeats=1)
    options.add_argument("--ranks", type=int, default=3)
    options.add_argument(
        "--files", nargs="+", metavar="NAME", default=(), help="only these, p2p_buf for instance"
    )
    chosen = options.parse_args()
    try:
        program = str(suite() / "main.py")
    except Unavailable as error:
        raise BenchmarkError(f"mpi4py's test suite is not available: {error}") from None
    arguments = [program, "-q", "-x", FAILS_UNDER_MPICH]
    for name in EXCLUDED:
        option = "-x" if "." in name else "-e"
        arguments += [option, name.partition(".")[2] or name]
    for name in chosen.files:
        arguments += ["-i", rf"^test_{name}\.py$"]
    launcher = need("mpiexec", "pip install mpich")
    runs = {
        "MPICH": Measurement([launcher, "-n", str(chosen.ranks), sys.executable, *arguments]),
        "pysmpi": Measurement(
            pysmpi("-q", "-n", chosen.ranks, "--on-deadlock", "raise", *arguments)
        ),
    }
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
