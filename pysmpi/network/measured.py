"""Presets whose curves between the smallest and the largest message were measured.

A file in `curves/` holds what `osu_latency` and `osu_bw` printed on a machine of a kind. A user's
machine of this kind has another latency L of one byte and another bandwidth B of large messages.
Between them, messages of s bytes are late by as much as on the measured machine:

- one-way time: T(s) = L + s / B + x(s), where x(s) is measured time - measured L - s / measured B;
- time between two of many messages of one rank: g(s) = s / B + y(s), where y(s) follows in the
  same way from the windows of 64 messages of `osu_bw`.

The ranks of a full node together send messages at the rate that `osu_mbw_mr` printed with one pair
of ranks a core, if it was measured: the time of a card for a message is s / B + z(s).

Between measured sizes x, y and z are linear, beyond the largest they are constant. Eager messages
keep processors busy for g, so that a rank has a message rate, and several ranks of a node have
several times this rate. Larger messages take g on the links.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from pysmpi.network.flows import ENVELOPE, Sized
from pysmpi.platform.units import format_bandwidth, format_time
from pysmpi.python.records import record

CURVES = Path(__file__).parent / "curves"
WINDOW = 64  # messages in flight of osu_bw
# Parts of the one-way time that the processors of the two ends take at most.
MOST_OVERHEAD = 0.4
# Seconds of a rank for each wait of a collective, besides its messages: the difference to
# osu_allreduce of 4 bytes on the machine of the preset infiniband-edr.
STEP_OVERHEAD = 4.1e-7
# The errors of a check: keys in the file of a preset, and what they are the errors of.
ERRORS = {
    "latency": "one-way times",
    "bandwidth": "bandwidths",
    "rated": "with the machine's message rate",
    "both": "both directions at a time",
    "pairs": "several pairs",
}


class OsuCurve:
    """A measured figure by size (bytes): seconds or bytes a second, linear between sizes."""

    def __init__(self, values: Mapping[int, float], machine: str = "", source: str = "") -> None:
        self.sizes: Sequence[int] = sorted(values)
        self.values = [values[size] for size in self.sizes]
        self.machine = machine
        self.source = source

    def at(self, size: float) -> float:
        """The value of a size; outside of the measured sizes, that of the nearest."""
        i = bisect_left(self.sizes, size)
        if i == 0:
            return self.values[0]
        if i == len(self.sizes):
            return self.values[-1]
        low, high = self.sizes[i - 1], self.sizes[i]
        part = (size - low) / (high - low)
        return self.values[i - 1] + part * (self.values[i] - self.values[i - 1])


@record(frozen=True)
class PresetCheck:
    """The mean errors (%) of a preset on a machine that it was not fitted to.

    `rated` is the error of the bandwidth if the file of the machine also gives its message rate,
    `both` that of the bandwidth in both directions at a time and `pairs` that of many pairs of
    ranks, with the message rate where it was published. An error is None if the figure was not
    published.
    """

    machine: str
    source: str
    latency: float | None
    bandwidth: float | None
    rated: float | None
    both: float | None
    pairs: float | None


class MeasuredPreset:
    """A measured preset: one-way times (s), bandwidths (bytes/s), and the size of the rendezvous.

    Either curve may be missing. Messages of `eager` bytes and more wait for their receive.
    """

    def __init__(
        self,
        latency: OsuCurve | None,
        bandwidth: OsuCurve | None,
        eager: int,
        sources: Sequence[str] = (),
        checks: Sequence[PresetCheck] = (),
        pairs: OsuCurve | None = None,
    ) -> None:
        self.latency = latency
        self.pairs = pairs  # messages a second of all ranks of a node
        self.bandwidth = bandwidth
        self.eager = eager
        self.sources = sources
        self.checks = checks
        self._late = OsuCurve({1: 0.0}) if latency is None else self._lateness(latency)
        self._slow = OsuCurve({1: 0.0}) if bandwidth is None else self._gaps(bandwidth)
        if pairs is not None:
            largest = pairs.sizes[-1] * pairs.values[-1]
            self._crowded = OsuCurve(
                {size: 1.0 / rate - size / largest
                 for size, rate in zip(pairs.sizes, pairs.values, strict=True)}
            )  # fmt: skip

    def far_from(self, latency: float, bandwidth: float) -> str:
        """The unlikely figures of a network of this kind; an empty text if there are none.

        A mistake of bits for bytes is a factor of 8.
        """
        if self.bandwidth is not None:
            ratio = bandwidth / self.bandwidth.values[-1]
            if not 1.0 / 6.0 < ratio < 6.0:
                return (
                    f"the bandwidth {format_bandwidth(bandwidth)} is {ratio:.2f} times that of the "
                    "measured machine (Gbps are bits a second, GBps are bytes)"
                )
        if self.latency is not None:
            ratio = latency / self.latency.values[0]
            if not 0.05 < ratio < 20.0:
                return (
                    f"the latency {format_time(latency)} is {ratio:.2f} times that of the measured "
                    "machine"
                )
        return ""

    def checked(self) -> str:
        """A sentence on the tables, not used for the fit, against which the preset was checked."""
        if not self.checks:
            return "not checked against another table"
        errors = []
        for key, title in ERRORS.items():
            values = [getattr(check, key) for check in self.checks]
            if any(value is not None for value in values):
                errors.append(f"{title} {_range(values)}")
        count = len(self.checks)
        others = f"{count} other tables" if count > 1 else "another table"
        return f"checked against {others}; mean errors: {', '.join(errors)}"

    def _lateness(self, latency: OsuCurve) -> OsuCurve:
        """The difference x of the one-way times from L + s / B (s)."""
        bandwidth = self._bandwidth_of(latency)
        first = latency.values[0]
        return OsuCurve(
            {
                size: seconds - first - size / bandwidth
                for size, seconds in zip(latency.sizes, latency.values, strict=True)
            }
        )

    def _bandwidth_of(self, latency: OsuCurve) -> float:
        """The bandwidth (bytes/s) of the machine on which latencies were measured."""
        if self.bandwidth is not None and self.bandwidth.machine == latency.machine:
            return self.bandwidth.values[-1]
        if len(latency.sizes) < 3:
            return float("inf")
        # Its largest messages, two sizes apart, differ by their bytes.
        seconds = latency.values[-1] - latency.values[-3]
        return (latency.sizes[-1] - latency.sizes[-3]) / max(seconds, 1e-12)

    def _gaps(self, bandwidth: OsuCurve) -> OsuCurve:
        """The difference y of the times between messages from s / B (s)."""
        largest = bandwidth.values[-1]
        slow = {}
        for size, rate in zip(bandwidth.sizes, bandwidth.values, strict=True):
            gap = WINDOW * size / rate
            if self.latency is not None:
                # A window begins with a message on its way, and ends with an acknowledgement.
                gap -= self.latency.at(size) + self.latency.at(4)
                gap /= WINDOW - 1
            else:
                gap /= WINDOW
            slow[size] = max(gap, 0.5 * size / rate) - size / largest
        return OsuCurve(slow)

    def late(self, nbytes: int) -> float:
        """The time (s) by which a message takes longer than latency + size / bandwidth."""
        return self._late.at(max(nbytes, 1))

    def seconds(self, nbytes: int, latency: float, bandwidth: float) -> float:
        """The one-way time (s) of a message, where a byte takes `latency`."""
        size = max(nbytes, 1)
        plain = latency + size / bandwidth
        return max(plain + self._late.at(size), 0.5 * plain)

    def gap(self, nbytes: int, bandwidth: float, slowness: float = 1.0) -> float:
        """The time (s) between the ends of two of many messages of one rank.

        A rank of the machine needs `slowness` times the measured time besides that of the link.
        """
        size = max(nbytes, 1)
        slow = self._slow.at(size)
        if slow > 0.0:
            slow *= slowness
        return max(size / bandwidth + slow, 0.5 * size / bandwidth)

    def card(self, nbytes: int, bandwidth: float) -> float:
        """The time (s) of a card for one of many messages of all ranks of a host."""
        size = max(nbytes, 1)
        return size / bandwidth + max(0.0, self._crowded.at(size))

    def slowness(self, rate: float, latency: float, bandwidth: float) -> float:
        """The slowness of a machine on which one rank sends `rate` small messages a second."""
        measured = self.gap(1, bandwidth)
        window = WINDOW / rate
        if self.latency is not None:
            window -= 2.0 * latency
        gap = max(window / (WINDOW - 1), 0.5 / rate)
        return gap / measured

    def sized(
        self, nbytes: int, latency: float, bandwidth: float, slowness: float = 1.0
    ) -> Sized:  # fmt: skip
        """The costs of messages of a size, with factors of `latency` and `bandwidth`."""
        wire = nbytes + ENVELOPE
        total = self.seconds(nbytes, latency, bandwidth)
        gap = self.gap(nbytes, bandwidth, slowness)
        eager = nbytes < self.eager
        if eager:
            transfer = min(wire / bandwidth, gap)
            start = gap
            most = MOST_OVERHEAD * max(total - transfer, 0.0)
            send, receive = min(gap, most), min(gap, most)
        else:
            # Its sender waits for the receiver, and pays nothing that delays the message.
            transfer = gap
            start = min(self.gap(1, bandwidth, slowness), MOST_OVERHEAD * max(total - gap, 0.0))
            send = receive = 0.0
        left = max(total - transfer - send - receive, 0.0)
        return Sized(
            left / latency, wire / transfer / bandwidth, send, start, receive, eager, eager
        )

    def options(self, latency: float, bandwidth: float, slowness: float = 1.0) -> dict[str, str]:
        """The costs as SimGrid's options, by segments of the measured sizes."""
        sizes = sorted(
            {1, self.eager}
            | set(() if self.latency is None else self.latency.sizes)
            | set(() if self.bandwidth is None else self.bandwidth.sizes)
        )
        pieces: dict[str, list[str]] = {
            name: [] for name in ("smpi/os", "smpi/ois", "smpi/or", "smpi/lat-factor",
                                  "smpi/bw-factor")
        }  # fmt: skip
        for i, size in enumerate(sizes):
            # A segment reaches from between two sizes to between the next two; that of the
            # rendezvous begins at its size.
            if size == self.eager:
                bound = size - 1
            else:
                bound = 0 if i == 0 else int((sizes[i - 1] * size) ** 0.5)
            at = self.sized(size, latency, bandwidth, slowness)
            wire = bound + ENVELOPE if bound else 0
            for name, cost in (
                ("smpi/os", at.send_cost), ("smpi/ois", at.isend_cost), ("smpi/or", at.recv_cost),
            ):  # fmt: skip
                pieces[name].append(f"{bound}:{cost:.6g}:0")
            pieces["smpi/lat-factor"].append(f"{wire}:{at.latency_factor:.6g}")
            pieces["smpi/bw-factor"].append(f"{wire}:{at.bandwidth_factor:.6g}")
        return {name: ";".join(_distinct(parts)) for name, parts in pieces.items()}


