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
from pysmpi.network.models import Explanation, model
from pysmpi.network.overheads import Overheads
from pysmpi.network.presets import CM02, HYBRID, LV08, RAW, Preset
from pysmpi.network.presets import find as find_preset
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host, Platform
from pysmpi.platform.piecewise import Piecewise


def transport(
    platform: Platform, hosts: Sequence[Host], settings: Settings, preset: Preset,
    own_factors: bool = False,
) -> Transport:  # fmt: skip
    """The transport of a preset, modified by the settings; UsageError for wrong settings.

    With `own_factors`, the options smpi/lat-factor and smpi/bw-factor count.
    """
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


def _factor(settings: Settings, name: str, preset: str, own: bool) -> Piecewise:
    common = {"lat-factor": "network/latency-factor", "bw-factor": "network/bandwidth-factor"}[name]
    found = settings.value(f"smpi/{name}") if own else None
    if found is None:
        found = settings.value(common, preset)
    assert isinstance(found, Piecewise)
    return found


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
