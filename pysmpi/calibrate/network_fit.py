"""Fit of the parameters of the hybrid model to times of messages.

Times grow piecewise linearly with the size. Dynamic programming over all divisions of the sizes
finds the pieces that best explain sends, receives and ping-pongs together; the Bayesian information
criterion limits their number. Residuals are relative to the time, so that small messages count as
much as large ones. In each piece there are three straight lines without negative parameters: the
overheads of both sides, and the rest of a ping-pong, which is the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log, sqrt

import numpy as np
from scipy.optimize import nnls  # type: ignore[import-untyped]

from pysmpi.network.flows import ENVELOPE

Line = tuple[float, float]  # seconds, seconds a byte
Times = Mapping[int, float]  # seconds by size

LEAST = 4  # sizes of a piece
MOST = 10  # pieces
# The smallest part of a ping-pong that belongs to the network.
NETWORK_PART = 0.1
# A slope smaller than that of large messages by this factor means no dependence on the size.
FLATTEST = 1e-3
OFF = 0.05  # an exchange that is predicted worse than this shows another cost of its sends
LIMITED = 1.03  # factor of time a byte with a message each way: more than this is a limiter


@dataclass
class FittedPiece:
    """Sizes from `first` on: overheads of both sides, and the network's part of a message."""

    first: int
    send: Line
    isend: Line
    receive: Line
    network: Line


@dataclass
class Fit:
    """The fit: bytes/s and seconds of the network, the pieces, sizes of the protocol.

    At `detached` bytes or more a send waits for its receive; at `eager` or more its bytes do.
    `limiter` is the limit of sending and receiving together at one end (bytes/s), or None.
    """

    pieces: list[FittedPiece]
    bandwidth: float
    latency: float
    detached: int
    eager: int
    limiter: float | None = None
    errors: dict[str, tuple[float, float]] = field(default_factory=dict)  # mean, worst

    def options(self) -> dict[str, str]:
        """The fit as options of SMPI; bounds of factors count the envelope."""

        def overheads(name: str) -> str:
            return ";".join(
                f"{_bound(p.first)}:{getattr(p, name)[0]:.6g}:{getattr(p, name)[1]:.6g}"
                for p in self.pieces
            )

        latencies, bandwidths = [], []
        for piece in self.pieces:
            bound = _bound(piece.first) + (ENVELOPE if piece.first > 0 else 0)
            start, slope = piece.network
            slope = max(slope, FLATTEST / self.bandwidth)
            latencies.append(f"{bound}:{max(start - ENVELOPE * slope, 0.0) / self.latency:.6g}")
            bandwidths.append(f"{bound}:{1.0 / (slope * self.bandwidth):.6g}")
        return {
            "smpi/os": overheads("send"),
            "smpi/ois": overheads("isend"),
            "smpi/or": overheads("receive"),
            "smpi/lat-factor": ";".join(latencies),
            "smpi/bw-factor": ";".join(bandwidths),
            "smpi/async-small-thresh": str(self.eager),
            "smpi/send-is-detached-thresh": str(self.detached),
        }


def _bound(first: int) -> int:
    """Segments hold above their bound."""
    return max(first - 1, 0)


def line(sizes: Sequence[int], times: Sequence[float]) -> Line:
    """The straight line through times, with relative residuals and no negative parameter."""
    x, y = np.asarray(sizes, float), np.asarray(times, float)
    if len(x) == 0:
        return 0.0, 0.0
    scale = max(float(x.max()), 1.0)
    result, _ = nnls(np.stack([1.0 / y, x / scale / y], 1), np.ones(len(y)))
    return float(result[0]), float(result[1]) / scale


def _cost(x: np.ndarray, y: np.ndarray) -> float:
    """The sum of squared relative residuals of the best line."""
    matrix = np.stack([1.0 / y, x / max(x[-1], 1.0) / y], 1)
    solution, *_ = np.linalg.lstsq(matrix, np.ones(len(y)), rcond=None)
    return float(np.sum((matrix @ solution - 1.0) ** 2))


