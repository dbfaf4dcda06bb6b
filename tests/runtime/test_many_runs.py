"""Many runs in one process: the bytes of runs in processes of their own, in the same memory.

`PYSMPI_RUNS` is the number of runs: by default a few, and 100 for the full comparison.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

import pytest
from test_runs_apart import APPS, ROOT, RUNS, runs

COUNT = int(os.environ.get("PYSMPI_RUNS", "12"))
GROWTH = 1 << 20  # bytes that a run may leave behind: tables of the interpreter grow in steps

MEMORY = """
import gc, os
def resident():
    gc.collect()
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
"""
# Prints also the resident bytes after each run.
MEASURED = MEMORY + RUNS.replace("digest(timeline))", "digest(timeline), resident(), flush=True)")


def jobs(count: int) -> list[dict[str, object]]:
    apps = islice(cycle(APPS.items()), count)
    return [{"program": str(ROOT / "apps" / name), "args": args} for name, args in apps]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")
def test_many_runs_in_one_process(tmp_path: Path) -> None:
    wanted = jobs(COUNT)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "trace.csv"), json.dumps(wanted)],
        capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    assert len(lines) == COUNT

    processes = wanted if "PYSMPI_RUNS" in os.environ else wanted[: len(APPS)]
    alone = [runs(tmp_path, [job])[0] for job in processes]
    for number, (digests, _) in enumerate(lines):
        assert digests == alone[number % len(alone)], wanted[number]["program"]

    resident = [int(number) for _, number in lines]
    first = resident[len(APPS) - 1]  # every application has run once
    assert resident[-1] - first < GROWTH * (COUNT - len(APPS)), resident
