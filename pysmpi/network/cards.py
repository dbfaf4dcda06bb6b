"""Network cards: the messages that all ranks of a host send and receive a second.

The links of a file carry bytes. A card also needs a time for each message. So the ranks of a full
node together send fewer messages than their number times the rate of one rank. A measured preset
may have this rate by size, as `osu_mbw_mr` prints it with all cores of two nodes. A message then
uses the card of its sender for the time in which the card sends one message of its size, and the
card of its receiver as long. The two directions of a card are independent. Where the time on the
links is longer, only they count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pysmpi.kernel.activities import ActivityKind, Constraint
from pysmpi.kernel.plan import Plan, Transport
from pysmpi.network.rails import RailTransport
from pysmpi.platform.model import Host
from pysmpi.platform.placement import Slot
from pysmpi.python.records import record


@record
class _Use:
    """The constraints and weights of messages of one size between two hosts."""

    constraints: list[Constraint]
    weights: list[float]
    kind: ActivityKind


class CardTransport(Transport):
    """Plans of `network`; between hosts, a message of n bytes needs both cards for `seconds(n)`.

    `slots[slot]` is the place of each slot; it may grow.
    """

    def __init__(
        self, network: Transport, slots: Sequence[Slot], seconds: Callable[[int], float]
    ) -> None:
        self.network = network
        self.slots = slots
        self.seconds = seconds
        self.cards: dict[tuple[int, str], Constraint] = {}  # by host and direction
        self.uses: dict[tuple[ActivityKind | None, float], _Use] = {}  # by path and weight

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """The plan of a message of `nbytes` between two slots."""
        plan = self.network.plan(source, destination, nbytes)
        sender, receiver = self.slots[source].host, self.slots[destination].host
        if sender is not receiver:
            seconds = self.seconds(nbytes)
            for one in [plan] if plan.turns is None else plan.turns.plans:
                if one.volume > 0.0:
                    self._add_cards(one, sender, receiver, seconds)
        return plan

    def _add_cards(self, plan: Plan, sender: Host, receiver: Host, seconds: float) -> None:
        links = plan.volume / (plan.bound * plan.factor)
        if seconds <= links:
            return
        # Alone, a message takes as long as without the card.
        plan.latency = max(0.0, plan.latency - (seconds - links))
        weight = seconds * plan.factor / plan.volume
        key = plan.kind, weight
        use = self.uses.get(key)
        if use is None:
            cards = [self._card(sender, "sends"), self._card(receiver, "receives")]
            use = self.uses[key] = _Use(
                [*plan.constraints, *cards], [*plan.weights, weight, weight], ActivityKind()
            )
        plan.constraints, plan.weights, plan.kind = use.constraints, use.weights, use.kind

    def place(self, slot: int) -> int:
        """The place of a slot in the network."""
        return self.network.place(slot)

    def apart_from(self) -> int:
        """As in the network."""
        return self.network.apart_from()

    def host_numbers(self, slots: int) -> list[int] | None:
        """As in the network."""
        return self.network.host_numbers(slots)

    def _card(self, host: Host, direction: str) -> Constraint:
        """The cards of a host, one a rail, in one direction."""
        key = host.index, direction
        card = self.cards.get(key)
        if card is None:
            count = self.network.count(host) if isinstance(self.network, RailTransport) else 1
            card = self.cards[key] = Constraint(float(count), f"card {host.name} {direction}")
        return card
