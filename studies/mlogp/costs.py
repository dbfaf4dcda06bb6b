"""The experiments of the paper, as benchmarks/middleware_costs.py runs them."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import middleware_costs  # noqa: E402

SIZES, STRIDES = middleware_costs.SIZES, middleware_costs.STRIDES


@cache
def rows(quick: bool) -> list[dict[str, Any]]:
    """All costs (s) of each size and stride."""
    sizes, strides = ((4096,), (8, 512)) if quick else (SIZES, STRIDES)
    found: list[dict[str, Any]] = middleware_costs.compare(sizes, strides)
    return found


def summary(quick: bool) -> dict[str, float]:
    """The figures that the paper states, in percent."""
    found: dict[str, float] = middleware_costs.summary(rows(quick))
    return found


def label(row: dict[str, Any]) -> str:
    """A size and stride as the paper writes them."""
    return f"{row['size'] // 1024}K{row['stride']}S"
