"""The costs and the figures of the experiments, once for all studies."""

from __future__ import annotations

from functools import cache

from pysmpi.studies.mlogp import experiments
from pysmpi.studies.mlogp.experiments import SIZES, STRIDES, CostFigures


@cache
def rows(quick: bool) -> list[CostFigures]:
    """All costs (s) of each size and stride."""
    sizes, strides = ((4096,), (8, 512)) if quick else (SIZES, STRIDES)
    return experiments.compare(sizes, strides)


def summary(quick: bool) -> dict[str, float]:
    """The figures that the paper states, in percent."""
    return experiments.summary(rows(quick))


def label(row: CostFigures) -> str:
    """A size and stride as the paper writes them."""
    return f"{int(row['size']) // 1024}K{int(row['stride'])}S"


@cache
def by_bcast(quick: bool, model: str, kind: str) -> list[float]:
    """Times of MPI_Bcast under a model by those of its formula, for each size and stride."""
    sizes, strides = ((4096,), (8, 512)) if quick else (SIZES, STRIDES)
    return [experiments.under(model, kind, size, stride) for size in sizes for stride in strides]


@cache
def table(quick: bool) -> dict[str, float]:
    """The stated averages, in percent, under 2log_{2,3}P with the machine's f(s, d)."""
    sizes, strides = ((4096,), (8, 512)) if quick else (SIZES, STRIDES)
    pairs = [
        tuple(experiments.cost(size, stride, inside, "2log_23P") for inside in (True, False))
        for size in sizes
        for stride in strides
    ]
    less = [
        (1 - near.overhead / far.overhead, 1 - near.latency / far.latency,
         1 - near.middleware / far.middleware)
        for near, far in pairs
    ]  # fmt: skip
    overheads, latencies, both = zip(*less)
    return {
        "overhead": 100 * sum(overheads) / len(less),
        "latency": 100 * max(latencies),
        "middleware": 100 * sum(both) / len(less),
    }
