"""Plans of messages that flow, for each pair of hosts and each size.

Compiled, because an alltoall needs a path for each pair of ranks. The user of this module gives the
factors and overheads of a size.
"""

from typing import Any, Final

from pysmpi.kernel.activities import ActivityKind, Constraint
from pysmpi.kernel.events import INFINITY
from pysmpi.kernel.plan import Plan, Transport

ENVELOPE: Final = 16  # bytes of tag, destination and communicator that travel with each message
CROSS_TRAFFIC: Final = 0.05  # share of a flow's rate that its acknowledgements take on the way back
PATHS: Final = 1 << 20  # number of cached paths; each takes some 350 bytes
SIZES: Final = 1 << 16  # number of cached sizes of messages


class Resource:
    """A link as flows see it: bandwidth (bytes/s), latency (s), weight-S / bandwidth (s).

    A fat pipe gives each flow all of its bandwidth, so it is not `shared`.
    """

    def __init__(
        self,
        bandwidth: float,
        latency: float,
        resistance: float,
        shared: bool,
        constraint: Constraint,
    ) -> None:
        self.bandwidth: float = bandwidth
        self.latency: float = latency
        self.resistance: float = resistance
        self.shared: bool = shared
        self.constraint: Constraint = constraint
        # The latest path that uses it, by number, and its place among the constraints there.
        self.path: int = 0
        self.place: int = 0


class Halves:
    """The links of a host from and to the centre of its zone; without a centre, `zone` is None."""

    def __init__(self, zone: object, up: "list[Resource]", down: "list[Resource]") -> None:
        self.zone: object = zone
        self.up: list[Resource] = up
        self.down: list[Resource] = down


class Path:
    """The constraints and the distance of a pair of hosts, for all sizes of messages."""

    def __init__(
        self,
        latency: float,
        bound: float,
        penalty: float,
        constraints: "list[Constraint]",
        weights: "list[float]",
    ) -> None:
        self.latency: float = latency
        self.bound: float = bound
        self.penalty: float = penalty
        self.constraints: list[Constraint] = constraints
        self.weights: list[float] = weights
        self.kind: ActivityKind = ActivityKind()


class Sized:
    """The costs of a size for all pairs of hosts; overheads of hosts without their own."""

    def __init__(
        self,
        latency_factor: float,
        bandwidth_factor: float,
        send_cost: float,
        isend_cost: float,
        recv_cost: float,
        eager: bool,
        detached: bool,
    ) -> None:
        self.latency_factor: float = latency_factor
        self.bandwidth_factor: float = bandwidth_factor
        self.send_cost: float = send_cost
        self.isend_cost: float = isend_cost
        self.recv_cost: float = recv_cost
        self.eager: bool = eager
        self.detached: bool = detached


