"""Scalability of EP, sampled: what SMPI's shadow execution is for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from studies.framework import Curve, Panel, Result, Row, study

APPS = Path(__file__).resolve().parents[2] / "apps"
RANKS = (1, 4, 16, 64, 256)


def run_ep(ranks: int, name: str) -> tuple[float, float]:
    """(predicted seconds, seconds of the simulation) with eight batches measured in all.

    A skipped batch returns what another one did: the sums are wrong, and the status says so.
    """
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", str(ranks)]
        command += ["--platform", "cluster", "--report", str(report)]
        command += [
            "--sample",
            "__main__:batch:iters=8,scope=global,by=type",
            "--compute",
            "steady",
        ]
        begin = time.perf_counter()
        done = subprocess.run(
            [*command, str(APPS / "npb_ep.py"), "--class", name], capture_output=True, text=True
        )
        wall = time.perf_counter() - begin
        json.loads(report.read_text())
    found = re.search(r"Time in seconds = +([\d.]+)", done.stdout)
    if found is None:
        raise RuntimeError(done.stderr)
    return float(found[1]), wall


@study(
    "Scalability of EP with sampled execution (section III, shadow execution)",
    "EP scales perfectly, and the time of the simulation does not grow with the work",
)
def run(quick: bool) -> Result:
    """EP by the number of ranks."""
    ranks = RANKS[1:3] if quick else RANKS
    name = "S" if quick else "A"
    found = {count: run_ep(count, name) for count in ranks}
    least, most = ranks[0], ranks[-1]
    speed = [least * found[least][0] / found[count][0] for count in ranks]
    rows = [
        Row(f"{count} ranks: predicted s / wall s of the simulation", "",
            f"{found[count][0]:.3f} / {found[count][1]:.1f}")
        for count in ranks
    ]  # fmt: skip
    efficiency = speed[-1] / most
    rows.append(
        Row(f"efficiency on {most} ranks", "near 1", f"{efficiency:.2f}",
            holds=None if quick else efficiency > 0.8)
    )  # fmt: skip
    most_wall = max(wall for _, wall in found.values())
    rows.append(
        Row("longest simulation / shortest", "does not grow with the work",
            f"{most_wall / min(wall for _, wall in found.values()):.1f}")
    )  # fmt: skip
    curves = [Curve("perfect", ranks, ranks, "k--"), Curve("EP, sampled", ranks, speed)]
    return Result(
        rows,
        [Panel(f"NPB EP, class {name}", "ranks", "speed-up", curves, "xy")],
        "The paper prints no figures of EP. Batches are measured eight times in all; what a rank "
        "computes once, beside them, is charged as measured, and this computer had other jobs.",
    )
