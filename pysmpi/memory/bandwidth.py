"""The memory of a node as a resource: its ranks share it, in messages and in compute.

A message inside a node is two copies, one by each side. A core copies one thing at a time, at the
bandwidth of the loopback in the file. A copy loads and stores, as STREAM's copy counts it: the
message takes its bytes from the memory of the sender's socket and from that of the receiver's,
twice if it is the same. Messages below `IN_CACHE` bytes pass through caches, and those below
`SMALL` keep a core busy for hardly longer than their overheads.

The bandwidth of a node's memory is an option of the machine (`memory/bandwidth`), as STREAM prints
it for all cores. Without it a node has `OF_A_CORE` for each of its cores. Its sockets have equal
parts of it.

Compute takes memory bandwidth only if the run says how much (`memory/bound`): the part of the
bandwidth that one core alone reaches (`memory/core-bandwidth`). Its rate is that of the core, or
its fair share of the memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pysmpi.kernel.activities import ActivityKind, Constraint
from pysmpi.kernel.core import Core
from pysmpi.kernel.plan import NEVER, Plan, Transport
from pysmpi.network.flows import ENVELOPE
from pysmpi.network.measured import MeasuredPreset, OsuCurve
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host
from pysmpi.platform.placement import Slot
from pysmpi.python.records import record

SMALL = 4096  # bytes
IN_CACHE = 1 << 17  # bytes
# Bytes/s of a node's memory for each of its cores. STREAM prints 2.7 to 4.5 GB/s a core on full
# nodes with DDR4 and DDR5 (two EPYC 7742, Xeon 8280, EPYC 9654, Xeon 8480).
OF_A_CORE = 4e9
# Bytes/s that one core alone reaches in STREAM on the same nodes: the least that a node has.
CORE = 12e9
# Parts of the latency of a message inside a node that its sender and its receiver are busy.
BUSY = 0.3
EAGER = 65536  # bytes
# One-way times inside a node, as osu_latency printed them for two cores and Open MPI.
INSIDE = OsuCurve(
    {
        16: 0.22e-6, 64: 0.26e-6, 128: 0.29e-6, 256: 0.33e-6, 512: 0.41e-6, 1024: 0.51e-6,
        2048: 0.61e-6, 4096: 1.31e-6, 8192: 1.85e-6, 16384: 2.59e-6, 32768: 2.93e-6,
        65536: 5.62e-6, 131072: 9.28e-6, 262144: 16.55e-6, 524288: 30.79e-6, 1048576: 58.15e-6,
    },
    source="github.com/converged-computing/metrics-operator, network-osu-benchmark (2023)",
)  # fmt: skip


def node_bandwidth(host: Host, settings: Settings) -> float:
    """The bandwidth (bytes/s) of the memory of a host; infinity if its ranks do not share it."""
    value = settings.value("memory/bandwidth")
    if value is None:
        return max(OF_A_CORE * host.cores, CORE)
    return float(value)


_LATE = MeasuredPreset(INSIDE, None, EAGER)


class NodeMemory:
    """The resources inside a host: its cores as they copy, and the memory of its sockets."""

    def __init__(self, host: Host, settings: Settings) -> None:
        self.host = host
        bandwidth = node_bandwidth(host, settings) / host.sockets
        self.sockets = [
            Constraint(bandwidth, f"{host.name}/memory/{number}") for number in range(host.sockets)
        ]
        self.copying: dict[int, Constraint] = {}  # by core

    def socket_of(self, core: int) -> Constraint:
        """The memory of the socket of a core."""
        return self.sockets[core * self.host.sockets // self.host.cores]

    def copies_of(self, core: int, bandwidth: float) -> Constraint:
        """A core as it copies, at most `bandwidth` bytes/s."""
        constraint = self.copying.get(core)
        if constraint is None:
            constraint = Constraint(bandwidth, f"{self.host.name}/copies/{core}")
            self.copying[core] = constraint
        return constraint


@record
class _Pair:
    """The resources of messages from one core of a host to another."""

    constraints: list[Constraint]
    weights: list[float]
    kind: ActivityKind


class NodeTransport(Transport):
    """Plans of `network` between hosts, and plans that share memory inside them.

    `slots[slot]` is the place of each slot; it may grow. With `own_costs`, messages inside a node
    have the latency and the bandwidth of the loopback, and not the factors of the network. If
    `messages` share no memory, only compute does.
    """

    def __init__(
        self,
        network: Transport,
        slots: Sequence[Slot],
        settings: Settings,
        own_costs: bool = False,
        messages: bool = True,
    ) -> None:
        self.network = network
        self.slots = slots
        self.settings = settings
        self.own_costs = own_costs
        self.messages = messages
        self.bound: float = settings.number("memory/bound")
        self.nodes: dict[int, NodeMemory] = {}
        self.pairs: dict[tuple[int, int, int, bool], _Pair] = {}

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """The plan of a message of `nbytes` between two slots."""
        plan = self.network.plan(source, destination, nbytes)
        sender, receiver = self.slots[source], self.slots[destination]
        if sender.host is not receiver.host or not self.messages:
            return plan
        if self.own_costs:
            plan = _inside(plan, nbytes)
        if nbytes >= SMALL and plan.volume > 0.0 and plan.bound < math.inf:
            pair = self._pair(sender, receiver, nbytes < IN_CACHE, plan)
            plan.factor = 1.0  # the bandwidth in the file is that of a copy
            plan.constraints, plan.weights, plan.kind = pair.constraints, pair.weights, pair.kind
        return plan

    def place(self, slot: int) -> int:
        """The place of a slot in the network."""
        return self.network.place(slot)

    def apart_from(self) -> int:
        """The size from which messages inside a host take its cores."""
        return SMALL if self.messages else NEVER

    def host_numbers(self, slots: int) -> list[int] | None:
        """The host of each slot, if the network knows places in hosts."""
        return self.network.host_numbers(slots)

    def node(self, host: Host) -> NodeMemory:
        """The memory of a host."""
        node = self.nodes.get(host.index)
        if node is None:
            node = self.nodes[host.index] = NodeMemory(host, self.settings)
        return node

    def share(self, core: Core, place: Slot) -> None:
        """Let the compute on a core share the memory of its socket."""
        if self.bound > 0.0:
            memory = self.node(place.host).socket_of(place.core)
            alone = min(self.settings.number("memory/core-bandwidth"), memory.capacity)
            core.memory = memory
            core.traffic = self.bound * alone / core.speed

    def _pair(self, sender: Slot, receiver: Slot, cached: bool, plan: Plan) -> _Pair:
        """The resources of messages between two cores, which may be `cached`."""
        key = sender.host.index, sender.core, receiver.core, cached
        pair = self.pairs.get(key)
        if pair is None:
            node = self.node(sender.host)
            weights: dict[Constraint, float] = {}
            # Links of the route that all messages of the host share are its memory.
            for constraint, weight in zip(plan.constraints, plan.weights, strict=True):
                weights[constraint] = weight
            memory_too = not cached and not weights
            for core in (sender.core, receiver.core):
                weights[node.copies_of(core, plan.bound)] = 1.0
                if memory_too:
                    memory = node.socket_of(core)
                    weights[memory] = weights.get(memory, 0.0) + 1.0
            pair = self.pairs[key] = _Pair(list(weights), list(weights.values()), ActivityKind())
        return pair


def _inside(plan: Plan, nbytes: int) -> Plan:
    """A message with the latency and the bandwidth of the loopback, late as measured ones are."""
    path = plan.kind
    latency = getattr(path, "latency", plan.latency)
    busy = BUSY * latency
    eager = nbytes < EAGER
    latency += max(0.0, _LATE.late(nbytes))
    return Plan(
        latency - 2.0 * busy if eager else latency, float(nbytes + ENVELOPE), plan.bound,
        plan.penalty, 1.0, plan.constraints, plan.weights, busy if eager else 0.0, busy,
        busy if eager else 0.0, eager, eager, kind=plan.kind,
    )  # fmt: skip


def share_memory(core: Core, place: Slot, transport: Transport | None) -> None:
    """Let the compute on a core share the memory of its node, if the run has such compute."""
    nodes = nodes_of(transport)
    if nodes is not None:
        nodes.share(core, place)


def nodes_of(transport: Transport | None) -> NodeTransport | None:
    """The transport that shares the memory of nodes, if a run has one."""
    while transport is not None and not isinstance(transport, NodeTransport):
        transport = getattr(transport, "network", None)
    return transport
