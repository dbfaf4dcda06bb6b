"""Sets of values of the network's options: one for each model, and presets of model hybrid.

A model's own values apply unless the machine or the user gives others.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from pysmpi.errors import UsageError

NEUTRAL, SMPI = "neutral", "smpi"


@dataclass(frozen=True)
class Preset:
    """Values of options: factors as segments by size, `weight`, `gamma` and `eager` in bytes."""

    line: str
    latency_factor: str = "1"
    bandwidth_factor: str = "1"
    weight: float = 0.0
    gamma: float = 4194304.0
    cross_traffic: bool = True
    eager: float = 0.0


# Factors of model hybrid where neither the machine nor the user gives them.
HYBRID = {
    NEUTRAL: Preset(
        "links as the machine gives them, eager messages below 64 KiB; the default",
        gamma=0.0,
        cross_traffic=False,
        eager=65536.0,
    ),
    # Fitted by SMPI's authors to TACC's Stampede (SimGrid's documentation, "network/model").
    SMPI: Preset(
        "SMPI's own factors, window and cross-traffic; the default of SimGrid's files",
        "0:2.01467;257:1.95341;732:1.9503;1426:1.61075;3484:1.88101;5776:2.18796;"
        "9376:2.59299;15424:3.48845;65472:11.6436",
        "0:0.812084;257:0.338112;732:0.341987;1426:0.608902;3484:0.77493;5776:1.08739;"
        "9376:0.58729;15424:0.697866;65472:0.940694",
        8775.0,
    ),
}

LV08 = Preset("Velho and Legrand 2008", "13.01", "0.97", 20537.0)
CM02 = Preset("Casanova and Marchal 2002")
RAW = Preset("no window and no cross-traffic", gamma=0.0, cross_traffic=False)


def find(name: str) -> Preset:
    """The preset of model hybrid called `name`; UsageError if there is none."""
    if name not in HYBRID:
        close = get_close_matches(name.lower(), HYBRID, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise UsageError(
            f"network/preset: expected one of {', '.join(HYBRID)}, found {name!r}{hint}"
        )
    return HYBRID[name]
