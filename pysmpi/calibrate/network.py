"""Calibration of a network: sizes drawn at random are measured, fitted, and some held out."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import numpy as np

from pysmpi.calibrate import network_program
from pysmpi.calibrate.network_fit import Fit, fit, pieces, spread
from pysmpi.calibrate.network_program import EXPERIMENTS, NetworkBench
from pysmpi.calibrate.network_windows import (
    WINDOWS,
    check_sizes,
    fitted_windows,
    window_sizes,
)
from pysmpi.errors import PysmpiError
from pysmpi.network.errors import written
from pysmpi.own_process.descendants import end_with_parent
from pysmpi.platform.units import format_bandwidth, format_time

Samples = dict[tuple[str, int], list[float]]

HELD_OUT = 0.2  # part of the sizes that is predicted, not fitted
CHECKED = ("pingpong", "exchange", *WINDOWS)
ROUNDS = 2  # rounds of more sizes near the borders of pieces
CLOSER = 6  # sizes of each
CLOSE = 1.05  # factor of the neighbours of a size
SAME = 3  # lowest times of a size that have to agree
SAME_DISTURBED = 5  # the same if a typical time is longer than DISTURBED times the lowest
DISTURBED = 1.25
AGREEING = 1.06  # within this factor
MORE = 60  # repeats until they do
LEAST_NOISE = 2e-3  # relative; smaller noise comes from the clock
# Variables of launchers, which would make a simulated run believe that it is a real rank.
LAUNCHERS = ("PMI", "PMIX", "OMPI", "MPI_", "MPICH", "HYDRA", "HYDI", "SLURM", "PRTE")
PATIENCE = 600.0  # seconds for the simulation that checks


@dataclass
class NetworkMeasurement:
    """The measurements of both ends: seconds of repeats, and the size from which sends block.

    `cut_short` tells that the time limit ended them.
    """

    samples: Samples
    detached: int
    largest: int
    cut_short: bool = False

    def usual(self, sizes: set[int] | None = None) -> dict[str, dict[int, float]]:
        """The usual time of each experiment by size, of some sizes or all.

        This is the second lowest, because other work of the computers only slows messages down,
        and a single time may be wrong.
        """
        result: dict[str, dict[int, float]] = {name: {} for name in EXPERIMENTS}
        for (name, size), values in sorted(self.samples.items()):
            if sizes is None or size in sizes:
                result[name][size] = sorted(values)[min(1, len(values) - 1)]
        return result


def drawn(largest: int, count: int, seed: int) -> list[int]:
    """Sizes drawn at random, as many in each factor of two; the smallest and the largest too."""
    draw = Random(seed)
    steps = [(i + draw.random()) / count for i in range(count)]
    return sorted({0, 1, largest, *(int((largest + 1) ** step) for step in steps)})


def measure(
    comm: Any, largest: int, count: int, repeats: int, seed: int = 1, seconds: float = inf
) -> NetworkMeasurement:
    """Measure between the two ranks of `comm`; collective, and the same on both.

    After `repeats`, the sizes whose lowest times differ are measured again, up to MORE times:
    something else ran on the computers. After `seconds`, each size has been measured at least once,
    and no further repeats are made.
    """
    end = monotonic() + seconds
    bench = NetworkBench(comm, largest)
    bench.run([(name, 1) for name in EXPERIMENTS])  # warms up
    detached = bench.threshold(largest)
    samples: Samples = {}

    def take(sizes: Sequence[int], seed: int, flights: Sequence[int] = ()) -> None:
        small = [size for size in sizes if size < detached]
        plan = bench.plan(("pingpong", "exchange", "isend"), list(sizes))
        plan += bench.plan(("send", "recv"), small)
        # Among windows, single messages find the buffers of the library as programs find them.
        plan += bench.plan(WINDOWS, list(flights))
        order = Random(seed)
        for turn in range(repeats + MORE):
            if turn >= repeats:
                plan = [item for item in plan if repeats > SAME and not _settled(samples[item])]
            if not plan:
                return
            if turn and late():
                result.cut_short = turn < repeats
                return
            order.shuffle(plan)
            for name, size, took in bench.run(plan):
                samples.setdefault((name, size), []).append(max(took, 1e-9))

    def late() -> bool:
        return bool(comm.bcast(monotonic() > end, 0))

    result = NetworkMeasurement(samples, detached, largest)
    flights = [*window_sizes(largest, detached), *check_sizes(largest, detached)]
    take(sorted({*drawn(largest, count, seed), *flights}), seed, flights)
    for turn in range(ROUNDS):
        if late():
            result.cut_short = True
            break
        closer = _closer(result, seed + turn) if comm.rank == 0 else None
        take(comm.bcast(closer, 0), seed + turn + 1)
    return result


def _settled(values: Sequence[float]) -> bool:
    """Whether the lowest times of a message agree, so that they are those of idle computers."""
    ordered = sorted(values)
    # Disturbed times can agree by chance, so where there are many, more have to agree.
    disturbed = ordered[len(ordered) // 2] > DISTURBED * ordered[0]
    count = SAME_DISTURBED if disturbed else SAME
    return len(ordered) >= count and ordered[count - 1] <= AGREEING * ordered[0]


def _series(times: Mapping[str, Mapping[int, float]], detached: int) -> list[dict[int, float]]:
    below = [{s: t for s, t in times[name].items() if s < detached} for name in ("send", "recv")]
    return [dict(times["pingpong"]), *below]


def _closer(found: NetworkMeasurement, seed: int) -> list[int]:
    """More sizes between the last of one piece and the first of the next."""
    times = found.usual()
    firsts = pieces(
        _series(times, found.detached), max(spread(found.samples), LEAST_NOISE), found.detached
    )
    known = sorted(times["pingpong"])
    draw = Random(seed)
    more = {found.detached - 1, found.detached} if found.detached <= found.largest else set()
    for first in firsts[1:]:
        below = known[known.index(first) - 1]
        for _ in range(CLOSER):
            more.add(int(below * (first / below) ** draw.random()) if below else first // 2)
    return sorted(more - set(known))


def explain(found: NetworkMeasurement, seed: int = 1) -> tuple[Fit, set[int]]:
    """The fit to a part of the sizes, and those that are held out."""
    sizes = sorted({size for _, size in found.samples})
    draw = Random(seed)
    held = {
        size
        for low, size, high in zip(sizes[1:], sizes[2:-2], sizes[3:])
        # Sizes close to each other show where a piece ends.
        if draw.random() < HELD_OUT and high > CLOSE * low
    }
    held -= set(window_sizes(found.largest, found.detached))
    held |= set(check_sizes(found.largest, found.detached)) & set(sizes)
    used = {size for size in sizes if size not in held}
    noise = max(spread(found.samples), LEAST_NOISE)
    return fit(found.usual(used), noise, found.detached), held


def with_windows(
    result: Fit, found: NetworkMeasurement, held: set[int], machine: Path
) -> Fit | None:
    """The fit that also explains windows of messages; None if `result`, in the file, does."""
    used = {size for _, size in found.samples} - held
    times = found.usual(used)
    sizes = sorted(times["window"])
    if not sizes:
        return None
    return fitted_windows(result, times, predict(machine, sizes, WINDOWS))


def platform_text(result: Fit, name: str, description: str, sources: Sequence[str]) -> str:
    """The platform file of two hosts with the measured values, and their errors if known."""
    import yaml  # type: ignore[import-untyped]

    cluster: dict[str, object] = {
        "name": name,
        "hosts": f"{name}-[0-1]",
        "network": {
            "bandwidth": format_bandwidth(float(f"{result.bandwidth:.6g}")),
            "latency": format_time(float(f"{result.latency:.6g}")),
        },
    }
    if result.limiter is not None:
        cluster["limiter"] = format_bandwidth(float(f"{result.limiter:.6g}"))
    top = {
        "name": name,
        "description": description,
        "sources": list(sources),
        "config": result.options() | _errors(result),
        "clusters": [cluster],
    }
    return str(yaml.safe_dump(top, sort_keys=False, width=100))


def _errors(result: Fit) -> dict[str, str]:
    """The errors of sizes that were held out, as an option; ping-pongs show all three parts."""
    if not result.errors:
        return {}
    worst = max(mean for mean, _ in result.errors.values())
    return {"network/error": written([worst] * 3)}


def predict(
    path: Path, sizes: Sequence[int], names: Sequence[str] = CHECKED
) -> dict[str, dict[int, float]]:
    """Seconds of experiments on a platform file, simulated in another process."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith(LAUNCHERS)}
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "times.json"
        done = subprocess.run(
            [
                sys.executable, "-m", "pysmpi", "run", "-n", "2", "--platform", str(path),
                "--map-by", "node", "--compute", "none", "--cfg", "smpi/wtime:0",
                network_program.__file__, str(output), ",".join(names), *map(str, sizes),
            ],
            env=keep, capture_output=True, text=True, timeout=PATIENCE,
            preexec_fn=partial(end_with_parent, os.getpid()),
        )  # fmt: skip
        if done.returncode != 0:
            raise PysmpiError(f"calibrate network: the simulated check failed: {done.stderr}")
        result: dict[str, dict[int, float]] = {name: {} for name in names}
        for name, size, seconds in json.loads(output.read_text(encoding="utf-8")):
            result[name][size] = seconds
    return result


