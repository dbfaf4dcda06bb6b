"""The ping-pongs of benchmarks/buffer_reuse.py, and the throughputs of accesses."""

from __future__ import annotations

import sys
from pathlib import Path

from pysmpi.platform import load

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from buffer_reuse import BARE, KIB, MIB, speed  # noqa: E402

XEON, OPTERON = "xeon-e5-2650", "opteron-6272"
__all__ = ["BARE", "KIB", "MIB", "OPTERON", "XEON", "rate", "speed"]


def rate(machine: str, access: str, distance: int, size: int) -> float:
    """GB/s of an access; distance -1 is the own cache, 0 the nearest level."""
    found = load(machine).hosts[0].node.throughput(access, distance, size)
    return float(found) / 1e9
