"""SimGrid's model of InfiniBand: fluid flows that slow each other down at both of their ends.

InfiniBand has no packet loss: a receiver that is busy stops its senders, and a stopped message
stops those behind it at its sender. So the bandwidth of a message depends on the messages at its
two hosts, not only on links. Whenever a message begins or ends, the bounds of all messages that are
connected to it through common hosts are set anew:

- o messages leave the sender's host. Their penalty is 1 if o = 1, otherwise o * bs, and ys times as
  much if more than two messages go to the receiver of one of them.
- k messages of the sender's host and messages of q hosts in total go to the receiver's host. The
  penalty is 1 if it is one message, otherwise k * be * q.
- The bound of a message without others is divided by the larger of the two penalties.

Messages inside a host are not counted.

Source: Vienne: Prediction of the performance of high-performance applications on InfiniBand
networks. PhD thesis, Grenoble 2010; SimGrid's options network/model:IB and smpi/IB-penalty-factors.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.kernel.activities import Activity
from pysmpi.kernel.plan import Plan, Regulator, Transport
from pysmpi.kernel.sharing import System
from pysmpi.network.kinds.fluid import FLOW, LINKS, hybrid
from pysmpi.network.models import Explanation, model
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host, Platform

PENALTIES = "smpi/IB-penalty-factors"


class Card:
    """The network card of a host: messages that leave, and numbers that arrive from each host."""

    def __init__(self) -> None:
        self.leaving: dict[Activity, Card] = {}  # with their receivers
        self.coming: dict[Card, int] = {}

    @property
    def arrivals(self) -> int:
        """The number of messages that arrive."""
        return sum(self.coming.values())


class Pair(Regulator):
    """The messages from one host to another."""

    def __init__(self, model: Congestion, source: Card, destination: Card) -> None:
        self.model = model
        self.source = source
        self.destination = destination

    def begun(self, transfer: Activity, system: System) -> None:
        """Count a message and slow down the others."""
        self.source.leaving[transfer] = self.destination
        coming = self.destination.coming
        coming[self.source] = coming.get(self.source, 0) + 1
        self.model.alone[transfer] = transfer.bound
        self.model.update(self.source, system)

    def changed(self, transfer: Activity, bound: float, system: System) -> None:
        """The links of a message have changed."""
        self.model.alone[transfer] = bound
        self.model.update(self.source, system)

    def ended(self, transfer: Activity) -> None:
        """Forget a message; the others become faster."""
        system = self.model.system
        del self.source.leaving[transfer], self.model.alone[transfer]
        coming = self.destination.coming
        coming[self.source] -= 1
        if coming[self.source] == 0:
            del coming[self.source]
        if system is not None:
            self.model.update(self.source, system)


class Congestion:
    """The bounds of all messages between different hosts."""

    def __init__(self, receiving: float, sending: float, crowded: float) -> None:
        self.receiving = receiving
        self.sending = sending
        self.crowded = crowded
        self.alone: dict[Activity, float] = {}  # bounds (bytes/s) of messages without others
        self.system: System | None = None

    def update(self, first: Card, system: System) -> None:
        """Set the bounds of all messages that are connected to those of a host."""
        self.system = system
        seen = {first}
        waiting = [first]
        while waiting:
            card = waiting.pop()
            self._bound(card, system)
            for other in (*card.leaving.values(), *card.coming):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)

    def _bound(self, card: Card, system: System) -> None:
        count = len(card.leaving)
        out = 1.0
        if count > 1:
            out = count * self.sending
            if any(receiver.arrivals > 2 for receiver in card.leaving.values()):
                out = max(out, out * self.crowded)
        for transfer, receiver in card.leaving.items():
            into = 1.0
            if receiver.arrivals != 1:
                into = receiver.coming[card] * self.receiving * len(receiver.coming)
            bound = self.alone[transfer] / max(into, out)
            if bound != transfer.bound:
                system.set_bound(transfer, bound)


class InfinibandTransport(Transport):
    """Plans of flows whose bounds depend on the messages at both hosts."""

    def __init__(self, flows: Transport, hosts: Sequence[Host], congestion: Congestion) -> None:
        self.flows = flows
        self.hosts = hosts
        self.congestion = congestion
        self.cards: dict[int, Card] = {}
        self.pairs: dict[tuple[int, int], Pair] = {}

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """The plan of a message of `nbytes` between two slots."""
        plan = self.flows.plan(source, destination, nbytes)
        ends = self.hosts[source].index, self.hosts[destination].index
        if ends[0] != ends[1]:
            pair = self.pairs.get(ends)
            if pair is None:
                cards = [self.cards.setdefault(end, Card()) for end in ends]
                pair = self.pairs[ends] = Pair(self.congestion, *cards)
            plan.regulator = pair
        return plan

    def place(self, slot: int) -> int:
        """The host."""
        return self.hosts[slot].index


@model(
    "ib",
    "SimGrid's InfiniBand: flows whose bandwidth depends on the messages at both ends",
    Explanation(
        f"{FLOW}. Its bound is divided by max(into, out): out = 1 for the only message that leaves "
        "a host, otherwise o * bs, * ys if more than two messages go to one of their receivers; "
        "into = 1 for the only message that comes to a host, otherwise k * be * q",
        (*LINKS,
         ("smpi/lat-factor, smpi/bw-factor", "the factors of this model and of hybrid"),
         ("be;bs;ys", f"penalties of receiving, of sending, of crowded receivers: {PENALTIES}"),
         ("o", "messages that leave the sender's host"),
         ("k, q", "messages from the sender's host to the receiver's, and hosts that send to it")),
        "Vienne: Prediction of the performance of high-performance applications on InfiniBand "
        "networks. PhD thesis, Grenoble 2010; SimGrid's option network/model:IB",
        "large messages on InfiniBand; the penalties were measured on Mellanox InfiniHost III and "
        "ConnectX cards",
    ),
)  # fmt: skip
def infiniband(platform: Platform, hosts: Sequence[Host], settings: Settings) -> Transport:
    """Flows with the factors of model hybrid, under the penalties of the hosts' cards."""
    flows = hybrid(platform, hosts, settings)
    return InfinibandTransport(flows, hosts, Congestion(*settings.value(PENALTIES)))