def pieces(series: Sequence[Times], noise: float, cut: int) -> list[int]:
    """The first size of each piece. All series are explained together.

    `noise` is the least relative deviation of one time; neighbouring sizes of a series may show
    that its times deviate more. No piece goes across `cut`.
    """
    sizes = sorted({size for times in series for size in times})
    count = len(sizes)
    known = [
        (np.array([s for s in sizes if s in times], float),
         np.array([times[s] for s in sizes if s in times]))
        for times in series
    ]  # fmt: skip
    noises = [max(noise, scatter(times)) for times in series]
    costs: dict[tuple[int, int], float] = {}
    for i in range(count):
        for j in range(i + 1, count + 1):
            low, high = sizes[i], sizes[j - 1]
            if low < cut <= high:
                continue
            whole = i == 0 and (j == count or sizes[j] == cut) or low == cut
            if j - i < LEAST and not (whole and j - i > 1) and not (low == high == 0):
                continue
            total = 0.0
            for (x, y), each in zip(known, noises):
                inside = (x >= low) & (x <= high)
                if inside.sum() > 2:
                    total += _cost(x[inside], y[inside]) / each**2
            costs[i, j] = total
    penalty = (2 * len(series) + 1) * log(max(sum(len(x) for x, _ in known), 2))
    best: list[tuple[float, list[int]]] = [(0.0, [])]
    best.extend((inf, []) for _ in range(count))
    layers = []
    for _ in range(MOST):
        after: list[tuple[float, list[int]]] = [(inf, [])] * (count + 1)
        for (i, j), cost in costs.items():
            total = best[i][0] + cost
            if total < after[j][0]:
                after[j] = total, [*best[i][1], i]
        layers.append(after[count])
        best = after
    scored = [
        (cost + penalty * (k + 1), starts) for k, (cost, starts) in enumerate(layers) if cost < inf
    ]
    return [sizes[i] for i in min(scored)[1]] if scored else [sizes[0]]


def fit(times: Mapping[str, Times], noise: float, detached: int) -> Fit:
    """The parameters that explain the times of each experiment (see `network_program`)."""
    pingpong = times["pingpong"]
    send = {s: t for s, t in times["send"].items() if s < detached}
    receive = {s: t for s, t in times["recv"].items() if s < detached}
    firsts = pieces([pingpong, send, receive], max(noise, 1e-4), detached)
    eager = _eager(pingpong, send, receive, detached)
    if eager < detached and eager not in firsts:
        firsts = sorted([*firsts, eager])
    # The size above which sends wait is known exactly.
    waiting = [first for first in firsts if first >= detached]
    if waiting:
        firsts[firsts.index(waiting[0])] = detached
    found = []
    for first, after in zip(firsts, [*firsts[1:], 1 << 62]):

        def of(series: Times, low: int = first, high: int = after) -> Line:
            inside = [s for s in sorted(series) if low <= s < high]
            return line(inside, [series[s] for s in inside])

        whole = of(pingpong)
        sending, starting = of(send), of(times["isend"])
        receiving = of(receive) if first < eager else (0.0, 0.0)
        if first >= detached:
            sending = (0.0, 0.0)
            starting = (min(starting[0], 0.5 * whole[0]), 0.0)
        parts = [_left(whole[i], sending[i], receiving[i]) for i in (0, 1)]
        found.append(
            FittedPiece(
                first,
                (parts[0][0], parts[1][0]),
                starting,
                (parts[0][1], parts[1][1]),
                (parts[0][2], parts[1][2]),
            )
        )
    if len(found) > 1 and _bound(found[1].first) == 0:
        # No segment can hold for empty messages alone.
        del found[0], firsts[0]
        found[0].first = firsts[0] = 0
    slopes = [piece.network[1] for piece in found if piece.network[1] > 0.0]
    bandwidth = 1.0 / (found[-1].network[1] or (slopes[-1] if slopes else 1e-10))
    starts = [piece.network[0] - ENVELOPE * piece.network[1] for piece in found]
    starts = [start for start in starts if start > 0.0]
    latency = starts[0] if starts else 1e-9
    result = Fit(found, bandwidth, latency, detached, eager)
    exchange = times.get("exchange", {})
    result.limiter = _limiter(result, exchange)
    for piece, after in zip(found, [*firsts[1:], 1 << 62]):
        inside = {s: t for s, t in exchange.items() if piece.first <= s < after}
        piece.isend = _starting(piece, result, inside)
    return result


