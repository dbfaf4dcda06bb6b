"""Figures 8, 9, 10 and 12: flushing caches, and stores that pass them by."""

from __future__ import annotations

from studies.framework import Curve, Panel, Result, Row, study
from studies.shared_memory.transfers import KIB, XEON, rate

SIZES = tuple(64 * KIB << step for step in range(11))


@study(
    "Figures 8, 9, 10 and 12, flushing and non-temporal stores",
    "A flush speeds the load of data that another socket has written by 10 to 100 %, and the store "
    "to a shared buffer by 5 to 10 %",
)
def run(quick: bool) -> Result:
    """What the states say: a flushed line is in memory only, its other copy is gone."""
    loads = [100 * (rate(XEON, "LMI", 1, s) / rate(XEON, "LMM", 1, s) - 1) for s in SIZES]
    stores = [100 * (rate(XEON, "SHM", -1, s) / rate(XEON, "SHS", 0, s) - 1) for s in SIZES]
    # SHM of the L3 and below; smaller buffers hit the private caches, which SHS does not model.
    inner = [gain for size, gain in zip(SIZES, stores) if 512 * KIB <= size <= 16384 * KIB]
    rows = [
        Row("figure 8: gain of a load after a flush, other socket", "10 to 100 %",
            f"{min(loads):.0f} to {max(loads):.0f} %", holds=min(loads) >= 5 and max(loads) <= 110),
        Row("figure 12: gain of a store after a remote flush, 512 KiB to 16 MiB", "5 to 10 %",
            f"{min(inner):.0f} to {max(inner):.0f} %", holds=min(inner) >= 4 and max(inner) <= 11),
        Row("figure 9: copy with non-temporal stores", "about 30 % slower", "not modelled"),
        Row("figure 10: ping-pong with non-temporal stores", "half the throughput", "not modelled"),
    ]  # fmt: skip
    curves = [
        Curve("load, other socket (figure 8)", SIZES, loads),
        Curve("store, same socket (figure 12)", SIZES, stores),
    ]
    return Result(
        rows,
        [Panel("Gain by a flush", "bytes", "%", curves, "x")],
        "The curves are assumed between stated figures, those of stores hardly differ. There are "
        "none of non-temporal stores: the paper calls the throughput of figure 10 unexplained, and "
        "its text has no other figures to take them from.",
    )
