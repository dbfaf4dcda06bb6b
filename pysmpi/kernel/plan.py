"""The plan of one message: its costs in a network or memory model."""

from typing import Final, Optional

from mypy_extensions import mypyc_attr

from pysmpi.kernel.activities import Activity, ActivityKind, Constraint
from pysmpi.kernel.events import INFINITY
from pysmpi.kernel.sharing import System

NEVER: Final = 1 << 62  # bytes, more than any message has


class Port:
    """A resource for one message at a time, first come first served: a network card's direction.

    `free` is the time (s) at which it can take the next message.
    """

    def __init__(self) -> None:
        self.free: float = 0.0


class Gap:
    """The costs of a message that uses a port of its sender's host, then one of its receiver's.

    Both ports are busy for `hold` seconds. The last byte arrives `last` seconds after the
    receiver's port has begun. Ports may begin while processors are busy with the message: the
    sender's port `lead` seconds before the posting, the receiver's port `ahead` seconds before the
    end of the latency. A port may be missing.

    A message that is not eager waits for an answer of its receiver: its envelope takes `request`
    seconds to the receiver. After another `answer` seconds the message leaves, and its sender
    continues. Messages of non-blocking calls leave `late` seconds later.
    """

    def __init__(
        self,
        out: Optional[Port],
        into: Optional[Port],
        hold: float,
        last: float,
        lead: float = 0.0,
        ahead: float = 0.0,
        request: float = 0.0,
        answer: float = 0.0,
        late: float = 0.0,
    ) -> None:
        self.out: Optional[Port] = out
        self.into: Optional[Port] = into
        self.hold: float = hold
        self.last: float = last
        self.lead: float = lead
        self.ahead: float = ahead
        self.request: float = request
        self.answer: float = answer
        self.late: float = late


class Turns:
    """The plans of the messages of one size between two hosts, one a rail, which take turns.

    `counts[0]` is the number of the messages of all sizes so far.
    """

    def __init__(self, counts: "list[int]", plans: "list[Plan]") -> None:
        self.counts: list[int] = counts
        self.plans: list[Plan] = plans

    def next(self) -> "Plan":
        """The plan of the next message."""
        number = self.counts[0]
        self.counts[0] = number + 1
        return self.plans[number % len(self.plans)]


class Plan:
    """The costs of a message of one size between one pair of cores, and its shared resources.

    `send_cost`, `isend_cost` and `recv_cost` are seconds of the sender's and the receiver's time
    (os, ois and or of the hybrid model); `latency` is the seconds before the transfer. Then
    `volume` bytes are transferred at `factor` times the shared rate, with `penalty` and `bound`
    (bytes/s) as in `sharing`, and take `weights[i]` times their rate of `constraints[i]` (default:
    once). An `eager` message does not wait for its receive; a `detached` one
    does not block its sender. With a `pricing` these figures are only initial values.

    With a `gap` the message uses ports, before and after the `latency`, instead of a transfer; then
    both ends pay their costs whether the message is detached or not. A `regulator` changes the
    bounds of transfers while others begin and end. Plans with the same lists of constraints and
    weights may share a `kind`. If the next message of the same size and places has another plan,
    `turns` has both.
    """

    def __init__(
        self,
        latency: float = 0.0,
        volume: float = 0.0,
        bound: float = INFINITY,
        penalty: float = 1.0,
        factor: float = 1.0,
        constraints: "Optional[list[Constraint]]" = None,
        weights: "Optional[list[float]]" = None,
        send_cost: float = 0.0,
        isend_cost: float = 0.0,
        recv_cost: float = 0.0,
        eager: bool = False,
        detached: bool = True,
        pricing: "Optional[AbstractPricing]" = None,
        gap: Optional[Gap] = None,
        regulator: "Optional[Regulator]" = None,
        kind: Optional[ActivityKind] = None,
        turns: Optional[Turns] = None,
    ) -> None:
        if constraints is None:
            constraints = []
        # Comparisons with NaN are false.
        if not (0.0 <= latency < INFINITY and 0.0 <= volume < INFINITY):
            raise ValueError(f"a plan has latency {latency} s and {volume} bytes")
        ends = bound < INFINITY or len(constraints) > 0 or volume == 0.0
        if not (bound > 0.0 and factor > 0.0 and ends):
            raise ValueError(
                f"a plan of {volume} bytes has bound {bound} bytes/s, factor {factor} and "
                f"{len(constraints)} constraints: its bytes would never flow"
            )
        self.latency: float = latency
        self.volume: float = volume
        self.bound: float = bound
        self.penalty: float = penalty
        self.factor: float = factor
        self.constraints: list[Constraint] = constraints
        self.weights: list[float] = [1.0] * len(constraints) if weights is None else weights
        self.send_cost: float = send_cost
        self.isend_cost: float = isend_cost
        self.recv_cost: float = recv_cost
        self.eager: bool = eager
        self.detached: bool = detached
        self.pricing: Optional[AbstractPricing] = pricing
        self.gap: Optional[Gap] = gap
        self.regulator: Optional[Regulator] = regulator
        self.kind: Optional[ActivityKind] = kind
        self.turns: Optional[Turns] = turns

    def late(self, seconds: float) -> "Plan":
        """The plan of one message that is late by some seconds."""
        return self._copied(self.latency + seconds, self.pricing)

    def priced(self, pricing: "AbstractPricing") -> "Plan":
        """A copy of the plan with a pricing."""
        return self.copy(1.0, pricing)

    def copy(self, factor: float, pricing: "Optional[AbstractPricing]") -> "Plan":
        """A copy with `factor` times the latency, and with another pricing; also of its turns."""
        if self.turns is None:
            return self._copied(self.latency * factor, pricing)
        plans: list[Plan] = []
        turns = Turns(self.turns.counts, plans)
        for plan in self.turns.plans:
            copied = plan._copied(plan.latency * factor, pricing)
            copied.turns = turns
            plans.append(copied)
        return plans[0]

    def _copied(self, latency: float, pricing: "Optional[AbstractPricing]") -> "Plan":
        return Plan(
            latency, self.volume, self.bound, self.penalty, self.factor, self.constraints,
            self.weights, self.send_cost, self.isend_cost, self.recv_cost, self.eager,
            self.detached, pricing, self.gap, self.regulator, self.kind,
        )  # fmt: skip


