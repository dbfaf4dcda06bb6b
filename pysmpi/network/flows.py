"""Plans of messages that share links fairly, for each pair of hosts and each size.

The module is compiled, because an alltoall needs a path for each pair of ranks. Its user gives the
factors and overheads of a size.
"""

from typing import Any, Final, Optional

from pysmpi.kernel.activities import ActivityKind, Constraint
from pysmpi.kernel.events import INFINITY
from pysmpi.kernel.plan import Plan, Transport

ENVELOPE: Final = 16  # bytes of tag, destination and communicator that travel with each message
CROSS_TRAFFIC: Final = (
    0.05  # share of a flow's rate that its acknowledgements take on the return route
)
PATHS: Final = 1 << 20  # most cached paths; each takes some 300 bytes
SIZES: Final = 1 << 16  # most cached sizes of messages


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
        # The number of the latest path that uses it, and its index among the constraints there.
        self.path: int = 0
        self.index: int = 0


class End:
    """A host as flows see it: its number, and its links from and to the centre of its zone.

    Without a centre, `zone` is None. A `priced` host may have overheads of its own. `swap` has the
    links of a rail in the place of those in routes.
    """

    def __init__(
        self, host: object, index: int, priced: bool, swap: "Optional[dict[object, object]]"
    ) -> None:
        self.host: object = host
        self.index: int = index
        self.priced: bool = priced
        self.swap: Optional[dict[object, object]] = swap
        self.zone: object = None
        self.up: list[Resource] = []
        self.down: list[Resource] = []


