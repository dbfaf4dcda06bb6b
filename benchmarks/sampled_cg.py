"""NAS CG in full and sampled: the predicted times, and what the two runs take.

    python benchmarks/sampled_cg.py --class C --ranks 128

The full run records its compute.  The same sampled run is done twice: with compute measured anew,
as a user does it, and with the recorded compute played back, where nothing but sampling differs.
The sampled program prints a wrong eigenvalue and ends with status 1, as it should.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from side_by_side import TOP, Measurement, parser, run, table, write_json

ERROR = 0.03  # of the predicted time
WALL = 0.1  # of the wall time in full

SAMPLED = [
    "--once", "__main__:random_vectors:iters=3",
    "--sample", "__main__:Solver.solve:scope=collective,iters=2,every=25",
]  # fmt: skip


def main() -> int:
    """Run CG in full and sampled, print the table, compare."""
    options = parser("NAS CG in full and sampled", repeats=1)
    options.add_argument("--class", dest="name", default="C", choices="SWABC")
    options.add_argument("--ranks", type=int, default=128)
    options.add_argument("--iterations", type=int, help="instead of the class's own")
    options.add_argument("--platform", default="cluster", help="machine to simulate")
    chosen = options.parse_args()
    program = [str(TOP / "apps" / "npb_cg.py"), "--class", chosen.name]
    if chosen.iterations is not None:
        program += ["--iterations", str(chosen.iterations)]

    with tempfile.TemporaryDirectory() as directory:
        blocks = str(Path(directory) / "blocks")
        variants = {
            "in full": ["--record-compute", blocks],
            "sampled": SAMPLED,
            "sampled, recorded compute": [*SAMPLED[2:], "--compute", blocks],
        }
        base = [sys.executable, "-m", "pysmpi", "run", "-n", str(chosen.ranks)]
        base += ["--platform", chosen.platform]
        runs = {}
        for name, words in variants.items():
            report = Path(directory) / f"{name}.json"
            command = [*base, *words, "--report", str(report), *program]
            runs[name] = Measurement(command, statuses=(0, 1)), report
        for _ in range(chosen.repeats):
            for measurement, _ in runs.values():
                measurement.run(timeout=7200.0)
        predicted = {
            name: json.loads(report.read_text())["simulated_seconds"]
            for name, (_, report) in runs.items()
        }

    full, wall = predicted["in full"], runs["in full"][0].fastest
    lines, records, missed = [], [], []
    for name, (measurement, _) in runs.items():
        error, share = predicted[name] / full - 1.0, measurement.fastest / wall
        lines.append(
            (
                name,
                f"{predicted[name]:.4f}",
                f"{error:+.2%}",
                f"{measurement.fastest:.1f}",
                f"{share:.3f}",
                f"{min(measurement.processor):.1f}",
            )
        )
        records.append({"run": name, "predicted": predicted[name], **measurement.record()})
        if abs(error) > ERROR:
            missed.append(f"{name}: predicted time differs by {error:+.1%}, wanted {ERROR:.0%}")
        if name == "sampled" and share > WALL:
            missed.append(f"{name}: takes {share:.2f} of the full run, wanted {WALL}")
    print(f"CG class {chosen.name}, {chosen.ranks} ranks on {chosen.platform}")
    headings = ("run", "predicted s", "error", "wall s", "of full", "processor s")
    print(table(headings, lines))
    for line in missed:
        print("missed:", line)
    write_json(chosen.json, "sampled_cg", records)
    return 1 if missed else 0


if __name__ == "__main__":
    run(main)
