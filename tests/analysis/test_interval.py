"""The interval of a prediction: effects of errors of its parts, parts without a known error."""

from __future__ import annotations

import json
from math import exp, hypot
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pysmpi
from pysmpi.analysis import interval as intervals
from pysmpi.analysis.interval import DEVIATE, PartError, compute_error, line, parts_of
from pysmpi.network.errors import GIVEN, OTHER_PATTERNS, NetworkErrors

EDR = """
name: here
preset: infiniband-edr
clusters:
  - name: here
    hosts: n[0-3]
    cores: 2
    network: {bandwidth: 11.9GBps, latency: 0.91us}
"""
WITHOUT = EDR.replace("preset: infiniband-edr\n", "")


def exchange(size: int, turns: int) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = np.zeros(size, "b")
    for _ in range(turns):
        comm.Sendrecv_replace(data, 1 - comm.rank, 0, 1 - comm.rank)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A computer without other work."""
    monkeypatch.setattr(intervals, "is_busy", lambda: False)


@pytest.fixture
def predicted(tmp_path: Path) -> Any:
    def run(machine: str, size: int = 1000, **options: Any) -> Any:
        file = tmp_path / "machine.yaml"
        file.write_text(machine)
        return pysmpi.run(
            exchange, 2, args=(size, 20), platform=file,
            **{"map_by": "node", "compute": "none", "explain": True, **options},
        )  # fmt: skip

    return run


def test_a_part_moves_the_time_by_its_error(predicted: Any) -> None:
    """If bytes take all of the time, the ends are the time by the factors of their error."""
    cfg = {"network/error": "0;0;0.1"}
    result = predicted(EDR, size=50_000_000, cfg=cfg)
    found = result.intervals["prediction"]
    factor = exp(DEVIATE * hypot(0.1, OTHER_PATTERNS[2]))
    assert found["high_seconds"] / result.seconds == pytest.approx(factor, rel=0.01)
    assert found["low_seconds"] / result.seconds == pytest.approx(1.0 / factor, rel=0.01)
    assert found["unknown"] == []


def test_small_messages_have_the_errors_of_latencies_and_overheads(predicted: Any) -> None:
    result = predicted(EDR, size=8)
    found = result.intervals["prediction"]
    assert set(found["errors"]) >= {"latencies", "overheads"}
    alone = predicted(EDR, size=8, cfg={"network/error": "0;0;0"}).intervals["prediction"]
    # The preset has errors of its own, besides those of other patterns.
    assert found["errors"]["latencies"] > alone["errors"]["latencies"]
    assert found["high_seconds"] > alone["high_seconds"]


def test_a_network_without_a_known_error_has_no_interval(predicted: Any) -> None:
    result = predicted(WITHOUT)
    found = result.intervals["prediction"]
    assert found["low_seconds"] is None
    assert found["high_seconds"] is None
    (reason,) = found["unknown"]
    assert "preset neutral has no known error" in reason
    assert any("no interval of the prediction" in one for one in result.analysis["text"])


def test_what_takes_hardly_any_time_needs_no_error(predicted: Any) -> None:
    """Messages without a known error do not matter beside a second of compute."""
    cfg = {"compute/error": "0.1"}
    found = predicted(WITHOUT, compute="1s", cfg=cfg).intervals["prediction"]
    assert found["unknown"] == []
    assert found["errors"] == {"compute": 0.1}


def test_messages_inside_nodes_have_no_known_error(predicted: Any) -> None:
    found = predicted(EDR, map_by="core").intervals["prediction"]
    assert found["low_seconds"] is None
    assert any(one.startswith("messages inside nodes") for one in found["unknown"])
    given = predicted(EDR, map_by="core", cfg={"network/error": "0.1;0.1;0.1"})
    assert given.intervals["prediction"]["unknown"] == []


def test_an_interval_is_that_of_a_longer_record_by_shares(
    predicted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cfg = {"network/error": "0.05;0.05;0.05"}
    exact = predicted(EDR, size=8, cfg=cfg).intervals["prediction"]
    monkeypatch.setattr(intervals, "MOST_ROWS", 0)
    by_shares = predicted(EDR, size=8, cfg=cfg).intervals["prediction"]
    assert by_shares["high_seconds"] == pytest.approx(exact["high_seconds"], rel=0.1)
    assert by_shares["low_seconds"] == pytest.approx(exact["low_seconds"], rel=0.1)


@pytest.mark.parametrize(
    ("mode", "factor", "given", "shared", "error"),
    [
        ("native", 1.0, None, False, intervals.COMPUTE),
        ("native", 1.0, None, True, intervals.SHARED_COMPUTE),
        ("native", 1.4, None, False, None),
        ("native", None, None, False, None),
        ("native", 1.4, 0.2, False, 0.2),
        ("none", None, None, False, 0.0),
        ("1e-05", None, None, False, 0.0),
    ],
)
def test_the_error_of_compute(
    mode: str, factor: float | None, given: float | None, shared: bool, error: float | None
) -> None:
    assert compute_error(mode, factor, given, shared, 1.0).error == pytest.approx(error)


def test_short_blocks_have_larger_errors() -> None:
    errors = [
        compute_error("native", 1.0, None, False, block).error for block in (1e-3, 2e-6, 1e-9)
    ]
    assert errors[0] == pytest.approx(intervals.COMPUTE, rel=0.01)
    short = hypot(intervals.COMPUTE, 0.5 * intervals.CLOCK / 1e-6, intervals.COLD)
    assert errors[1] == pytest.approx(short)
    assert errors[2] == intervals.MOST


def test_a_busy_computer_measures_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    def error(shared: bool) -> float:
        found = compute_error("native", 1.0, None, shared, 1.0).error
        assert found is not None
        return found

    quiet = error(False), error(True)
    monkeypatch.setattr(intervals, "is_busy", lambda: True)
    assert error(False) > quiet[0]
    assert error(True) > max(quiet[1], error(False))
    # Compute that is given, or whose error is, has it on any computer.
    assert compute_error("none", None, None, False, 1.0).error == 0.0
    assert compute_error("native", 1.0, 0.05, False, 1.0).error == 0.05


def test_messages_inside_nodes_count_from_a_hundredth_on() -> None:
    compute = PartError("compute", ("compute",), 0.1, "")
    network = NetworkErrors(0.1, 0.1, 0.1, "checks")
    assert len(parts_of(compute, network, 0.001, "smpi")) == 4
    assert len(parts_of(compute, network, 0.1, "smpi")) == 5
    assert len(parts_of(compute, NetworkErrors(0.1, 0.1, 0.1, GIVEN), 0.1, "smpi")) == 4


def test_the_report_and_the_page_have_it(predicted: Any) -> None:
    result = predicted(EDR)
    report = json.loads(json.dumps(result.report()))
    assert report["intervals"]["prediction"] == report["analysis"]["interval"]
    assert line(result.intervals["prediction"]) in result.analysis["text"]
    assert "interval of the prediction, 90 % if its errors" in "\n".join(result.analysis["text"])


def test_runs_without_it_have_none(predicted: Any) -> None:
    assert predicted(EDR, explain=False).intervals is None
