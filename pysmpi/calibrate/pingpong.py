"""The ping-pong program under the MPI of this computer, and under pysmpi."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import sleep

import pysmpi
from pysmpi.errors import PysmpiError, UsageError
from pysmpi.own_process.descendants import end_with_parent

PROGRAM = Path(__file__).with_name("pingpong_program.py")
PATTERNS = ("reuse", "fresh-send", "fresh-receive", "fresh")
OPERATIONS = ("pingpong", "exchange")
ATTEMPTS = 5  # for each requested run
PAUSE = 1.0  # seconds until the next look at a computer that has changed
PATIENCE = 300.0  # seconds for a run of the real MPI

Case = tuple[str, str, int]  # pattern, operation, bytes
Times = dict[Case, float]


def arguments(
    output: Path, pool: int, patterns: Sequence[str], operations: Sequence[str],
    sizes: Sequence[int],
) -> list[str]:  # fmt: skip
    """The arguments of the program."""
    return [str(output), str(pool), ",".join(patterns), ",".join(operations), *map(str, sizes)]


def read(output: Path) -> Times:
    """The output of the program."""
    rows = json.loads(output.read_text())
    return {(pattern, operation, nbytes): seconds for pattern, operation, nbytes, seconds in rows}


def mpiexec() -> str:
    """The command that starts real ranks; UsageError if no command works."""
    path = shutil.which("mpiexec")
    if path is None:
        raise UsageError("calibrate memory: expected the mpiexec of MPICH or Open MPI, got none")
    return path


def really(
    cpus: Sequence[int], pool: int, patterns: Sequence[str], operations: Sequence[str],
    sizes: Sequence[int], steady: Callable[[], bool], runs: int = 3,
) -> Times:  # fmt: skip
    """Seconds of each case between two real ranks on two CPUs, in the fastest of several runs.

    A run counts if `steady` is true before and after it. Raises PysmpiError if this hardly ever
    happens.
    """
    environment = {**os.environ, "PYSMPI_PIN": ",".join(map(str, cpus))}
    found: list[Times] = []
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "times.json"
        command = [
            mpiexec(), "-n", "2", sys.executable, str(PROGRAM),
            *arguments(output, pool, patterns, operations, sizes),
        ]  # fmt: skip
        for _ in range(ATTEMPTS * runs):
            if len(found) == runs:
                break
            if not steady():
                sleep(PAUSE)
                continue
            try:
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, timeout=PATIENCE,
                    preexec_fn=partial(end_with_parent, os.getpid()),
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise PysmpiError(f"{command[0]}: no end after {PATIENCE:g} s") from None
            if done.returncode != 0 or not output.exists():
                said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
                raise PysmpiError(f"{' '.join(command[:4])} ... failed, it says: {said[-1]}")
            if steady():
                found.append(read(output))
            output.unlink()
    if not found:
        raise PysmpiError(
            "calibrate memory: the latency between the cores has changed; a "
            "virtual machine may have moved them: expected a steadier computer"
        )
    return {case: min(times[case] for times in found) for case in found[0]}


def simulated(
    platform: Path, pool: int, patterns: Sequence[str], operations: Sequence[str],
    sizes: Sequence[int], config: Mapping[str, str] = {},
) -> Times:  # fmt: skip
    """Seconds of each case as a platform file predicts them."""
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "times.json"
        pysmpi.run(
            PROGRAM, nprocs=2, args=arguments(output, pool, patterns, operations, sizes),
            platform=str(platform), map_by="core", compute="none", cfg=dict(config),
        )  # fmt: skip
        return read(output)