@mypyc_attr(allow_interpreted_subclasses=True)
class Regulator:
    """Notified of the transfers of a model in which their number changes their bounds.

    A transfer begins with its latency. `System.set_bound` changes the bound of a transfer.
    """

    def begun(self, transfer: Activity, system: System) -> None:
        """A transfer begins."""

    def changed(self, transfer: Activity, bound: float, system: System) -> None:
        """The links of a transfer have changed; alone it would have this bound (bytes/s) now."""

    def ended(self, transfer: Activity) -> None:
        """A transfer has ended."""


@mypyc_attr(allow_interpreted_subclasses=True)
class AbstractPricing:
    """The interface of a pricing to a plan; `kernel.requests.Pricing` is the base of all."""


# The plan of bytes in memory that both ends share: they take no time.
FREE: Final = Plan(eager=True)


@mypyc_attr(allow_interpreted_subclasses=True)
class Transport:
    """Makes the plans. A model of the network (or of a node's memory) is a subclass."""

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """Return the plan of a message of `nbytes` between two slots of the machine."""
        raise RuntimeError("a transport must define the cost of a message")

    def place(self, slot: int) -> int:
        """Return a number; slots with the same number have equal plans with all other slots."""
        return slot

    def apart_from(self) -> int:
        """The size (bytes) from which plans depend on the slots of the same host."""
        return NEVER

    def host_numbers(self, slots: int) -> "Optional[list[int]]":
        """The host of each slot as a number; None if these are the numbers of `place`."""
        return None


class PlanBook:
    """A cache of plans, by size and pair of places; it drops all when it grows beyond `limit`.

    Plans between slots of one host have an entry for each pair of slots from the size on at which
    they are apart.
    """

    def __init__(self, transport: Transport, slots: int, limit: int = 1_500_000) -> None:
        self.transport: Transport = transport
        self.places: list[int] = [transport.place(slot) for slot in range(slots)]
        hosts = transport.host_numbers(slots)
        self.hosts: list[int] = self.places if hosts is None else hosts
        self.width: int = max(self.places, default=0) + 1
        self.apart_from: int = transport.apart_from()
        self.limit: int = limit
        self.count: int = 0
        self.sizes: dict[int, dict[int, Plan]] = {}
        self.nbytes: int = -1
        self.pairs: dict[int, Plan] = {}

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """The plan of a message of a size (bytes) between two slots."""
        if nbytes != self.nbytes:
            pairs = self.sizes.get(nbytes)
            if pairs is None:
                pairs = {}
                self.sizes[nbytes] = pairs
            self.nbytes = nbytes
            self.pairs = pairs
        places = self.places
        place = places[source]
        pair = place * self.width + places[destination]
        if nbytes >= self.apart_from and self.hosts[source] == self.hosts[destination]:
            pair = self.width * self.width + source * len(places) + destination
        plan = self.pairs.get(pair)
        if plan is None:
            if self.count >= self.limit:
                self.sizes = {}
                self.pairs = {}
                self.sizes[nbytes] = self.pairs
                self.count = 0
            plan = self.transport.plan(source, destination, nbytes)
            self.pairs[pair] = plan
            self.count += 1
        return plan if plan.turns is None else plan.turns.next()
