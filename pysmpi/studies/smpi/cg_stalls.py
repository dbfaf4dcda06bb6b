"""Section V: the run of CG that messages of TCP stall."""

from __future__ import annotations

import pysmpi
from pysmpi.platform import load
from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.smpi.cg import ITERATIONS, ORDERS, RATE
from pysmpi.studies.smpi.npb_messages import cg

STALLS, STALL = 24, 0.2  # of the whole run; s
PREDICTED, MEASURED = 9.85, 14.4  # s
PARTS = 3  # of a run: the first one is simulated, with its part of the stalls
SEEDS = 3


def part(ranks: int, iterations: int, faults: list[str], seed: int = 0) -> tuple[float, int]:
    """Seconds and messages of some iterations of class B."""
    result = pysmpi.run(
        cg, ranks, args=(*ORDERS["B"], iterations, RATE), platform="graphene", selector="ompi",
        compute="none", data="none", fault=faults, seed=seed,
    )  # fmt: skip
    return result.returns[0] * iterations, result.messages


def stalls(ranks: int, count: int, seconds: float) -> list[str]:
    """Faults that stop the link of a host, as often as `count`, in a run of some seconds."""
    platform = load("graphene")
    links = platform.way(platform.hosts[0], platform.hosts[ranks - 1])
    name = next(link.name for link in links if link.name.endswith("_UP")).removesuffix("_UP")
    whole = seconds + count * STALL
    dates = [whole * (number + 0.5) / count for number in range(count)]
    return [f"link={name}@{date:.6f}:slow=1e9:for={STALL}s" for date in dates]


@study(
    "Section V, CG class B on 128 nodes, with messages that TCP sends again",
    "The real run takes 14.4 s and has 24 periods of 0.2 s in which nothing moves; without them it "
    "takes 9.55 s, near the predicted 9.85 s",
)
def run(quick: bool) -> StudyResult:
    """A run without stalls, with those of the paper, and with messages lost at random."""
    ranks, iterations, seeds = (16, 2, 2) if quick else (128, ITERATIONS // PARTS, SEEDS)
    count = 2 if quick else STALLS // PARTS
    scale = ITERATIONS / iterations
    exact, messages = part(ranks, iterations, [])
    stalled, _ = part(ranks, iterations, stalls(ranks, count, exact))
    rate = count / messages
    lost = sorted(
        scale * part(ranks, iterations, [f"drop:rate={rate!r}"], seed)[0]
        for seed in range(1, seeds + 1)
    )
    whole, with_stalls, added = scale * exact, scale * stalled, scale * count * STALL
    rows = [
        FigureRow(f"{ranks} ranks, no stalls: seconds", "" if quick else f"{PREDICTED}",
            f"{whole:.2f}", FITTED, None if quick else abs(whole / PREDICTED - 1) < 0.02),
        FigureRow("with the stalls: seconds", "" if quick else f"{MEASURED} (measured)",
            f"{with_stalls:.2f}",
            holds=None if quick else abs(with_stalls / MEASURED - 1) < 0.05),
        FigureRow("time that the stalls add / their length", "1",
            f"{(with_stalls - whole) / added:.3f}",
            holds=abs((with_stalls - whole) / added - 1) < 0.05),
        FigureRow(f"as many messages lost at random, {seeds} seeds: seconds", "",
            ", ".join(f"{value:.2f}" for value in lost)),
    ]  # fmt: skip
    if not quick:
        rest = MEASURED - STALLS * STALL
        rows.append(
            FigureRow("measured without the stalls: seconds", f"{rest:.2f} (9.55)", f"{whole:.2f}",
                holds=abs(whole / rest - 1) < 0.05)
        )  # fmt: skip
    names = ("exact", "24 stalls", *(f"seed {seed}" for seed in range(1, seeds + 1)))
    times = [whole, with_stalls, *lost]
    curve = PictureCurve("seconds", range(len(times)), times, "o")
    return StudyResult(
        rows,
        [Panel("CG class B", "", "s", [curve], ticks=names)],
        f"The first {iterations} of {ITERATIONS} iterations are simulated, with {count} stalls of "
        "the link of one node. All ranks wait for each other, so one link stops all. The timeout "
        "of a lost message is 0.2 s, the least of Linux's TCP.",
    )
