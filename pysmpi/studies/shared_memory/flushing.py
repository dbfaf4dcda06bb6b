"""Figures 8, 9, 10 and 12: flushing caches, and stores that pass them by."""

from __future__ import annotations

from pysmpi.memory.transfer.pipeline import copy_seconds
from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.shared_memory.transfers import KIB, MIB, XEON, described, rate, speed

SIZES = tuple(64 * KIB << step for step in range(9))
RUNS = (256 * KIB, MIB, 4 * MIB)
OTHER_SOCKET = 8
PAST, FLUSH = {"memory/stores": "non-temporal"}, {"memory/stores": "flush"}
RELEASE = {"memory/release": "flush"}


def copying(size: int, store: str, flush: str = "") -> float:
    """GB/s of the sender's copy to shared buffers that another socket has read."""
    overlap = described(XEON).overlap.at(size)
    seconds = copy_seconds(rate(XEON, "LHM", -1, size), rate(XEON, store, 1, size), overlap)
    return 1 / (seconds + (1 / rate(XEON, flush, -1, size) if flush else 0.0))


@study(
    "Figures 8, 9, 10 and 12, flushing and non-temporal stores",
    "A flush speeds the load of data that another socket has written by 10 to 100 %, and the store "
    "to a shared buffer by 5 to 10 %; non-temporal stores slow a copy by 30 %, and halve the "
    "throughput of a ping-pong",
)
def run(quick: bool) -> StudyResult:
    """Accesses by the curves of the machine, ping-pongs between sockets by runs."""
    loads = [100 * (rate(XEON, "LMI", 1, s) / rate(XEON, "LMM", 1, s) - 1) for s in SIZES]
    stores = [100 * (rate(XEON, "SHS", -1, s) / rate(XEON, "SHS", 1, s) - 1) for s in SIZES]
    usual = [copying(size, "SHS") for size in SIZES]
    past = [copying(size, "SNT") for size in SIZES]
    flushed = [copying(size, "SHS", "FHM") for size in SIZES]
    slower = [100 * (1 - one / other) for one, other in zip(past, usual)]
    severely = [100 * (1 - one / other) for one, other in zip(flushed, usual)]
    sizes = RUNS[:1] if quick else RUNS
    plain = [speed(XEON, OTHER_SOCKET, size) for size in sizes]

    def against(**cfg: str) -> list[float]:
        found = [speed(XEON, OTHER_SOCKET, size, **cfg) for size in sizes]
        return [one / other for one, other in zip(found, plain)]

    fitted, undrained = against(**PAST), against(**PAST, **{"memory/drain": "0"})
    sender, receiver = against(**FLUSH), against(**RELEASE)
    rows = [
        FigureRow(
            "figure 8: gain of a load after a flush, other socket",
            "10 to 100 %",
            span(loads, " %"),
            FITTED,
            min(loads) >= 10 and max(loads) <= 100,
        ),
        FigureRow(
            "figure 12: gain of a store after a remote flush, 64 KiB and more",
            "5 to 10 %",
            span(stores, " %"),
            FITTED,
            min(stores) >= 5 and max(stores) <= 10,
        ),
        FigureRow(
            "figure 9: copy with non-temporal stores is slower by",
            "about 30 %",
            span(slower, " %"),
            FITTED,
            min(slower) >= 25 and max(slower) <= 35,
        ),
        FigureRow(
            "figure 9: copy with a flush is slower by",
            "severely",
            span(severely, " %"),
            FITTED,
            min(severely) > 50,
        ),
        FigureRow(
            "figure 10: ping-pong with non-temporal stores / usual",
            "0.5",
            span(fitted, "", 2),
            FITTED,
            min(fitted) > 0.4 and max(fitted) < 0.6,
            span(undrained, "", 2),
        ),
        FigureRow(
            "ping-pong with a flush by the sender / usual",
            "below 1 (the new bottleneck)",
            span(sender, "", 2),
            holds=max(sender) < 1,
        ),
        FigureRow(
            "ping-pong with a flush by the receiver / usual",
            "below 1 (slows the bottleneck)",
            span(receiver, "", 2),
            holds=max(receiver) < 1,
        ),
    ]
    copies = [
        PictureCurve("usual", SIZES, usual),
        PictureCurve("non-temporal", SIZES, past),
        PictureCurve("with flush", SIZES, flushed),
    ]
    gains = [
        PictureCurve("load, other socket (figure 8)", SIZES, loads),
        PictureCurve("store (figure 12)", SIZES, stores),
    ]
    pingpongs = [
        PictureCurve("usual", sizes, plain),
        *(PictureCurve(name, sizes, [one * other for one, other in zip(ratio, plain)], style)
          for name, ratio, style in (
              ("non-temporal", fitted, "o-"), ("non-temporal, predicted", undrained, "o--"),
              ("flush by the sender", sender, "o-"), ("flush by the receiver", receiver, "o-"))),
    ]  # fmt: skip
    return StudyResult(
        rows,
        [Panel("Gain by a flush", "bytes", "%", gains, "x"),
         Panel("Sender's copy (figure 9)", "bytes", "GB/s", copies, "x"),
         Panel("Ping-pong between sockets (figure 10)", "bytes", "GB/s", pingpongs, "x")],
        "The states alone predict that non-temporal stores speed the ping-pong, since the receiver "
        "loads data from memory which the other socket would have to write back. The paper "
        "measured half of the throughput, and could not explain it; memory/drain is fitted to it.",
    )  # fmt: skip


def span(values: list[float], unit: str, digits: int = 0) -> str:
    """The smallest and the largest of some values."""
    low, high = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"