def _starting(piece: FittedPiece, result: Fit, exchange: Times) -> Line:
    """The cost of starting a send: as measured, unless exchanges show another cost.

    A call that makes a request in Python costs more than a send inside a call such as Sendrecv.
    Sends of an exchange cost more if processors move the bytes, as in shared memory.
    """
    if len(exchange) < 2:
        return piece.isend
    limiter = result.limiter if result.limiter is not None else inf
    slower = min(result.bandwidth, limiter) / min(result.bandwidth, limiter / 2.0)
    x = np.array(sorted(exchange), float)
    y = np.array([exchange[int(size)] for size in x])
    (start, slope), (cost, byte) = piece.network, piece.receive
    rest = start + slower * slope * x + cost + byte * x
    first, each = piece.isend
    if abs(np.median((rest + first + each * x) / y) - 1.0) < OFF:
        return piece.isend
    scale = max(float(x.max()), 1.0)
    matrix = np.stack([1.0 / y, x / scale / y], 1)
    found, _ = nnls(matrix, 1.0 - rest / y)
    return float(found[0]), float(found[1]) / scale


def _left(whole: float, send: float, receive: float) -> tuple[float, float, float]:
    """The overheads, scaled so that the network keeps its part of the whole, and this part."""
    overheads = send + receive
    most = (1.0 - NETWORK_PART) * whole
    scale = most / overheads if overheads > most else 1.0
    return send * scale, receive * scale, whole - overheads * scale


def _eager(pingpong: Times, send: Times, receive: Times, detached: int) -> int:
    """The smallest size with bytes that wait for the receive although the sender does not.

    There a receive takes the same time whether its message has arrived or not.
    """
    common = sorted(set(pingpong) & set(send) & set(receive))
    waits = [
        receive[s] > 0.8 * (pingpong[s] - send[s]) and receive[s] > 3 * send[s] for s in common
    ]
    # The sizes at the upper end that all wait.
    first = len(common)
    while first > 0 and waits[first - 1]:
        first -= 1
    return common[first] if len(common) - first >= LEAST else detached


def _limiter(found: Fit, exchange: Times) -> float | None:
    """The limit of sending and receiving together at one end, from exchanges of large messages."""
    first = found.pieces[-1].first
    sizes = [size for size in sorted(exchange) if size >= first and size > 0]
    if len(sizes) < LEAST:
        return None
    slope = line(sizes, [exchange[size] for size in sizes])[1]
    if slope * found.bandwidth <= LIMITED:
        return None
    return 2.0 / slope


def scatter(times: Times) -> float:
    """The relative deviation of one time from the line between its neighbours, typically."""
    sizes = sorted(times)
    found = []
    for low, size, high in zip(sizes, sizes[1:], sizes[2:]):
        part = (size - low) / (high - low)
        between = (1.0 - part) * times[low] + part * times[high]
        # The three times deviate independently.
        deviation = sqrt(1.0 + part**2 + (1.0 - part) ** 2)
        found.append(abs(times[size] / between - 1.0) / deviation)
    return 1.48 * float(np.median(found)) if found else 0.0


def spread(samples: Mapping[tuple[str, int], Sequence[float]]) -> float:
    """The relative deviation of a median of repeats, typical of all experiments."""
    found = []
    for values in samples.values():
        if len(values) > 2:
            low, middle, high = np.percentile(values, (25, 50, 75))
            found.append((high - low) / 1.35 / middle * 1.25 / sqrt(len(values)))
    return float(np.median(found)) if found else 0.0
