"""Flow models: a message is a latency, then a fluid that shares the links it crosses.

The hybrid model (SMPI) adds to the fluid what an MPI library does at both ends. For a message of
s bytes, S = s + 16 with its envelope, along a route R:

- the sender pays os(s) or ois(s), the receiver of a detached message or(s);
- latency phase: latfactor(S) * sum of the latencies of R;
- transfer: bwfactor(S) times the max-min fair share of the links of R, weighted by
  1 / (sum of latencies + sum of weight-S / bandwidth), and limited by the smallest bandwidth
  and by the TCP window, gamma / (2 * latency);
- with cross-traffic, a flow takes 5 % of its rate from each link of the way back.

Source: the paper on the hybrid model (Bedaride et al., "Toward better simulation of MPI
applications on Ethernet/TCP networks") and SimGrid's option documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pysmpi.errors import UsageError
from pysmpi.kernel.plan import Plan, Transport
from pysmpi.kernel.sharing import INFINITY, Constraint
from pysmpi.network.models import model
from pysmpi.network.piecewise import Piecewise, parse
from pysmpi.options import Settings
from pysmpi.platform.model import Host, Platform

ENVELOPE = 16  # bytes of tag, destination and communicator that travel with each message
CROSS_TRAFFIC = 0.05  # share of a flow's rate that its acknowledgements take on the way back


@dataclass(frozen=True)
class Preset:
    """The values of SimGrid's `network/model` presets."""

    latency_factor: str
    bandwidth_factor: str
    weight: float  # bytes
    gamma: float | None = None  # bytes; None: as the option says
    cross_traffic: bool = True


PRESETS = {
    "SMPI": Preset(
        "0:2.01467;257:1.95341;732:1.9503;1426:1.61075;3484:1.88101;5776:2.18796;"
        "9376:2.59299;15424:3.48845;65472:11.6436",
        "0:0.812084;257:0.338112;732:0.341987;1426:0.608902;3484:0.77493;5776:1.08739;"
        "9376:0.58729;15424:0.697866;65472:0.940694",
        8775.0,
    ),
    "LV08": Preset("13.01", "0.97", 20537.0),
    "CM02": Preset("1", "1", 0.0),
    "raw": Preset("1", "1", 0.0, gamma=0.0, cross_traffic=False),
}


@dataclass(slots=True)
class Path:
    """What a pair of hosts shares and how far apart it is, whatever the size of a message."""

    latency: float
    bound: float
    penalty: float
    constraints: list[Constraint]
    weights: list[float]


@dataclass(slots=True)
class Sized:
    """What a size costs, whatever the pair of hosts; overheads of hosts without their own."""

    latency_factor: float
    bandwidth_factor: float
    send_cost: float
    isend_cost: float
    recv_cost: float
    eager: bool
    detached: bool


class Overheads:
    """One of the overheads of every host: its own where its properties name one."""

    def __init__(self, settings: Settings, name: str, hosts: Sequence[Host]) -> None:
        self.name = name
        self.common = parse(settings.text(name), name)
        self.own: dict[int, Piecewise] = {}
        for host in hosts:
            self.of(host)

    def of(self, host: Host) -> Piecewise:
        """The overhead of a host; UsageError if its property is none."""
        text = host.properties.get(self.name)
        if text is None:
            return self.common
        found = self.own.get(host.index)
        if found is None:
            found = self.own[host.index] = parse(text, f"{host.name}: {self.name}")
        return found


