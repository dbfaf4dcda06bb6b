"""Simulations that studies share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pysmpi

MODELS = ("hybrid", "fluid", "loggps")


def simulate(
    program: Callable[..., Any], ranks: int, *args: Any, platform: str = "graphene", **options: Any
) -> Any:
    """What rank 0 of a program returns, with no time for its own computation."""
    options = {"compute": "none", "selector": "ompi", **options}
    return pysmpi.run(program, ranks, args=args, platform=platform, **options).returns[0]


def speedup(times: dict[int, float]) -> dict[int, float]:
    """Speed-up relative to the smallest number of ranks, at which it is that number."""
    least = min(times)
    return {ranks: least * times[least] / seconds for ranks, seconds in times.items()}
