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
from pysmpi.kernel.plan import Transport
from pysmpi.network.flows import ENVELOPE, FlowTransport, Sized
from pysmpi.network.models import model
from pysmpi.network.piecewise import Piecewise, parse
from pysmpi.options import Settings
from pysmpi.platform.model import Host, Platform


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


def transport(
    platform: Platform, hosts: Sequence[Host], settings: Settings, preset: Preset
) -> Transport:
    """The transport of a preset, with what the settings say otherwise; UsageError if they err."""
    latency_factor = _factor(settings, "network/latency-factor", preset.latency_factor)
    bandwidth_factor = _factor(settings, "network/bandwidth-factor", preset.bandwidth_factor)
    said = settings.said
    weight = preset.weight
    if "network/weight-S" in said:
        weight = settings.number("network/weight-S")
    gamma = settings.number("network/TCP-gamma")
    if preset.gamma is not None and "network/TCP-gamma" not in said:
        gamma = preset.gamma
    cross_traffic = settings.flag("network/crosstraffic", "yes" if preset.cross_traffic else "no")
    eager_below = settings.number("smpi/async-small-thresh")
    detached_below = settings.number("smpi/send-is-detached-thresh")
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


def _factor(settings: Settings, name: str, preset: str) -> Piecewise:
    factor = parse(settings.text(name) or preset, name, 1.0)
    if name == "network/bandwidth-factor" and any(v[0] == 0.0 for v in factor.values):
        raise UsageError(f"{name}: a factor of 0 would keep messages from ever arriving")
    return factor


def _preset(name: str) -> Callable[[Platform, Sequence[Host], Settings], Transport]:
    def build(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
        return transport(platform, hosts, settings, PRESETS[name])

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
    return transport(platform, hosts, settings, PRESETS[name])


model("lv08", "fluid with the factors of Velho and Legrand 2008: 13.01 and 0.97")(_preset("LV08"))
model("cm02", "fluid with latency and bandwidth as they are (Casanova and Marchal 2002)")(
    _preset("CM02")
)
model("fluid", "plain fluid: no factors, no TCP window, no cross-traffic")(_preset("raw"))
