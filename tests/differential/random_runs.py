"""Many random programs beside MPICH, under many settings of pysmpi:

    python tests/differential/random_runs.py 5000 [SEED]

The programs are those of `test_random_programs.py`, in jobs of 40 on 3 to 5 ranks. Each job runs
once under MPICH and once under pysmpi, with the next of the settings. Prints each difference, with
the program and the settings, and the number of programs that were compared. `mpiexec` of a real
MPICH must be found.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import test_random_programs as programs

JOB = 40
RANKS = (3, 4, 5)
#: The settings of pysmpi under which data must be the same.
SETTINGS = (
    ("--compute", "none"),
    ("--compute", "none", "--selector", "mpich"),
    ("--compute", "none", "--selector", "ompi"),
    ("--compute", "none", "--selector", "mvapich2"),
    ("--compute", "none", "--selector", "impi"),
    ("--compute", "none", "--selector", "ompi5"),
    ("--compute", "none", "--selector", "mpich4"),
    ("--compute", "none", "--model", "loggp"),
    ("--compute", "none", "--model", "ib", "--platform", "griffon"),
    ("--compute", "none", "--platform", "xeon-e5-2650"),
    ("--compute", "none", "--platform", "fat-tree", "--map-by", "node"),
    ("--compute", "native",),
    ("--compute", "steady", "--platform", "laptop"),
    ("--compute", "1ms", "--platform", "torus"),
    ("--compute", "none", "--schedule", "random", "--seed", "7"),
    ("--compute", "none", "--schedule", "pct", "--seed", "3"),
    ("--compute", "none", "--cfg", "smpi/async-small-thresh:0", "--reduction-order", "algorithm"),
)  # fmt: skip


def compare(job: int, seed: int, folder: Path) -> tuple[int, list[str]]:
    """The number of compared programs of a job, and their differences."""
    ranks, settings = RANKS[job % len(RANKS)], SETTINGS[job % len(SETTINGS)]
    drawn = programs.draw_programs(JOB, seed + job)
    if "--platform" in settings:
        # The ranks of a shared window must be on one node.
        for step in (step for program in drawn for step in program["steps"]):
            step["do"] = step["do"].replace("shared_window", "groups")
    (folder / "programs.json").write_text(json.dumps(drawn))
    simulated = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", str(ranks), *settings]
    where = f"job {job} of seed {seed}, {ranks} ranks, {' '.join(settings)}"
    try:
        real = programs.run(["mpiexec", "-n", str(ranks), sys.executable], folder, "mpich")
    except Exception as error:
        return 0, [f"{where}: MPICH: {str(error)[-1500:]}"]
    try:
        ours = programs.run(simulated, folder, "pysmpi")
    except Exception as error:
        return len(drawn), [f"{where}: {str(error)[-3000:]}"]
    found = []
    for number, program in enumerate(drawn):
        for rank in range(ranks):
            mine, theirs = ours[rank][number], real[rank][number]
            if mine != theirs:
                whats = [*program["comms"], *program["steps"]]
                at = next(i for i, (x, y) in enumerate(zip(mine, theirs)) if x != y)
                found.append(
                    f"{where}: rank {rank} at {whats[at]}:\npysmpi {mine[at]}\n"
                    f"MPICH  {theirs[at]}\nof the program {json.dumps(program)}"
                )
                break
    return len(drawn), found


def main() -> int:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    compared = differ = job = 0
    while compared < wanted:
        with tempfile.TemporaryDirectory() as folder:
            number, found = compare(job, seed, Path(folder))
        compared += number
        differ += len(found)
        job += 1
        for text in found:
            print(text, flush=True)
        if not number:
            return 1
        print(f"seed {seed}: {compared} programs, {differ} differ", flush=True)
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
