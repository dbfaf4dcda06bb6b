"""Figures 10 and 13: boxes of repeated collectives, from the deviations of single lines."""

from __future__ import annotations

from random import Random
from statistics import mean, quantiles
from typing import Any

import yaml  # type: ignore[import-untyped]

from pysmpi.memory.lines import broadcast
from pysmpi.memory.lines import reduction as reduction_model
from pysmpi.memory.lines.machine import line_costs
from pysmpi.platform import load
from pysmpi.platform.default import MACHINES
from pysmpi.platform.model import Platform
from pysmpi.studies.framework import FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.lines.collectives import collective
from pysmpi.studies.lines.model import PHI, ns
from pysmpi.studies.lines.parameters import MEASURED
from pysmpi.studies.runs import simulate

THREADS, REPEATS = (15, 30, 60), 25
SIZE = 8
OPERATIONS = {"bcast": "broadcast", "reduce": "reduction"}


def drawn(random: Random) -> Platform:
    """The Xeon Phi with latencies of a line that are drawn around their means."""
    machine: dict[str, Any] = yaml.safe_load((MACHINES / f"{PHI}.yaml").read_text(encoding="utf-8"))
    for entry in machine["nodes"][0]["latencies"]:
        distances = MEASURED.get(entry["access"])
        if distances is not None:
            usual = float(entry["time"].removesuffix("ns"))
            deviation = mean(value for _, value in distances)
            entry["time"] = f"{max(0.1 * usual, random.gauss(usual, deviation)):.3f}ns"
    return load(machine)


def limits(operation: str, count: int, platform: Platform) -> tuple[float, float]:
    """The best and the worst case of the model on a machine, in ns."""
    node = platform.hosts[0].node
    assert node is not None
    costs = line_costs(node, range(count))
    assert costs is not None
    if operation == "bcast":
        tree = broadcast.best_small(costs, count)
        return ns(broadcast.small(costs, tree)), ns(broadcast.small(costs, tree, True))
    levels = reduction_model.best_reduction(costs, count)
    # In a simulation parents set their flags while others are busy: see lines.reduction.
    least = reduction_model.reduction(costs, levels) - (len(levels) - 1) * costs.R_I
    return ns(least), ns(reduction_model.reduction(costs, levels, True))


@study(
    "Figures 10 and 13, boxes of a small broadcast and a small reduction",
    "The boxes of repeated measurements are small, and between the best and the worst case of the "
    "model",
)
def run(quick: bool) -> StudyResult:
    """Repeated collectives on machines whose lines take times around their means."""
    threads, repeats = (THREADS[:1], 5) if quick else (THREADS, REPEATS)
    rows, panels = [], []
    for operation, title in OPERATIONS.items():
        boxes = []
        for count in threads:
            random = Random(f"{operation} {count}")
            times, inside = [], 0
            for _ in range(repeats):
                platform = drawn(random)
                seconds = simulate(
                    collective, count, operation, SIZE, platform=platform,
                    selector="coherence_tuned", map_by="core", cfg={"memory/overhead": "1us"},
                )  # fmt: skip
                best, worst = limits(operation, count, platform)
                inside += best * 0.999 <= ns(seconds) <= worst
                times.append(ns(seconds))
            box = (min(times), *quantiles(times, n=4), max(times))
            boxes.append(box)
            rows += [
                FigureRow(f"{title}, {count} threads: least, quartiles, most in ns",
                    "in the figure only", ", ".join(f"{value:.0f}" for value in box)),
                FigureRow(f"{title}, {count} threads: between best and worst case", "all",
                    f"{inside} of {repeats}", holds=inside == repeats),
                FigureRow(f"{title}, {count} threads: box / median", "small",
                    f"{(box[3] - box[1]) / box[2]:.2f}",
                    holds=(box[3] - box[1]) / box[2] < 0.25),
            ]  # fmt: skip
        names = ("least", "25 %", "median", "75 %", "most")
        curves = [
            PictureCurve(name, threads, [box[at] for box in boxes], "o" if at == 2 else "_")
            for at, name in enumerate(names)
        ]
        panels.append(Panel(f"Repeated {title} of {SIZE} bytes", "threads", "ns", curves))
    return StudyResult(
        rows,
        panels,
        "The latencies of each repetition are drawn from the means and the deviations of table 2a, "
        "and the model has the same ones. All reads of a repetition vary together, which makes the "
        "boxes wider than reads that vary alone. The paper draws its boxes and prints no figures "
        "of them.",
    )