class FluidTransport(Transport):
    """Plans of the flow models; `hosts[slot]` is the host of each slot.

    Processes that a program spawns may be on slots that are new: `hosts` grows then.
    """

    def __init__(
        self, platform: Platform, hosts: Sequence[Host], settings: Settings, preset: Preset
    ) -> None:
        self.platform = platform
        self.hosts = hosts
        self.latency_factor = _factor(settings, "network/latency-factor", preset.latency_factor)
        self.bandwidth_factor = _factor(
            settings, "network/bandwidth-factor", preset.bandwidth_factor
        )
        said = settings.said
        self.weight = (
            settings.number("network/weight-S") if "network/weight-S" in said else preset.weight
        )
        self.gamma = settings.number("network/TCP-gamma")
        if preset.gamma is not None and "network/TCP-gamma" not in said:
            self.gamma = preset.gamma
        self.cross_traffic = settings.flag(
            "network/crosstraffic", "yes" if preset.cross_traffic else "no"
        )
        self.eager_below = settings.number("smpi/async-small-thresh")
        self.detached_below = settings.number("smpi/send-is-detached-thresh")
        if self.eager_below > self.detached_below:
            raise UsageError(
                f"smpi/async-small-thresh ({self.eager_below:g}) must not be above "
                f"smpi/send-is-detached-thresh ({self.detached_below:g})"
            )
        self.sending = Overheads(settings, "smpi/os", hosts)
        self.starting = Overheads(settings, "smpi/ois", hosts)
        self.receiving = Overheads(settings, "smpi/or", hosts)
        self.constraints: dict[int, Constraint] = {}
        self.weights: dict[tuple[float, ...], list[float]] = {}  # most pairs have the same
        self.paths: dict[tuple[int, int], Path] = {}
        self.sizes: dict[int, Sized] = {}

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """The plan of a message of `nbytes` between two slots."""
        src, dst = self.hosts[source], self.hosts[destination]
        path = self.paths.get((src.index, dst.index)) or self._path(src, dst)
        sized = self.sizes.get(nbytes) or self._sized(nbytes)
        send_cost, isend_cost, recv_cost = sized.send_cost, sized.isend_cost, sized.recv_cost
        if src.properties:
            send_cost = self.sending.of(src).affine(nbytes)
            isend_cost = self.starting.of(src).affine(nbytes)
        if dst.properties:
            recv_cost = self.receiving.of(dst).affine(nbytes)
        return Plan(
            path.latency * sized.latency_factor,
            float(nbytes + ENVELOPE),
            path.bound,
            path.penalty,
            sized.bandwidth_factor,
            path.constraints,
            path.weights,
            send_cost,
            isend_cost,
            recv_cost,
            sized.eager,
            sized.detached,
        )

    def place(self, slot: int) -> int:
        """The host: its slots share all that this model knows of."""
        return self.hosts[slot].index

    def _sized(self, nbytes: int) -> Sized:
        wire = nbytes + ENVELOPE
        sized = self.sizes[nbytes] = Sized(
            self.latency_factor.factor(wire),
            self.bandwidth_factor.factor(wire),
            self.sending.common.affine(nbytes),
            self.starting.common.affine(nbytes),
            self.receiving.common.affine(nbytes),
            nbytes < self.eager_below,
            nbytes < self.detached_below,
        )
        return sized

    def _path(self, src: Host, dst: Host) -> Path:
        if len(self.paths) > 1 << 18:
            self.paths.clear()
        path = self.paths[src.index, dst.index] = self._new_path(src, dst)
        return path

    def _new_path(self, src: Host, dst: Host) -> Path:
        route = self.platform.route(src, dst)
        latency = route.latency
        bound, resistance = INFINITY, 0.0
        weights: dict[int, float] = {}
        for link in route.links:
            bandwidth = link.bandwidth
            if bandwidth < bound:
                bound = bandwidth
            resistance += self.weight / bandwidth
            # A fat pipe gives each flow all of its bandwidth: the bound says it already.
            if link.sharing == "shared":
                weights[link.index] = weights.get(link.index, 0.0) + 1.0
        penalty = 1.0
        if latency > 0.0:
            if self.gamma > 0.0:
                bound = min(bound, self.gamma / (2.0 * latency))
            penalty = latency + resistance
        if self.cross_traffic:
            for link in self.platform.route(dst, src).links:
                if link.sharing == "shared":
                    weights[link.index] = weights.get(link.index, 0.0) + CROSS_TRAFFIC
        known = self.constraints
        return Path(
            latency,
            bound,
            penalty,
            [known.get(index) or self._constraint(index) for index in weights],
            self.weights.setdefault(tuple(weights.values()), list(weights.values())),
        )

    def _constraint(self, index: int) -> Constraint:
        link = self.platform.links[index]
        constraint = self.constraints[index] = Constraint(link.bandwidth, link.name)
        return constraint


def _factor(settings: Settings, name: str, preset: str) -> Piecewise:
    factor = parse(settings.text(name) or preset, name, 1.0)
    if name == "network/bandwidth-factor" and any(v[0] == 0.0 for v in factor.values):
        raise UsageError(f"{name}: a factor of 0 would keep messages from ever arriving")
    return factor


def _preset(name: str) -> Callable[[Platform, Sequence[Host], Settings], Transport]:
    def build(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
        return FluidTransport(platform, hosts, settings, PRESETS[name])

    return build


@model("hybrid", "SMPI's: overheads, three protocols, piecewise factors, fair sharing of links")
def hybrid(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """The hybrid model, or the SimGrid preset that `network/model` names."""
    name = settings.text("network/model")
    if name not in PRESETS:
        raise UsageError(
            f"network/model: expected one of {', '.join(PRESETS)}, found {name!r}"
            if name not in ("IB", "Constant", "ns-3")
            else f"network/model: {name} is not available; there are {', '.join(PRESETS)}"
        )
    return FluidTransport(platform, hosts, settings, PRESETS[name])


model("lv08", "fluid with the factors of Velho and Legrand 2008: 13.01 and 0.97")(_preset("LV08"))
model("cm02", "fluid with latency and bandwidth as they are (Casanova and Marchal 2002)")(
    _preset("CM02")
)
model("fluid", "plain fluid: no factors, no TCP window, no cross-traffic")(_preset("raw"))