def _range(values: Sequence[float | None]) -> str:
    """The smallest and the largest of some percentages, and the median of three or more."""
    numbers = sorted(round(value) for value in values if value is not None)
    low, high = numbers[0], numbers[-1]
    middle = f" (median {numbers[len(numbers) // 2]} %)" if len(numbers) > 2 else ""
    return f"{low} %" if low == high else f"{low} to {high} %{middle}"


def _distinct(parts: Sequence[str]) -> list[str]:
    """The segments that differ from the one before and begin later."""
    result: list[str] = []
    for part in parts:
        begin, _, values = part.partition(":")
        if result:
            before, _, same = result[-1].partition(":")
            if begin == before or values == same:
                continue
        result.append(part)
    return result


@cache
def load(name: str) -> MeasuredPreset:
    """The measured preset in the file of a name."""
    # YAML takes longer to import than most runs need it.
    from pysmpi.platform.nodes import compose

    keys = compose(CURVES / f"{name}.yaml").fields(
        ("eager",), ("sources", "latency", "bandwidth", "pairs", "checks")
    )
    checks = []
    for node in keys["checks"].items() if "checks" in keys else []:
        check = node.fields(("machine", "source"), tuple(ERRORS))
        values = [float(check[key].text()) if key in check else None for key in ERRORS]
        checks.append(PresetCheck(check["machine"].text(), check["source"].text(), *values))
    curves: dict[str, OsuCurve | None] = {"latency": None, "bandwidth": None, "pairs": None}
    sources: list[str] = []
    for key, unit, scale in (
        ("latency", "us", 1e-6), ("bandwidth", "MBps", 1e6), ("pairs", "millions", 1e6),
    ):  # fmt: skip
        if key in keys:
            curve = keys[key].fields(("machine", "source", unit))
            curves[key] = OsuCurve(
                {int(size): float(n.text()) * scale for size, n in curve[unit].entries().items()},
                curve["machine"].text(),
                curve["source"].text(),
            )
            sources.append(f"{curve['machine'].text()}: {curve['source'].text()}")
    return MeasuredPreset(
        curves["latency"],
        curves["bandwidth"],
        int(keys["eager"].text()),
        [node.text() for node in keys["sources"].items()]
        if "sources" in keys
        else list(dict.fromkeys(sources)),
        checks,
        curves["pairs"],
    )
