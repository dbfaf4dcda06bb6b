"""Every model gives its closed form, to rounding, on every machine that ships.

The forms are written here anew, from the papers, on the route and the overheads of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import pysmpi
from pysmpi.network.choice import HYBRIDS
from pysmpi.network.models import models
from pysmpi.network.presets import HYBRID
from pysmpi.platform import load, shipped
from pysmpi.platform.piecewise import Piecewise, parse

SIZES = (0, 1, 1000, 2000, 40000, 200000, 1000000)
ENVELOPE = 16


def timed(sizes):
    """Seconds of this rank in a message of each size, then in messages there and back."""
    import time

    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = []
    turns = [(size, back) for back in (False, True) for size in sizes]
    for turn, (size, back) in enumerate(turns):
        buffer = numpy.zeros(size, "b")
        time.sleep(10.0 * (turn + 1) - MPI.Wtime())
        begin = MPI.Wtime()
        if comm.rank == 0:
            comm.Send(buffer, 1)
        else:
            comm.Recv(buffer, 0)
        if back and comm.rank == 0:
            comm.Recv(buffer, 1)
        elif back:
            comm.Send(buffer, 0)
        found.append(MPI.Wtime() - begin)
    return found


@dataclass
class Machine:
    """Two ends of a machine: their route, the way back, the options under a model."""

    def __init__(self, name: str, model: str) -> None:
        platform = load(name)
        self.platform = platform
        self.src, self.dst = platform.hosts[0], platform.hosts[-1]
        self.forth = platform.route(self.src, self.dst)
        self.back = platform.route(self.dst, self.src)
        self.models = platform.models.get(model, {})
        self.options = {**platform.config, **self.models}
        self.hybrid = platform.config if model in HYBRIDS else {}
        self.local = self.src is self.dst
        self.latency = self.forth.latency
        self.bandwidth = min(link.bandwidth for link in self.forth.links)
        preset = HYBRID[platform.preset]
        self.factors = {"lat": preset.latency_factor, "bw": preset.bandwidth_factor}
        # Another model has its own protocol where the machine says nothing.
        self.detaches = preset.detached if model in HYBRIDS else 65536.0

    def segments(self, name: str, default: str = "0:0:0") -> Piecewise:
        return parse(self.options.get(name, default), name)

    def number(self, name: str, default: float) -> float:
        text = self.options.get(name)
        if text is None or (self.local and name in ("loggp/L", "loggp/G")):
            return default
        return float(text.removesuffix("us")) * (1e-6 if text.endswith("us") else 1.0)

    def os(self, nbytes: int) -> float:
        return self.segments("smpi/os").affine(nbytes)

    def orecv(self, nbytes: int) -> float:
        return self.segments("smpi/or").affine(nbytes)

    @property
    def eager(self) -> float:
        return self.number("smpi/async-small-thresh", 0.0)

    @property
    def detached(self) -> float:
        return self.number("smpi/send-is-detached-thresh", self.detaches)


def flow(m: Machine, nbytes: int, latency: float, bandwidth: float, window: float, cross: bool):
    """(sender, receiver) seconds of a fluid model."""
    wire = nbytes + ENVELOPE
    share = m.bandwidth
    if window and m.latency:
        share = min(share, window / (2 * m.latency))
    back = [link for link in m.back.links] if cross else []
    for link in m.forth.links:
        if link.sharing == "shared":
            used = 1.0 + (0.05 if link in back else 0.0)
            share = min(share, link.bandwidth / used)
    seconds = latency * m.latency + wire / (bandwidth * share)
    if nbytes < m.detached:
        return m.os(nbytes), m.os(nbytes) + seconds + m.orecv(nbytes)
    return seconds, seconds


def hybrid(m: Machine, nbytes: int):
    wire = nbytes + ENVELOPE
    smpi = m.platform.preset == "smpi"
    own = dict(m.factors)
    for name in own:
        own[name] = m.hybrid.get(f"smpi/{name}-factor", own[name])
    latency = parse(own["lat"], "lat", 1.0).factor(wire)
    bandwidth = parse(own["bw"], "bw", 1.0).factor(wire)
    return flow(m, nbytes, latency, bandwidth, 4194304.0 if smpi else 0.0, smpi)


def plain(latency: float, bandwidth: float, window: float, cross: bool):
    return lambda m, nbytes: flow(m, nbytes, latency, bandwidth, window, cross)


def fluid(m: Machine, nbytes: int):
    text = m.models.get("network/bandwidth-factor", "0:1")
    bandwidth = parse(text, "bw", 1.0).factor(nbytes + ENVELOPE)
    return flow(m, nbytes, 1.0, bandwidth, 0.0, False)


def logp(m: Machine, nbytes: int):
    packet = m.number("logp/packet", 1500)
    gap = m.number("loggp/g", packet * m.number("loggp/G", 1 / m.bandwidth))
    k = max(1, -(-nbytes // int(packet)))
    send, receive = m.os(1), m.orecv(1)
    busy = send + (k - 1) * max(gap, send, receive)
    return busy, busy + m.number("loggp/L", m.latency) + receive


def loggp(m: Machine, nbytes: int):
    last = max(0, nbytes - 1) * m.number("loggp/G", 1 / m.bandwidth)
    return m.os(1), m.os(1) + last + m.number("loggp/L", m.latency) + m.orecv(1)


def loggps(m: Machine, nbytes: int):
    """Table (c) of figure 1 of the paper on SMPI, both calls at one date."""
    latency, each = m.number("loggp/L", m.latency), m.number("loggp/G", 1 / m.bandwidth)
    short = m.number("loggps/s", 0.0)
    first = m.number("loggps/g", each)
    t1, t3 = m.os(nbytes), m.orecv(nbytes)
    if nbytes < short:
        t2 = latency + nbytes * first
    else:
        t2 = latency + short * first + (nbytes - short) * each
    if nbytes < m.detached:
        return t1, t1 + t2 + t3
    o_s, o_r = m.segments("smpi/os").factor(nbytes), m.orecv(0)
    t4 = max(latency + o_s, 0.0) + o_r
    t5 = o_r + latency + o_s
    return t4 + t5 + t1, t4 + t5 + t1 + t2 + t3


def plogp(m: Machine, nbytes: int):
    gap = max(nbytes * m.number("loggp/G", 1 / m.bandwidth), m.os(nbytes), m.orecv(nbytes))
    # A receiver is not done before the sender and it have been busy one after the other.
    return m.os(nbytes), max(m.number("loggp/L", m.latency) + gap, m.os(nbytes) + m.orecv(nbytes))


def middleware(links: bool, local: bool):
    """log_nP and its relatives for contiguous messages; `local`: nodes have costs of their own."""

    def form(m: Machine, nbytes: int):
        hosts = m.platform.hosts
        send, receive = m.os(nbytes), m.orecv(nbytes)
        if m.local and local:
            way = m.forth.latency + nbytes / m.bandwidth
            if "lognp/o-node" in m.options:
                send = receive = m.segments("lognp/o-node").affine(nbytes)
            else:
                send, receive = send + way / 2, receive + way / 2
            return send, send + receive
        if "lognp/o" in m.options:
            send = receive = m.segments("lognp/o").affine(nbytes)
        route = m.forth
        if m.local and len(hosts) > 1:
            route = m.platform.route(hosts[0], hosts[1])
        if links:
            net = sum(link.latency + nbytes / link.bandwidth for link in route.links)
        else:
            net = route.latency + nbytes / min(link.bandwidth for link in route.links)
        return send, send + net + receive

    return form


FORMS = {
    "hybrid": hybrid,
    "ib": hybrid,  # one message has no penalty
    "lv08": plain(13.01, 0.97, 4194304.0, True),
    "cm02": plain(1.0, 1.0, 4194304.0, True),
    "fluid": fluid,
    "logp": logp,
    "loggp": loggp,
    "loggps": loggps,
    "plogp": plogp,
    "log_nP": middleware(links=True, local=False),
    "log_3P": middleware(links=False, local=False),
    "mlog_nP": middleware(links=True, local=True),
    "2log_23P": middleware(links=False, local=True),
}


def test_every_model_has_a_closed_form_here():
    assert set(FORMS) == set(models())


@pytest.mark.parametrize("model", FORMS)
@pytest.mark.parametrize("name", shipped())
def test_a_model_gives_its_closed_form(name, model, tmp_path):
    machine = Machine(name, model)
    hosts = tmp_path / "hosts"
    hosts.write_text(f"{machine.src.name}\n{machine.dst.name}\n")
    options = {
        "platform": name, "hostfile": hosts, "model": model, "compute": "none",
        "cfg": {"smpi/wtime": "0"},
    }  # fmt: skip
    if model not in ("log_nP", "log_3P", "mlog_nP", "2log_23P"):
        options["memory_model"] = "loopback"
    here, there = pysmpi.run(timed, 2, args=(SIZES,), **options).returns
    sent, rounds = here[: len(SIZES)], here[len(SIZES) :]
    received = there[: len(SIZES)]
    for i, size in enumerate(SIZES):
        sender, receiver = FORMS[model](machine, size)
        assert sent[i] == pytest.approx(sender, rel=1e-6, abs=1e-12), size
        assert received[i] == pytest.approx(receiver, rel=1e-6, abs=1e-12), size
        # Machines here are the same in both directions.
        assert rounds[i] == pytest.approx(2 * receiver, rel=1e-6, abs=1e-12), size
