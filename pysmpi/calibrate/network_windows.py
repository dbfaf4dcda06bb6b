"""Many messages in flight: windows in one direction, and in both at once.

The fit of `network_fit` explains messages one by one. In a window, the model overlaps the latencies
of all messages. Inside a computer there is less to overlap: the processors of both ends copy each
byte, a message after the other. Where simulated windows differ from measured ones, the parameters
change. Single messages keep their times.

- Of messages that do not wait for their receive, the sender's start takes as long as a message of a
  window, and the receive what a message in each direction takes besides.
- Of larger ones, the transfer takes as long as a message of a window, and the rest of a ping-pong
  is latency. Each measured size has a piece. The limiter follows from windows in both directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import sqrt
from statistics import median

from pysmpi.calibrate.network_fit import LIMITED, NETWORK_PART, Fit, FittedPiece, Times, line
from pysmpi.calibrate.network_program import FLIGHT, LARGE_FLIGHT

WINDOWS = ("window", "both")
OFF = 0.08  # mean error of simulated windows above which the parameters change
SMALL_STEP, LARGE_STEP = 2.0, sqrt(2.0)  # between the sizes of windows
MOST_LIMITED = 2.0  # factor of time of windows in both directions, if the directions share all
# The smallest parts of a ping-pong that are latency, and the largest that the receiver works.
LEAST_LATENCY, MOST_RECEIVE = 0.02, 0.8


def window_sizes(largest: int, detached: int) -> list[int]:
    """The sizes of windows: denser where messages wait for their receive."""
    sizes: list[int] = []
    size = 1.0
    while size <= largest:
        sizes.append(int(size))
        step = SMALL_STEP if size * SMALL_STEP < detached else LARGE_STEP
        size *= step
    return sorted({*sizes, largest})


def check_sizes(largest: int, detached: int) -> list[int]:
    """The sizes of windows that only check the fit: between others, where it is worst."""
    sizes = window_sizes(largest, detached)
    return [round(sqrt(low * high)) for low, high in zip(sizes[1::3], sizes[2::3])]


def fitted_windows(
    result: Fit, times: Mapping[str, Times], simulated: Mapping[str, Times]
) -> Fit | None:
    """The fit that explains windows, too; None if `result` does.

    `times` are measured, those of windows among sizes of ping-pongs. `simulated` are the windows on
    the machine of `result`.
    """
    pieces: list[FittedPiece] = []
    changed = False
    limiter, bandwidth = result.limiter, result.bandwidth
    for piece, after in zip(result.pieces, [*(p.first for p in result.pieces[1:]), 1 << 62]):
        if piece.first >= result.eager:
            continue
        sizes = [s for s in _common(times) if piece.first <= s < after]
        if len(sizes) > 1 and _off(times, simulated, sizes):
            piece, changed = _copied_twice(piece, times, sizes), True
        pieces.append(piece)
    large = [piece for piece in result.pieces if piece.first >= result.eager]
    sizes = [s for s in _common(times) if s >= result.eager]
    if len(sizes) > 1 and large and _off(times, simulated, sizes):
        large, changed = _one_after_another(large[0], times, sizes), True
        bandwidth = max(1.0 / piece.network[1] for piece in large)
        slower = min(median(_slower(times, sizes)), MOST_LIMITED)
        limiter = 2.0 * bandwidth / slower if slower > LIMITED else None
    if not changed:
        return None
    return replace(result, pieces=[*pieces, *large], bandwidth=bandwidth, limiter=limiter)


def _common(times: Mapping[str, Times]) -> list[int]:
    return sorted(set(times["window"]) & set(times["both"]) & set(times["pingpong"]))


def _off(times: Mapping[str, Times], simulated: Mapping[str, Times], sizes: list[int]) -> bool:
    errors = [
        abs(simulated[name][s] / times[name][s] - 1.0)
        for name in WINDOWS
        for s in sizes
        if s in simulated[name]
    ]
    return bool(errors) and sum(errors) / len(errors) > OFF


def _slower(times: Mapping[str, Times], sizes: list[int]) -> list[float]:
    """The factors of time of messages that have others the other way, single and in windows."""
    exchange, pingpong = times["exchange"], times["pingpong"]
    single = [exchange[s] / pingpong[s] for s in exchange if s >= sizes[0] and s in pingpong]
    return [*single, *(times["both"][s] / _alone(times, s) for s in sizes)]


def _alone(times: Mapping[str, Times], size: int) -> float:
    """The time (s) of a message of a window, without the answer that ends the window."""
    pingpong = times["pingpong"]
    flight = FLIGHT if size <= 65536 else LARGE_FLIGHT
    return max(times["window"][size] - min(pingpong.values()) / flight, 1e-9)


def _copied_twice(piece: FittedPiece, times: Mapping[str, Times], sizes: list[int]) -> FittedPiece:
    """A piece of small messages, whose both ends work at each message."""
    starts, receives, rests = [], [], []
    for s in sizes:
        whole, one = times["pingpong"][s], _alone(times, s)
        send = piece.send[0] + piece.send[1] * s
        most = min(MOST_RECEIVE * whole, (1.0 - NETWORK_PART) * whole - send, one)
        receive = max(min(times["both"][s] - one, most), 1e-9)
        starts.append(one)
        receives.append(receive)
        rests.append(max(whole - send - receive, NETWORK_PART * whole))
    return replace(
        piece, isend=line(sizes, starts), receive=line(sizes, receives), network=line(sizes, rests)
    )


def _one_after_another(
    first: FittedPiece, times: Mapping[str, Times], sizes: list[int]
) -> list[FittedPiece]:
    """A piece for each size of large messages, which take the network one after the other."""
    pingpong = times["pingpong"]
    # Between two sizes, the nearer one holds.
    ends = [round(sqrt(low * high)) for low, high in pairwise(sizes)]
    result = []
    for begin, s, end in zip([first.first, *ends], sizes, [*ends, 1 << 62]):
        transfer = min(_alone(times, s), (1.0 - LEAST_LATENCY) * pingpong[s])
        slope = transfer / s
        latency = median(pingpong[one] - slope * one for one in pingpong if begin <= one < end)
        latency = max(latency, LEAST_LATENCY * pingpong[s])
        start = min(first.isend[0], 0.5 * transfer)
        result.append(FittedPiece(begin, (0.0, 0.0), (start, 0.0), (0.0, 0.0), (latency, slope)))
    return result
