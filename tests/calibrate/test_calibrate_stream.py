"""`pysmpi calibrate stream` measures memory, and a machine of its options behaves like it."""

from __future__ import annotations

import json
import os
import sys

import pytest
from click.testing import CliRunner

import pysmpi
from pysmpi.calibrate.stream import bandwidth, curve
from pysmpi.cli.calibrate_stream import command

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="keeps processes on cores, as Linux can"
)


def test_cores_reach_more_together_than_one_moves_in_a_second() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    one = bandwidth(cpus[:1], 100_000, 5)
    assert 1e8 < one < 1e13
    measured = curve(cpus[:2])
    assert list(measured) == ([1, 2] if len(cpus) > 1 else [1])
    assert all(value > 1e8 for value in measured.values())


def test_options_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {1: 12e9, 2: 20e9, 4: 30e9}
    monkeypatch.setattr("pysmpi.calibrate.stream.curve", lambda cpus: measured)
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 0
    assert result.output.splitlines()[-3:] == [
        "config:", "  memory/core-bandwidth: 12GBps", "  memory/bandwidth: 30GBps",
    ]  # fmt: skip
    result = CliRunner().invoke(command, ["--json"])
    assert result.exit_code == 0 and json.loads(result.output) == {"1": 12e9, "2": 20e9, "4": 30e9}


def block():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    begin = MPI.Wtime()
    MPI.COMM_WORLD.Barrier()
    return MPI.Wtime() - begin


def test_a_machine_of_these_options_follows_the_measured_curve(tmp_path) -> None:
    """Times of blocks that move all that they can are inverse to the bandwidth of each core."""
    measured = {1: 12e9, 2: 23.5e9, 4: 29.5e9, 8: 30e9}
    file = tmp_path / "machine.yaml"
    file.write_text(
        "name: node\nconfig: {memory/core-bandwidth: 12GBps, memory/bandwidth: 30GBps}\n"
        "clusters:\n  - name: node\n    hosts: node-[0-1]\n    cores: 8\n"
        "    network: {bandwidth: 100Gbps, latency: 1us}\n"
    )
    options = {"platform": file, "compute": 0.01, "memory_bound": 1.0, "cfg": {"smpi/wtime": "0"}}
    alone = pysmpi.run(block, 1, **options).returns[0]
    for ranks, value in measured.items():
        taken = max(pysmpi.run(block, ranks, **options).returns)
        assert alone / taken * ranks * measured[1] == pytest.approx(value, rel=0.1), ranks
