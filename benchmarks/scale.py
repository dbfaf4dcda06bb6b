"""Memory and wall time of many ranks on one machine.

    python benchmarks/scale.py --ranks 10000

Each rank does ten ring exchanges, a barrier and an allreduce, on a cluster with as many hosts as
ranks.  Exit status 1 when the peak resident memory is above the limit.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from side_by_side import (
    HERE,
    Measurement,
    parser,
    pysmpi,
    run,
    table,
    take_turns,
    write_cluster,
    write_json,
)


def main() -> int:
    """Measure each number of ranks, print the table, judge."""
    options = parser("memory and wall time of many ranks", repeats=1)
    options.add_argument("--ranks", type=int, nargs="+", default=[1000, 10000])
    options.add_argument("--limit", type=float, default=1000.0, help="peak memory wanted, in MB")
    chosen = options.parse_args()

    lines, records, missed = [], [], False
    for ranks in chosen.ranks:
        with tempfile.TemporaryDirectory() as name:
            machine, hosts = write_cluster(Path(name), ranks)
            program = HERE / "programs" / "many_ranks.py"
            ours = Measurement(
                pysmpi("-n", ranks, "--platform", machine, "--hostfile", hosts, program)
            )
            take_turns((ours,), chosen.repeats)
        missed |= ours.peak > chosen.limit * 1e6
        lines.append(
            (
                f"{ranks}",
                f"{ours.fastest:.2f}",
                f"{ours.peak / 1e6:.0f}",
                f"{ours.peak / ranks / 1e3:.1f}",
                f"{ours.figure('simulated'):.6g}",
            )
        )
        records.append({"ranks": ranks, **ours.record(), "simulated": ours.figure("simulated")})
    print(table(("ranks", "wall s", "peak MB", "kB a rank", "predicted s"), lines))
    write_json(chosen.json, "scale", records)
    if missed:
        print(f"missed: peak memory above {chosen.limit:g} MB", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    run(main)
