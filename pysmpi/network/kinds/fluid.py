"""Flow models: a message waits for a latency, then shares the links of its route like a fluid.

The hybrid model (SMPI) adds the overheads of an MPI library at both ends. A message of s bytes has
S = s + 16 bytes with its envelope. On a route R it has these costs:

- a blocking send that is detached or synchronous pays os(s), a non-blocking send ois(s), and the
  receiver of a detached message or(s);
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

from pysmpi.errors import UsageError
from pysmpi.kernel.plan import Transport
from pysmpi.network.flows import ENVELOPE, FlowTransport, Sized
from pysmpi.network.measured import load
from pysmpi.network.models import Explanation, model
from pysmpi.network.overheads import Overheads
from pysmpi.network.presets import CM02, HYBRID, LV08, RAW, Preset
from pysmpi.network.presets import find as find_preset
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host, Platform
from pysmpi.platform.piecewise import Piecewise, parse


def transport(
    platform: Platform, hosts: Sequence[Host], settings: Settings, preset: Preset,
    own_factors: bool = False,
) -> Transport:  # fmt: skip
    """The transport of a preset, modified by the settings; UsageError for wrong settings.

    With `own_factors`, the options smpi/lat-factor and smpi/bw-factor count.
    """
    if preset.measured:
        return _measured_transport(platform, hosts, settings, preset)
    latency_factor = _factor(settings, "lat-factor", preset.latency_factor, own_factors)
    bandwidth_factor = _factor(settings, "bw-factor", preset.bandwidth_factor, own_factors)
    weight = settings.number("network/weight-S", preset.weight)
    gamma = settings.number("network/TCP-gamma", preset.gamma)
    cross_traffic = bool(settings.value("network/crosstraffic", preset.cross_traffic))
    eager_below = settings.number("smpi/async-small-thresh", -1.0)
    detached_below = settings.number("smpi/send-is-detached-thresh", preset.detached)
    if eager_below < 0.0:
        eager_below = min(preset.eager, detached_below)
    if eager_below > detached_below:
        raise UsageError(
            f"smpi/async-small-thresh ({eager_below:g}) must not be above "
            f"smpi/send-is-detached-thresh ({detached_below:g})"
        )
    sending = Overheads(settings, "smpi/os", hosts)
    starting = Overheads(settings, "smpi/ois", hosts)
    receiving = Overheads(settings, "smpi/or", hosts)

    def sized(nbytes: int) -> Sized:
        wire = nbytes + ENVELOPE
        return Sized(
            latency_factor.factor(wire),
            bandwidth_factor.factor(wire),
            sending.common.affine(nbytes),
            starting.common.affine(nbytes),
            receiving.common.affine(nbytes),
            nbytes < eager_below,
            nbytes < detached_below,
        )

    def overheads(src: Host, dst: Host, nbytes: int) -> tuple[float, float, float]:
        return (
            sending.of(src).affine(nbytes),
            starting.of(src).affine(nbytes),
            receiving.of(dst).affine(nbytes),
        )

    return FlowTransport(platform, hosts, weight, gamma, cross_traffic, sized, overheads)


def _measured_transport(
    platform: Platform, hosts: Sequence[Host], settings: Settings, preset: Preset
) -> Transport:
    """The transport of a preset with measured curves; options that are set replace its values."""
    curves = load(preset.measured)
    latency, bandwidth = network_of(platform)
    if latency <= 0.0:
        raise UsageError(
            f"{platform.source}: preset {preset.measured}: expected a latency above 0 between two "
            "hosts, got 0"
        )
    rate = settings.number("network/message-rate", 0.0)
    slowness = curves.slowness(rate, latency, bandwidth) if rate > 0.0 else 1.0
    own = {
        name: settings.value(name)
        for name in ("smpi/os", "smpi/ois", "smpi/or")
        if name in settings.said
    }
    latency_factor = _own_factor(settings, "lat-factor")
    bandwidth_factor = _own_factor(settings, "bw-factor")
    eager_below = settings.number("smpi/async-small-thresh", float(curves.eager))
    detached_below = float(curves.eager)
    if "smpi/send-is-detached-thresh" in settings.said:
        detached_below = settings.number("smpi/send-is-detached-thresh")

    def sized(nbytes: int) -> Sized:
        cost = curves.sized(nbytes, latency, bandwidth, slowness)
        cost.eager = nbytes < eager_below
        cost.detached = nbytes < detached_below
        if latency_factor is not None:
            cost.latency_factor = latency_factor.factor(nbytes + ENVELOPE)
        if bandwidth_factor is not None:
            cost.bandwidth_factor = bandwidth_factor.factor(nbytes + ENVELOPE)
        if "smpi/os" in own:
            cost.send_cost = own["smpi/os"].affine(nbytes)
        if "smpi/ois" in own:
            cost.isend_cost = own["smpi/ois"].affine(nbytes)
        if "smpi/or" in own:
            cost.recv_cost = own["smpi/or"].affine(nbytes)
        return cost

    def overheads(src: Host, dst: Host, nbytes: int) -> tuple[float, float, float]:
        cost = sized(nbytes)
        costs = [cost.send_cost, cost.isend_cost, cost.recv_cost]
        for i, (host, name) in enumerate(((src, "smpi/os"), (src, "smpi/ois"), (dst, "smpi/or"))):
            text = host.properties.get(name)
            if text is not None:
                costs[i] = parse(text, f"{host.name}: {name}").affine(nbytes)
        return costs[0], costs[1], costs[2]

    weight = settings.number("network/weight-S", 0.0)
    gamma = settings.number("network/TCP-gamma", 0.0)
    cross_traffic = bool(settings.value("network/crosstraffic", False))
    return FlowTransport(platform, hosts, weight, gamma, cross_traffic, sized, overheads)


def network_of(platform: Platform) -> tuple[float, float]:
    """The latency (s) and bandwidth (bytes/s) between the first two hosts.

    A platform of one host has those of a network that its messages never cross.
    """
    if len(platform.hosts) < 2:
        return 1e-6, 12.5e9
    links = platform.way(platform.hosts[0], platform.hosts[1])
    return sum(link.latency for link in links), min(link.bandwidth for link in links)


def _own_factor(settings: Settings, name: str) -> Piecewise | None:
    """A factor that the run or the machine gives."""
    common = {"lat-factor": "network/latency-factor", "bw-factor": "network/bandwidth-factor"}[name]
    result = settings.value(f"smpi/{name}")
    result = settings.value(common) if result is None else result
    assert result is None or isinstance(result, Piecewise)
    return result


def _factor(settings: Settings, name: str, preset: str, own: bool) -> Piecewise:
    common = {"lat-factor": "network/latency-factor", "bw-factor": "network/bandwidth-factor"}[name]
    result = settings.value(f"smpi/{name}") if own else None
    if result is None:
        result = settings.value(common, preset)
    assert isinstance(result, Piecewise)
    return result


FLOW = (
    "T(s) = latfactor(S) * lat + S / (bwfactor(S) * share), S = s + 16; share is the max-min fair "
    "share of the links of the route, weighted by 1 / (lat + sum of weight-S / bandwidth), at most "
    "the smallest bandwidth and gamma / (2 lat)"
)
LINKS = (
    ("lat", "sum of the latencies of the route (s)"),
    ("latfactor, bwfactor", "factors by size: network/latency-factor, network/bandwidth-factor"),
    ("weight-S", "bytes: network/weight-S"),
    ("gamma", "twice the TCP window (bytes): network/TCP-gamma"),
    ("cross-traffic", "whether a flow takes 5 % of its rate from each link of the way back: "
     "network/crosstraffic"),
    ("os, ois, or", "overheads of the machine (s): smpi/os, smpi/ois, smpi/or"),
    ("eager, detached", "sizes (bytes) below which a message starts before it is received, and its "
     "sender continues: smpi/async-small-thresh, smpi/send-is-detached-thresh"),
)  # fmt: skip
_SHARES = "contention is shared fairly at once: large messages rather than bursts of small ones"


@model(
    "hybrid",
    "SMPI's: overheads, three protocols, piecewise factors, fair sharing of links",
    Explanation(
        "os(s) of a blocking send that is detached or synchronous, ois(s) of a non-blocking send, "
        "then " + FLOW + ", then or(s) of the receiver of a detached message",
        (*LINKS, ("smpi/lat-factor, smpi/bw-factor", "the factors of this model alone"),
         ("network/preset", "default factors: " + ", ".join(HYBRID))),
        "Bedaride, Degomme, Genaud, Legrand, Markomanolis, Quinson, Stillwell, Suter, Videau: "
        "Toward Better Simulation of MPI Applications on Ethernet/TCP Networks. PMBS 2013; "
        "SimGrid's documentation of network/model",
        "sizes for which the factors were measured; " + _SHARES,
    ),
)  # fmt: skip
def hybrid(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """The hybrid model with the preset of factors that the run or the machine names."""
    preset = find_preset(preset_name(platform, settings))
    return transport(platform, hosts, settings, preset, own_factors=True)


def preset_name(platform: Platform, settings: Settings) -> str:
    """The name of the preset that model hybrid uses on a machine."""
    return settings.text("network/preset") or platform.preset


def _plain(preset: Preset) -> Callable[[Platform, Sequence[Host], Settings], Transport]:
    def build(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
        return transport(platform, hosts, settings, preset)

    return build


def _explained(preset: Preset, source: str, valid: str) -> Explanation:
    return Explanation(
        f"{FLOW}; latfactor {preset.latency_factor}, bwfactor {preset.bandwidth_factor}, weight-S "
        f"{preset.weight:g}, gamma {preset.gamma:.0f}, cross-traffic "
        f"{'yes' if preset.cross_traffic else 'no'}",
        LINKS,
        source,
        valid,
    )


model(
    "lv08",
    "fluid with the factors of Velho and Legrand 2008: 13.01 and 0.97",
    _explained(
        LV08,
        "Velho, Legrand: Accuracy Study and Improvement of Network Simulation in the SimGrid "
        "Framework. SIMUTools 2009",
        "TCP flows of 100 KB and more, whose slow start the latency factor stands for; latencies "
        "of short messages come out 13 times too large",
    ),
)(_plain(LV08))
model(
    "cm02",
    "fluid with latency and bandwidth as they are (Casanova and Marchal 2002)",
    _explained(
        CM02,
        "Casanova, Marchal: A Network Model for Simulation of Grid Application. INRIA RR-4596, "
        "2002",
        "long TCP flows; no overheads of protocols but the machine's",
    ),
)(_plain(CM02))
model(
    "fluid",
    "plain fluid: no factors, no TCP window, no cross-traffic",
    _explained(
        RAW,
        "max-min fairness: Bertsekas, Gallager: Data Networks. 1992, section 6.5.2; network/model:"
        "raw of SimGrid",
        "large messages on networks whose flow control is fair",
    ),
)(_plain(RAW))
