"""Section VI: memory folding and sampling of a job that does not fit."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pysmpi.studies.applications import application
from pysmpi.studies.framework import FigureRow, StudyResult, study

FUNCTIONS = (
    "convolve", "apply_potential", "descend", "add_density", "pack", "unpack", "overlaps",
    "orthonormalise", "start_orbital", "transform_planes", "transform_lines", "transform_back",
)  # fmt: skip
GIB = 2.0**30


@study(
    "Section VI, memory of BigDFT with 128 processes",
    "A job of 71 GiB runs in less than 2.5 GB on one computer",
)
def run(quick: bool) -> StudyResult:
    """apps/dft.py, folded and sampled, of which 128 ranks would take more than the paper's job."""
    ranks, grid, orbitals, iterations = (16, 32, 64, 1) if quick else (128, 128, 1024, 1)
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        command = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", str(ranks), "--platform"]
        command += ["tibidabo", "--map-by", "node", "--selector", "mpich", "--fold", "64KiB"]
        command += ["--report", str(report)]
        for function in FUNCTIONS:
            command += ["--sample", f"__main__:{function}:iters=4,scope=global"]
        command += [str(application("dft.py")), "--grid", str(grid), "--orbitals", str(orbitals)]
        command += ["--iterations", str(iterations)]
        # The folded program computes wrong numbers, and says so by its status.
        done = subprocess.run(command, capture_output=True, text=True)
        if not report.exists():
            raise RuntimeError(done.stderr)
        found = json.loads(report.read_text())
    folding = found["folding"]
    needed, taken = folding["needed_bytes"], folding["taken_bytes"]
    resident = folding["resident_bytes"]
    limit = 2.5e9
    rows = [
        FigureRow("ranks", "128", str(ranks)),
        FigureRow("memory that the job needs", "71 GiB", f"{needed / GIB:.1f} GiB",
            holds=None if quick else needed > 71 * GIB),
        FigureRow("arrays in the simulation", "", f"{taken / 1e6:.0f} MB"),
        FigureRow("resident in the simulation", "below 2.5 GB", f"{resident / 1e6:.0f} MB",
            holds=resident < limit),
        FigureRow("needed / taken", "", f"{needed / taken:.0f}"),
    ]  # fmt: skip
    return StudyResult(rows, remark="The application is apps/dft.py, which has BigDFT's structure.")
