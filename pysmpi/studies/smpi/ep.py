"""Scalability of EP, sampled: the use case of SMPI's shadow execution."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys

from pysmpi.studies.applications import application
from pysmpi.studies.framework import FigureRow, Panel, PictureCurve, StudyResult, study

RANKS = (1, 4, 16, 64, 256)
REPEATS = 5
MIDDLE = 64  # ranks on which the classes are compared
SAMPLE = "__main__:batch:iters=8,scope=global,by=type"  # eight batches are measured in all


def run_ep(ranks: int, name: str, repeats: int) -> tuple[float, float]:
    """(predicted seconds, processor seconds of the simulation), each the least of some runs.

    A skipped batch returns the result of another one: the sums are wrong, and so is the status.
    """
    command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", str(ranks)]
    command += ["--platform", "cluster", "--sample", SAMPLE, "--compute", "steady"]
    command += [str(application("npb_ep.py")), "--class", name]
    runs = []
    for _ in range(repeats):
        before = processor_seconds()
        done = subprocess.run(command, capture_output=True, text=True)
        found = re.search(r"Time in seconds = +([\d.]+)", done.stdout)
        if found is None:
            raise RuntimeError(done.stderr)
        runs.append((float(found[1]), processor_seconds() - before))
    return min(predicted for predicted, _ in runs), min(taken for _, taken in runs)


def processor_seconds() -> float:
    """Processor time of the runs so far."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


@study(
    "Scalability of EP with sampled execution (section III, shadow execution)",
    "EP scales perfectly, and the time of the simulation does not grow with the work",
)
def run(quick: bool) -> StudyResult:
    """EP by the number of ranks, and by its class."""
    ranks = RANKS[1:3] if quick else RANKS
    name, repeats = ("S", 1) if quick else ("A", REPEATS)
    found = {count: run_ep(count, name, repeats) for count in ranks}
    least, most = ranks[0], ranks[-1]
    speed = [least * found[least][0] / found[count][0] for count in ranks]
    rows = [
        FigureRow(f"{count} ranks: predicted s / processor s of the simulation", "",
            f"{found[count][0]:.3f} / {found[count][1]:.1f}")
        for count in ranks
    ]  # fmt: skip
    efficiency = speed[-1] / most
    rows.append(
        FigureRow(f"efficiency on {most} ranks", "near 1", f"{efficiency:.2f}",
            holds=None if quick else efficiency > 0.8)
    )  # fmt: skip
    if not quick:
        small, large = (run_ep(MIDDLE, one, 1)[1] for one in ("S", "C"))
        rows.append(
            FigureRow(f"{MIDDLE} ranks, class C: processor s of the simulation / those of class S",
                "does not grow with the work (256 times)", f"{large / small:.1f}",
                holds=large / small < 2)
        )  # fmt: skip
    curves = [
        PictureCurve("perfect", ranks, ranks, "k--"),
        PictureCurve("EP, sampled", ranks, speed),
    ]
    return StudyResult(
        rows,
        [Panel(f"NPB EP, class {name}", "ranks", "speed-up", curves, "xy")],
        "The paper prints no figures of EP. Batches are measured eight times in all. The rest of "
        "the computation is charged as measured, and the slowest of the ranks counts. Each "
        f"figure is the least of {repeats} runs, with {os.getloadavg()[0]:.0f} busy processes on "
        f"{os.cpu_count()} cores.",
    )