class Path(ActivityKind):
    """The constraints and the distance of a pair of hosts, for all sizes of messages.

    If a message is split over several rails, `shares` are the parts of it on each constraint.
    """

    def __init__(
        self,
        latency: float,
        bound: float,
        penalty: float,
        constraints: "list[Constraint]",
        weights: "list[float]",
        shares: "Optional[list[float]]" = None,
    ) -> None:
        super().__init__()
        self.latency: float = latency
        self.bound: float = bound
        self.penalty: float = penalty
        self.constraints: list[Constraint] = constraints
        self.weights: list[float] = weights
        self.shares: Optional[list[float]] = shares


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
        self.width: int = len(platform.hosts)
        self.slots: list[Optional[End]] = []  # the host of each slot
        self.ends: dict[int, End] = {}  # by number of the host
        self.weights: dict[tuple[float, ...], list[float]] = {}
        # The pattern of the latest path, which most paths share: for each of its shared links the
        # index of its constraint, the number of shared links of the route there, and the weights.
        self.usual: list[int] = []
        self.usual_forth: int = 0
        self.usual_weights: list[float] = []
        self.indexed: int = 0  # number of shared links of the present path that have an index
        self.count: int = 0  # number of paths, over the whole simulation
        self.paths: dict[int, Path] = {}  # by numbers of both hosts
        self.sizes: dict[int, Sized] = {}
        self.size: Optional[Sized] = None  # the latest
        self.nbytes: int = -1

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """The plan of a message of `nbytes` between two slots."""
        src = self._end(source)
        dst = self._end(destination)
        return self.planned(self.path(src, dst), src, dst, nbytes, nbytes)

    def path(self, src: End, dst: End) -> Path:
        """The path between two hosts."""
        path = self.paths.get(src.index * self.width + dst.index)
        return self._new_path(src, dst) if path is None else path

    def planned(self, path: Path, src: End, dst: End, nbytes: int, part: int) -> Plan:
        """The plan of a message of `nbytes`, at most `part` of them on each rail of its path."""
        sized = self.size
        if sized is None or nbytes != self.nbytes:
            sized = self._sized(nbytes)
            self.size = sized
            self.nbytes = nbytes
        factor = sized.bandwidth_factor
        if part != nbytes:
            factor = self._sized(part).bandwidth_factor
        send_cost = sized.send_cost
        isend_cost = sized.isend_cost
        recv_cost = sized.recv_cost
        if src.priced or dst.priced:
            costs: tuple[float, float, float] = self.overheads(src.host, dst.host, nbytes)
            send_cost, isend_cost, recv_cost = costs
        return Plan(
            path.latency * sized.latency_factor,
            # A route without links only has a distance: a message arrives with its envelope.
            float(nbytes + ENVELOPE) if path.bound < INFINITY else 0.0,
            path.bound,
            path.penalty,
            factor,
            path.constraints,
            path.weights,
            send_cost,
            isend_cost,
            recv_cost,
            sized.eager,
            sized.detached,
            kind=path,
        )

    def _sized(self, nbytes: int) -> Sized:
        sized = self.sizes.get(nbytes)
        if sized is None:
            if len(self.sizes) >= SIZES:
                self.sizes.clear()
            sized = self.sized(nbytes)
            self.sizes[nbytes] = sized
        return sized

    def place(self, slot: int) -> int:
        """The host: in this model all its slots have the same costs."""
        index: int = self.hosts[slot].index
        return index

    def _end(self, slot: int) -> End:
        """The host of a slot."""
        slots = self.slots
        if slot >= len(slots):
            slots.extend([None] * (len(self.hosts) - len(slots)))
        end = slots[slot]
        if end is None:
            host = self.hosts[slot]
            index: int = host.index
            end = self.ends.get(index)
            if end is None:
                self.ends[index] = end = self.new_end(host, index, None)
            slots[slot] = end
        return end

    def new_end(self, host: Any, index: int, swap: "Optional[dict[object, object]]") -> End:
        """A host, or one of its rails, with the links from and to the centre of its zone."""
        end = End(host, index, bool(host.properties), swap)
        halves: Any = self.platform.halves(host)
        if halves is not None:
            zone, up, down = halves
            end.up = [self.resource_of(swapped(link, swap, None)) for link in up]
            end.down = [self.resource_of(swapped(link, swap, None)) for link in down]
            end.zone = zone
            for link in (*up, *down):
                if link.index < 0:
                    end.zone = None  # each path has a link of its own here
        return end

    def _new_path(self, src: End, dst: End) -> Path:
        """The path of a pair of hosts, and with cross-traffic also that of the return route."""
        if len(self.paths) > PATHS:
            self.paths.clear()
        forth: list[Resource] = []
        back: list[Resource] = []
        if src is not dst and src.zone is not None and src.zone is dst.zone:
            forth = crossed(src.up, dst.down)
            if self.cross_traffic:
                back = crossed(dst.up, src.down)
        if len(forth) == 0:
            forth = self._route(src, dst)
            if self.cross_traffic:
                back = forth if src is dst else self._route(dst, src)
        if self.cross_traffic:
            self.paths[dst.index * self.width + src.index] = self._path(back, forth)
        path = self._path(forth, back)
        self.paths[src.index * self.width + dst.index] = path
        return path

    def _path(self, forth: "list[Resource]", back: "list[Resource]") -> Path:
        latency = 0.0
        bound = INFINITY
        resistance = 0.0
        for resource in forth:
            latency += resource.latency
            if resource.bandwidth < bound:
                bound = resource.bandwidth
            resistance += resource.resistance
        penalty = 1.0
        if latency > 0.0:
            if self.gamma > 0.0:
                window = self.gamma / (2.0 * latency)
                if window < bound:
                    bound = window
            penalty = latency + resistance
        self.count += 1
        constraints: list[Constraint] = []
        usual = self._index(forth, constraints, 0)
        shared = self.indexed
        usual = self._index(back, constraints, shared) and usual
        if not usual or shared != self.usual_forth or self.indexed != len(self.usual):
            self._set_usual(forth, back, len(constraints))
        return Path(latency, bound, penalty, constraints, self.usual_weights)

    def _index(
        self, route: "list[Resource]", constraints: "list[Constraint]", indexed: int
    ) -> bool:
        """Give the constraints of a route their indices; append those that are new.

        Return whether the indices are those of the usual pattern, from the link `indexed` on.
        """
        usual = self.usual
        same = True
        for resource in route:
            if resource.shared:
                if resource.path != self.count:
                    resource.path = self.count
                    resource.index = len(constraints)
                    constraints.append(resource.constraint)
                if indexed >= len(usual) or usual[indexed] != resource.index:
                    same = False
                indexed += 1
        self.indexed = indexed
        return same

    def _set_usual(self, forth: "list[Resource]", back: "list[Resource]", count: int) -> None:
        """The present path has another pattern than the usual: compute its weights."""
        weights = [0.0] * count
        indices: list[int] = []
        for resource in forth:
            if resource.shared:
                indices.append(resource.index)
                weights[resource.index] += 1.0
        self.usual_forth = len(indices)
        for resource in back:
            if resource.shared:
                indices.append(resource.index)
                weights[resource.index] += CROSS_TRAFFIC
        self.usual = indices
        self.usual_weights = self.weights.setdefault(tuple(weights), weights)

    def _route(self, src: End, dst: End) -> "list[Resource]":
        """The links from one host to another, as flows see them."""
        route: list[Resource] = []
        railed = src.swap is not None or dst.swap is not None
        for link in self.platform.way(src.host, dst.host):
            if railed:
                link = swapped(link, src.swap, dst.swap)
            resource = self.resources.get(link)
            if resource is None:
                resource = self._resource(link)
            route.append(resource)
        return route

    def resource_of(self, link: Any) -> Resource:
        """The link as flows see it."""
        resource = self.resources.get(link)
        return self._resource(link) if resource is None else resource

    def _resource(self, link: Any) -> Resource:
        bandwidth: float = link.bandwidth
        latency: float = link.latency
        shared = bool(link.sharing == "shared")
        constraint = Constraint(bandwidth, link.name)
        resource = Resource(bandwidth, latency, self.weight / bandwidth, shared, constraint)
        if link.index >= 0:
            self.resources[link] = resource
        return resource


def swapped(
    link: Any, one: "Optional[dict[object, object]]", other: "Optional[dict[object, object]]"
) -> Any:
    """The link that the rails at both ends have in the place of a link."""
    if one is not None:
        link = one.get(link, link)
    if other is not None:
        link = other.get(link, link)
    return link


def crossed(up: "list[Resource]", down: "list[Resource]") -> "list[Resource]":
    """The links of two halves of a route, each once; a search is quick, as they are few."""
    resources: list[Resource] = []
    for half in (up, down):
        for resource in half:
            for earlier in resources:
                if earlier is resource:
                    break
            else:
                resources.append(resource)
    return resources