def check(path: Path, found: NetworkMeasurement, held: set[int]) -> dict[str, tuple[float, float]]:
    """Mean and worst relative error of the held-out sizes, by experiment."""
    predicted = predict(path, sorted(held))
    measured = found.usual(held)
    errors = {}
    for name in CHECKED:
        each = [abs(predicted[name][s] / usual - 1.0) for s, usual in measured[name].items()]
        errors[name] = (float(np.mean(each)), max(each)) if each else (0.0, 0.0)
    return errors


def write_raw(path: Path, found: NetworkMeasurement, held: set[int]) -> None:
    """Write all measured times, one a line."""
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("experiment", "bytes", "seconds", "held_out"))
        for (name, size), values in sorted(found.samples.items()):
            for seconds in values:
                writer.writerow((name, size, f"{seconds:.9g}", int(size in held)))


def draw(path: Path, found: NetworkMeasurement, result: Fit, machine: Path) -> None:
    """A plot of the fit and the measurements. Needs matplotlib."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 6), layout="constrained")
    for number, (name, times) in enumerate(found.usual().items()):
        points = {s: t for s, t in times.items() if s > 0}
        axes.plot(
            list(points), [t * 1e6 for t in points.values()], ".", color=f"C{number}", label=name
        )
    sizes = sorted(size for size in found.usual()["pingpong"] if size > 0)
    for name, times in predict(machine, sizes).items():
        color = f"C{EXPERIMENTS.index(name)}"
        axes.plot(sizes, [times[s] * 1e6 for s in sizes], "-", color=color, label=f"{name}, fit")
    for piece in result.pieces[1:]:
        axes.axvline(piece.first, color="0.85", zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="bytes", ylabel="us")
    axes.legend()
    figure.savefig(path)
    pyplot.close(figure)
