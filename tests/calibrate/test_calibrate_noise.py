"""`pysmpi calibrate noise` measures detours, and its file gives a machine the same ones."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import pysmpi
from pysmpi.calibrate.noise import CoreNoise, kinds, measure
from pysmpi.cli.calibrate_noise import command
from pysmpi.faults.noise_files import read_noise
from pysmpi.faults.specification import Detours

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="keeps processes on cores, as Linux can"
)
MEASURED = [
    CoreNoise(1_000_000, 2e-6, (2e-6,) * 400 + (4e-6,) * 200 + (5e-3,) * 10),
    CoreNoise(1_000_000, 2e-6, (2e-6,) * 200),
]


def test_a_core_is_measured() -> None:
    cpu = min(os.sched_getaffinity(0))
    [core] = measure([cpu], 0.05)
    assert core.quanta > 0 and core.usual > 0.0 and 0.0 <= core.share < 1.0
    assert all(one > 1e-6 for one in core.detours)


def test_kinds_are_halves_of_decades() -> None:
    found = kinds(MEASURED)
    assert [one.rate for one in found] == [150.0, 50.0, 2.5]
    assert [one.seconds for one in found] == pytest.approx([2e-6, 4e-6, 5e-3])
    assert all(one.constant for one in found)


def test_the_file_is_one_for_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pysmpi.calibrate.noise.measure", lambda cpus, seconds: MEASURED[:1])
    path = tmp_path / "noise.yaml"
    done = CliRunner().invoke(command, ["--output", str(path)])
    assert done.exit_code == 0, done.output
    assert "in 610 detours, the longest 5 ms; a quantum takes 2 us" in done.output
    noise = read_noise(path)
    assert [(one.rate, one.constant) for one in noise if isinstance(one, Detours)] == [
        (200.0, True), (100.0, True), (5.0, True),
    ]  # fmt: skip
    again = CliRunner().invoke(command, ["--output", str(path)])
    assert "the file exists" in str(again.exception)
    done = CliRunner().invoke(command, ["--json"])
    assert json.loads(done.stdout)[str(min(os.sched_getaffinity(0)))]["quanta"] == 1_000_000

    def quanta() -> list[float]:
        from mpi4py import MPI

        times, last = [], MPI.Wtime()
        for _ in range(20_000):
            MPI.COMM_SELF.Barrier()
            now = MPI.Wtime()
            times.append(now - last)
            last = now
        return times

    # The same quanta on a machine with this noise have the same detours.
    [times] = pysmpi.run(quanta, noise=path, compute=1e-4, cfg={"smpi/wtime": "0"}, seed=1).returns
    usual = min(times)
    work = usual * len(times)
    lost = sum(times) - work
    assert lost / work == pytest.approx(sum(MEASURED[0].detours) / MEASURED[0].work, rel=0.15)
    assert max(times) == pytest.approx(usual + 5e-3, rel=0.1)


def test_no_detours_are_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pysmpi.calibrate.noise.measure", lambda cpus, seconds: [CoreNoise(10, 1e-6, ())]
    )
    done = CliRunner().invoke(command, ["-o", str(tmp_path / "noise.yaml")])
    assert "expected more --seconds" in str(done.exception)
