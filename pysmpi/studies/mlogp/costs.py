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
