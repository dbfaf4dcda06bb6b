"""Many messages in flight, as the calibration of a network measures and fits them."""

from __future__ import annotations

from math import sqrt

import pytest

import pysmpi
from pysmpi.calibrate.network import NetworkMeasurement, explain, platform_text, predict
from pysmpi.calibrate.network_fit import Fit, FittedPiece
from pysmpi.calibrate.network_program import FLIGHT, LARGE_FLIGHT
from pysmpi.calibrate.network_windows import WINDOWS, check_sizes, fitted_windows, window_sizes

DETACHED, LARGEST = 8192, 1 << 20


def flight(size: int) -> int:
    return FLIGHT if size <= 65536 else LARGE_FLIGHT


def pingpong(size: int) -> float:
    """Inside a computer: copies by both ends, or by one after a request and an answer."""
    return 1.8e-6 + 2e-10 * size if size < DETACHED else 4e-6 + 5e-11 * size


def window(size: int) -> float:
    """A message of a window takes as long as its copy; those that wait overlap in nothing."""
    alone = 1e-6 + 1e-10 * size if size < DETACHED else 3.5e-6 + 5e-11 * size
    return alone + pingpong(0) / flight(size)


def measured() -> NetworkMeasurement:
    """A computer with these times."""
    samples = {}
    sizes = [0, *window_sizes(LARGEST, DETACHED), *check_sizes(LARGEST, DETACHED)]
    for size in sizes:
        whole = pingpong(size)
        samples["pingpong", size] = [whole]
        samples["exchange", size] = [1.1 * whole + (5e-7 if size < DETACHED else 0.0)]
        samples["isend", size] = [4e-7]
        if size < DETACHED:
            samples["send", size] = [4e-7 + 2e-11 * size]
            samples["recv", size] = [4e-7 + 2e-11 * size]
        if size:
            samples["window", size] = [window(size)]
            samples["both", size] = [1.6 * window(size)]
    return NetworkMeasurement(samples, DETACHED, LARGEST)


def test_the_sizes_that_check_are_none_of_the_fit():
    sizes, checks = window_sizes(LARGEST, DETACHED), check_sizes(LARGEST, DETACHED)
    assert sizes[0] == 1 and sizes[-1] == LARGEST
    steps = [high / low for low, high in zip(sizes, sizes[1:]) if low > DETACHED]
    assert max(steps) < 1.01 * sqrt(2.0)
    assert len(checks) >= 5 and not set(checks) & set(sizes)
    _, held = explain(measured())
    assert set(checks) <= held and not held & set(sizes)


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """The predictions without windows and with them, and the measurement."""
    found = measured()
    first, held = explain(found)
    path = tmp_path_factory.mktemp("windows") / "here.yaml"
    sizes = sorted({size for name, size in found.samples if name == "window"})
    names = ("pingpong", *WINDOWS)

    def predicted(fit: Fit) -> dict[str, dict[int, float]]:
        path.write_text(platform_text(fit, "here", "a test", ["a test"]))
        return predict(path, sizes, names)

    before = predicted(first)
    times = found.usual({size for _, size in found.samples} - held)
    second = fitted_windows(first, times, before)
    assert second is not None
    return found, before, predicted(second), second, times


def mean(found: NetworkMeasurement, times: dict[str, dict[int, float]], name: str) -> float:
    usual = found.usual()[name]
    errors = [abs(seconds / usual[size] - 1.0) for size, seconds in times[name].items()]
    return sum(errors) / len(errors)


def test_windows_are_predicted_and_single_messages_keep_their_time(machines):
    found, before, after, _, _ = machines
    assert mean(found, before, "window") > 0.2
    assert mean(found, after, "window") < 0.08
    assert mean(found, after, "both") < min(0.3, mean(found, before, "both"))
    assert mean(found, after, "pingpong") < 0.06


def test_a_fit_that_explains_windows_is_kept(machines):
    _, _, after, second, times = machines
    exact = {
        name: {s: after[name].get(s, t) for s, t in times[name].items()} if name in after else of
        for name, of in times.items()
    }
    assert fitted_windows(second, exact, after) is None


def test_directions_that_share_nothing_have_no_limiter(machines):
    _, before, _, _, times = machines
    first, _ = explain(measured())
    free = {**times, "both": times["window"], "exchange": times["pingpong"]}
    result = fitted_windows(first, free, before)
    assert result is not None and result.limiter is None


def test_a_machine_without_a_rendezvous_has_small_pieces_only():
    piece = FittedPiece(0, (4e-7, 0.0), (4e-7, 0.0), (4e-7, 0.0), (1e-6, 1e-10))
    fit = Fit([piece], 1e10, 1e-6, 1 << 30, 1 << 30)
    sizes = (1, 1000, 100_000)
    times = {
        "pingpong": {0: 1.8e-6} | {s: 1.8e-6 + 1e-10 * s for s in sizes},
        "window": {s: 1e-6 + 1e-10 * s for s in sizes},
        "both": {s: 2e-6 + 2e-10 * s for s in sizes},
        "exchange": {},
    }
    off = {name: {s: 9.0 for s in sizes} for name in WINDOWS}
    result = fitted_windows(fit, times, off)
    assert result is not None and len(result.pieces) == 1
    (changed,) = result.pieces
    assert changed.isend[1] == pytest.approx(1e-10, rel=0.1)
    for size in sizes:
        parts = (changed.send, changed.receive, changed.network)
        whole = sum(start + slope * size for start, slope in parts)
        assert whole == pytest.approx(times["pingpong"][size], rel=0.1)


def test_windows_are_measured():
    def main():
        from mpi4py import MPI

        from pysmpi.calibrate.network_program import NetworkBench

        bench = NetworkBench(MPI.COMM_WORLD, 1000)
        return bench.run([("window", 1000), ("both", 1000), ("pingpong", 1000)])

    (rows, same) = pysmpi.run(main, 2, compute="none", map_by="node", platform="cluster").returns
    assert rows == same
    one, both, single = (seconds for _, _, seconds in rows)
    assert 0.0 < one < single and one <= both < 2.5 * one
