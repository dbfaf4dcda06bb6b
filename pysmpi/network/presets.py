"""Sets of values of the network's options: one for each model, and presets of model hybrid.

A model's own values apply unless the machine or the user gives others.
"""

from __future__ import annotations

from pysmpi.errors import UsageError
from pysmpi.network.measured import load
from pysmpi.python.records import record
from pysmpi.text import did_you_mean

NEUTRAL, SMPI = "neutral", "smpi"
ETHERNET, INFINIBAND, SLINGSHOT = "ethernet", "infiniband", "slingshot"


@record(frozen=True)
class Preset:
    """Values of options: factors as segments by size, the other numbers in bytes.

    `source` is the source of the values of a named preset. `measured` names the file of a preset
    with measured curves (`pysmpi.network.measured`), which has other costs for each size.
    """

    line: str
    latency_factor: str = "1"
    bandwidth_factor: str = "1"
    weight: float = 0.0
    gamma: float = 4194304.0
    cross_traffic: bool = True
    eager: float = 0.0
    detached: float = 65536.0
    source: str = ""
    measured: str = ""


def _measured(name: str, line: str) -> Preset:
    """A preset whose curves are in the file of its name."""
    return Preset(line, gamma=0.0, cross_traffic=False, measured=name)


def _protocol(line: str, payload: int, wire: int, eager: int, source: str) -> Preset:
    """A network whose packets of `wire` bytes carry `payload`, with a rendezvous from `eager` on.

    A rendezvous crosses the network three times: a request, its answer, and the data.
    """
    return Preset(
        line,
        # From S = eager + 16 on: the envelope counts.
        f"0:1;{eager + 15}:3",
        f"0:{payload / wire:.6f}",
        gamma=0.0,
        cross_traffic=False,
        eager=float(eager),
        detached=float(eager),
        source=source,
    )


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
        source="fitted by SMPI's authors to TACC's Stampede (SimGrid's documentation, "
        "network/model)",
    ),
    ETHERNET: _protocol(
        "TCP over Ethernet: 1,448 of 1,538 bytes are data, rendezvous from 64 KiB on",
        1448,
        1538,
        65536,
        "IEEE 802.3 (1,500 bytes in a frame of 1,538 with preamble and gap), RFC 9293 and RFC 7323 "
        "(52 bytes of headers with timestamps); Open MPI's btl_tcp_eager_limit",
    ),
    INFINIBAND: _protocol(
        "InfiniBand: 4,096 of 4,122 bytes are data, rendezvous from 12 KiB on",
        4096,
        4122,
        12288,
        "InfiniBand Architecture Specification, volume 1 (MTU of 4,096; LRH, BTH, ICRC and VCRC of "
        "8 + 12 + 4 + 2 bytes); Open MPI's btl_openib_eager_limit",
    ),
    SLINGSHOT: _protocol(
        "Slingshot: 4,096 of 4,178 bytes are data, rendezvous from 16 KiB on",
        4096,
        4178,
        16384,
        "RoCEv2 (InfiniBand Architecture Specification, annex A17) over IEEE 802.3: 82 bytes "
        "around 4,096; FI_CXI_RDZV_THRESHOLD of libfabric's provider cxi, 16,384 by default in "
        "libfabric 2.4 (2,048 before)",
    ),
    **{
        name: _measured(name, line)
        for name, line in {
            "ethernet-1g": "1 Gb/s Ethernet, MPI over TCP",
            "ethernet-10g": "10 Gb/s Ethernet, MPI over TCP; message rate as at 25 Gb/s",
            "ethernet-25g": "25 Gb/s Ethernet, MPI over TCP",
            "ethernet-25g-roce": "25 Gb/s Ethernet, MPI over RoCE",
            "ethernet-100g": "100 Gb/s Ethernet and above, MPI over one TCP connection",
            "ethernet-100g-roce": "50 and 100 Gb/s Ethernet, MPI over RoCE",
            "infiniband-edr": "100 Gb/s InfiniBand (EDR, HDR100)",
            "infiniband-hdr": "200 Gb/s InfiniBand (HDR)",
            "infiniband-ndr": "400 Gb/s InfiniBand (NDR), with the curves of HDR",
            "omni-path": "Omni-Path 100; one-way times between sizes as on InfiniBand EDR",
            "slingshot-11": "Slingshot-11 (200 Gb/s)",
            "aries": "Cray XC (Aries)",
            "tofu-d": "Tofu Interconnect D: latency and bandwidth alone",
        }.items()
    },
}

LV08 = Preset("Velho and Legrand 2008", "13.01", "0.97", 20537.0)
CM02 = Preset("Casanova and Marchal 2002")
RAW = Preset("no window and no cross-traffic", gamma=0.0, cross_traffic=False)


def options(
    preset: Preset,
    loopback_latency: float,
    latency: float = 1e-6,
    bandwidth: float = 12.5e9,
    rate: float = 0.0,
) -> dict[str, str]:
    """A preset as options of SMPI, with the latency (s) of a host to itself that goes with it.

    `latency` (s), `bandwidth` (bytes/s) and, if above 0, `rate` (messages/s) are those of the
    machine, for a measured preset.
    """
    if preset.measured:
        curves = load(preset.measured)
        preset = Preset(preset.line, gamma=0.0, cross_traffic=False, eager=float(curves.eager),
                        detached=float(curves.eager))  # fmt: skip
        slowness = curves.slowness(rate, latency, bandwidth) if rate > 0.0 else 1.0
        own = curves.options(latency, bandwidth, slowness)
        return {**options(preset, loopback_latency), **own}
    return {
        "smpi/lat-factor": preset.latency_factor if ":" in preset.latency_factor else "0:1",
        "smpi/bw-factor": preset.bandwidth_factor if ":" in preset.bandwidth_factor else "0:1",
        "network/weight-S": f"{preset.weight:.0f}",
        "network/TCP-gamma": f"{preset.gamma:.0f}",
        "network/crosstraffic": "yes" if preset.cross_traffic else "no",
        "smpi/async-small-thresh": f"{preset.eager:.0f}",
        "smpi/send-is-detached-thresh": f"{preset.detached:.0f}",
        "network/loopback-lat": repr(loopback_latency),
    }


def find(name: str) -> Preset:
    """The preset of model hybrid called `name`; UsageError if there is none."""
    if name not in HYBRID:
        hint = did_you_mean(name.lower(), HYBRID)
        raise UsageError(f"network/preset: expected one of {', '.join(HYBRID)}, got {name!r}{hint}")
    return HYBRID[name]
