"""The interval of a prediction: how far the errors of its parts can move the predicted time.

Each part of the model has an error (the standard deviation of a logarithm). The recorded run is
evaluated again with each part by 1.645 standard deviations cheaper and dearer, which are the ends
of an interval of 90 % of a normal error. The parts are independent, so that the squares of their
effects add up.

A part without a known error that could change the time leaves the interval unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, hypot

from pysmpi import text
from pysmpi.analysis.graph import EventGraph, Scales
from pysmpi.network.errors import GIVEN, NetworkErrors
from pysmpi.time.figures import IntervalFigures
from pysmpi.time.host_speed import is_busy

LEVEL = 0.9
DEVIATE = 1.645  # of a normal distribution, between whose values of both signs are 90 %
# Parts without a known error do not count if twice their cost changes the time by at most this.
SMALL = 0.01
# Errors of measured compute on the same computer: of one rank, of one rank while more processes run
# than the computer has processors, and of ranks that compute at a time
# (docs/explanation/intervals.md).
COMPUTE = 0.1
BUSY_COMPUTE = 0.3
SHARED_COMPUTE = 0.25
# The error (s) of the time of a block: two looks at a clock, and the boundary of calls.
CLOCK = 0.1e-6
# The error of a block of up to so many seconds, in which caches were cold. That of a longer one is
# smaller in proportion. It was fitted to half of 25 programs, and held for the others.
COLD, COLD_BLOCK = 0.35, 20e-6
MOST = 1.0  # largest error of a part
MOST_ROWS = 1_000_000  # of a record that is evaluated again; larger ones use shares of the path


@dataclass(frozen=True)
class PartError:
    """A part of the model, the costs that belong to it, and its error; None: not known."""

    name: str
    costs: tuple[str, ...]  # attributes of `Scales`
    error: float | None
    source: str


def prediction_interval(
    graph: EventGraph,
    parts: Sequence[PartError],
    shares: dict[str, float],
    sampled: tuple[float, float] = (0.0, 0.0),
) -> IntervalFigures:
    """The interval of the predicted time (s) with 90 % probability.

    `shares` are those of the costs in the critical path, for long records. `sampled` are the
    seconds by which the interval of sampling reaches below and above the predicted time.
    """
    seconds = graph.seconds
    below, above = sampled
    unknown: list[str] = []
    errors: dict[str, float] = {}
    for part in parts:
        if part.error is None:
            dearer = _changed(graph, part, 2.0, shares) - seconds
            cheaper = seconds - _changed(graph, part, 0.5, shares)
            if max(dearer, 2.0 * cheaper) > SMALL * seconds:
                unknown.append(f"{part.name}: {part.source}")
            continue
        if part.error == 0.0:
            continue
        factor = exp(DEVIATE * part.error)
        low = seconds - _changed(graph, part, 1.0 / factor, shares)
        high = _changed(graph, part, factor, shares) - seconds
        if max(low, high) <= 0.0:
            continue
        errors[part.name] = part.error
        below, above = hypot(below, max(low, 0.0)), hypot(above, max(high, 0.0))
    known = not unknown
    return {
        "level": LEVEL,
        "low_seconds": max(0.0, seconds - below) if known else None,
        "high_seconds": seconds + above if known else None,
        "errors": errors,
        "sources": [part.source for part in parts if part.name in errors],
        "unknown": unknown,
    }


def _changed(
    graph: EventGraph, part: PartError, factor: float, shares: dict[str, float]
) -> float:  # fmt: skip
    """The makespan (s) if the costs of a part are multiplied by a factor."""
    if len(graph.kind) > MOST_ROWS:
        share = sum(shares.get(cost, 0.0) for cost in part.costs)
        return graph.seconds * (1.0 + share * (factor - 1.0))
    scales = Scales()
    for cost in part.costs:
        setattr(scales, cost, factor)
    return graph.makespan(scales)


def line(interval: IntervalFigures) -> str:
    """The interval of a prediction as a line for people."""
    if interval["unknown"]:
        return f"no interval of the prediction: {'; '.join(interval['unknown'])}"
    low, high = interval["low_seconds"], interval["high_seconds"]
    assert low is not None and high is not None
    ends = text.range_of_seconds(low, high)
    parts = ", ".join(f"{name} {error:.0%}" for name, error in interval["errors"].items())
    because = f"; standard errors: {parts}" if parts else "; nothing in it has an error"
    return f"interval of the prediction, 90 % if its errors are right: {ends}{because}"


def parts_of(
    compute: PartError, network: NetworkErrors | None, local: float, preset: str | None
) -> list[PartError]:
    """The parts of a run: compute, and messages.

    `local` is the part of the critical path that messages inside nodes take. `network` is None if
    its errors are not known.
    """
    if network is None:
        what = "this model" if preset is None else f"preset {preset}"
        source = f"{what} has no known error, and network/error is not set"
        return [compute, PartError("messages", ("latency", "overhead", "transfer"), None, source)]
    parts = [
        compute,
        PartError("latencies", ("latency",), network.latency, network.source),
        PartError("overheads", ("overhead",), network.overhead, network.source),
        PartError("bandwidths", ("transfer",), network.bandwidth, network.source),
    ]
    if local > SMALL and network.source != GIVEN:
        why = "their times have no known error, and network/error is not set"
        names = ("latency", "overhead", "transfer")
        parts.append(PartError("messages inside nodes", names, None, why))
    return parts


def compute_error(
    mode: str, factor: float | None, given: float | None, shared: bool, block: float
) -> PartError:
    """The error of the compute of a run.

    `mode` is that of the report, `factor` the one that scaled measured compute, `given` the value
    of `compute/error`. `shared` tells whether several ranks compute on a node whose memory they do
    not share. `block` is the mean time (s) of a block of the critical path.
    """
    costs = ("compute",)
    short = 0.0
    if block > 0.0:
        short = hypot(CLOCK / block, COLD * min(1.0, COLD_BLOCK / block))
    if given is not None:
        return PartError("compute", costs, given, "compute/error")
    if mode == "none" or factor is None and mode not in ("native", "steady"):
        return PartError("compute", costs, 0.0, "compute that is given")
    if factor != 1.0:
        why = "it is scaled to another core by one factor, and compute/error is not set"
        return PartError("compute", costs, None, why)
    why, error = "compute measured on this computer", COMPUTE
    if shared:
        why, error = "compute of ranks of a node, measured one by one", SHARED_COMPUTE
    if is_busy():
        why, error = f"{why} while it was busy", hypot(BUSY_COMPUTE, error if shared else 0.0)
    return PartError("compute", costs, min(hypot(error, short), MOST), why)