class FlowTransport(Transport):
    """Plans of messages between hosts of a platform; `hosts[slot]` is the host of each slot.

    If a program spawns processes on new slots, `hosts` grows. `weight` (bytes) is divided by the
    bandwidth of each link and added to the round-trip weight of a flow. `gamma` (bytes) is twice
    the TCP window, 0 for none. `sized(nbytes)` returns the `Sized` of a size. `overheads(src, dst,
    nbytes)` returns the costs of sending, starting and receiving between hosts if one of them has
    its own overheads.
    """

    def __init__(
        self,
        platform: Any,
        hosts: Any,
        weight: float,
        gamma: float,
        cross_traffic: bool,
        sized: Any,
        overheads: Any,
    ) -> None:
        self.platform: Any = platform
        self.hosts: Any = hosts
        self.weight: float = weight
        self.gamma: float = gamma
        self.cross_traffic: bool = cross_traffic
        self.sized: Any = sized
        self.overheads: Any = overheads
        self.resources: dict[object, Resource] = {}  # by link
        self.weights: dict[tuple[float, ...], list[float]] = {}  # most pairs have the same
        self.latest: list[float] = []  # those of the latest path
        self.halves: dict[int, Halves] = {}  # by host
        self.made: int = 0  # paths, over the whole simulation
        self.paths: dict[int, Path] = {}
        self.sizes: dict[int, Sized] = {}

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """The plan of a message of `nbytes` between two slots."""
        src = self.hosts[source]
        dst = self.hosts[destination]
        first: int = src.index
        last: int = dst.index
        path = self.paths.get(first << 32 | last)
        if path is None:
            path = self._new_path(src, dst, first, last)
        sized = self.sizes.get(nbytes)
        if sized is None:
            if len(self.sizes) >= SIZES:
                self.sizes.clear()
            sized = self.sized(nbytes)
            self.sizes[nbytes] = sized
        send_cost = sized.send_cost
        isend_cost = sized.isend_cost
        recv_cost = sized.recv_cost
        if src.properties or dst.properties:
            costs: tuple[float, float, float] = self.overheads(src, dst, nbytes)
            send_cost, isend_cost, recv_cost = costs
        return Plan(
            path.latency * sized.latency_factor,
            # On a way without links, such as a mere distance, a message arrives with its envelope.
            float(nbytes + ENVELOPE) if path.bound < INFINITY else 0.0,
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
            kind=path.kind,
        )

    def place(self, slot: int) -> int:
        """The host: in this model all its slots have the same costs."""
        found: int = self.hosts[slot].index
        return found

    def _new_path(self, src: object, dst: object, first: int, last: int) -> Path:
        """The cached path of a pair of hosts, with the path of the way back if needed."""
        if len(self.paths) > PATHS:
            self.paths.clear()
        forth: list[Resource] = []
        back: list[Resource] = []
        one = self._halves_of(src, first)
        other = self._halves_of(dst, last)
        if first != last and one.zone is not None and one.zone is other.zone:
            forth = crossed(one.up, other.down)
            if self.cross_traffic:
                back = crossed(other.up, one.down)
        if len(forth) == 0:
            forth = self._way(src, dst)
            if self.cross_traffic:
                back = forth if first == last else self._way(dst, src)
        if self.cross_traffic:
            self.paths[last << 32 | first] = self._path(back, forth)
        path = self._path(forth, back)
        self.paths[first << 32 | last] = path
        return path

    def _path(self, forth: "list[Resource]", back: "list[Resource]") -> Path:
        latency = 0.0
        bound = INFINITY
        resistance = 0.0
        constraints: list[Constraint] = []
        weights: list[float] = []
        self.made += 1
        for resource in forth:
            latency += resource.latency
            if resource.bandwidth < bound:
                bound = resource.bandwidth
            resistance += resource.resistance
            if resource.shared:
                self._add(constraints, weights, resource, 1.0)
        penalty = 1.0
        if latency > 0.0:
            if self.gamma > 0.0:
                window = self.gamma / (2.0 * latency)
                if window < bound:
                    bound = window
            penalty = latency + resistance
        for resource in back:
            if resource.shared:
                self._add(constraints, weights, resource, CROSS_TRAFFIC)
        if weights != self.latest:
            key = tuple(weights)
            known = self.weights.get(key)
            if known is None:
                self.weights[key] = known = weights
            self.latest = known
        return Path(latency, bound, penalty, constraints, self.latest)

    def _add(
        self,
        constraints: "list[Constraint]",
        weights: "list[float]",
        resource: Resource,
        weight: float,
    ) -> None:
        """Add to the weight of a resource in the path that is being made."""
        if resource.path == self.made:
            weights[resource.place] += weight
        else:
            resource.path = self.made
            resource.place = len(constraints)
            constraints.append(resource.constraint)
            weights.append(weight)

    def _halves_of(self, host: object, index: int) -> Halves:
        """The links of a host from and to the centre of its zone."""
        found = self.halves.get(index)
        if found is None:
            known: Any = self.platform.halves(host)
            found = Halves(None, [], [])
            if known is not None:
                zone, up, down = known
                found.up = [self.resource_of(link) for link in up]
                found.down = [self.resource_of(link) for link in down]
                found.zone = zone
                for link in (*up, *down):
                    if link.index < 0:
                        found.zone = None  # each path has such a link of its own
            self.halves[index] = found
        return found

    def _way(self, src: object, dst: object) -> "list[Resource]":
        """The links from one host to another, as flows see them."""
        way: list[Resource] = []
        for link in self.platform.way(src, dst):
            resource = self.resources.get(link)
            if resource is None:
                resource = self._resource(link)
            way.append(resource)
        return way

    def resource_of(self, link: Any) -> Resource:
        """The link as flows see it."""
        found = self.resources.get(link)
        return self._resource(link) if found is None else found

    def _resource(self, link: Any) -> Resource:
        bandwidth: float = link.bandwidth
        latency: float = link.latency
        shared = bool(link.sharing == "shared")
        constraint = Constraint(bandwidth, link.name)
        found = Resource(bandwidth, latency, self.weight / bandwidth, shared, constraint)
        if link.index >= 0:
            self.resources[link] = found
        return found


def crossed(up: "list[Resource]", down: "list[Resource]") -> "list[Resource]":
    """The links of two halves of a route, each once; a search is quick, as they are few."""
    found: list[Resource] = []
    for half in (up, down):
        for resource in half:
            for other in found:
                if other is resource:
                    break
            else:
                found.append(resource)
    return found
