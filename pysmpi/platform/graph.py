"""Machines from graphs, and graphs of machines (networkx).

A graph of a machine has a vertex for each host and for each point where links join. networkx
computes its diameter, cuts, components or a layout as for any graph.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING

from pysmpi.errors import UsageError
from pysmpi.platform.construct import construct
from pysmpi.platform.definition import (
    FATPIPE,
    SHARED,
    SPLIT,
    Hop,
    HostDef,
    LinkDef,
    PlatformDef,
    RouteDef,
    RouterDef,
    ZoneDef,
)
from pysmpi.platform.model import Host, Link, Platform
from pysmpi.platform.numbers import read_count
from pysmpi.platform.units import parse_bandwidth, parse_speed, parse_time

if TYPE_CHECKING:
    import networkx as nx

# The graph of a machine follows from all its routes; for more hosts they are too many.
MOST_HOSTS = 1024


def from_graph(
    graph: nx.Graph,
    name: str = "graph",
    *,
    latency: str = "latency",
    bandwidth: str = "bandwidth",
    weight: str | Callable[[object, object, object], float] | None = None,
) -> Platform:
    """The machine of a networkx graph.

    A vertex is a host, or with `kind="switch"` a point that runs no rank; a host may have `speed`
    (flop/s) and `cores`. An edge is a link with the attributes that `bandwidth` (bytes/s, required)
    and `latency` (s, 0) name; both, and the speed, may be texts with units. An edge of an
    undirected graph has its bandwidth in each direction, unless its attribute `sharing` is "shared"
    or "fatpipe". The attributes `preset` and `config` of the graph are those of the machine.

    Messages take the route with the fewest edges, or with `weight` the route with the smallest sum
    over its edges: the name of an attribute (1 if an edge has none), or a function, as in networkx.
    Raises UsageError with the vertex or edge for invalid graphs.
    """
    _check_single(graph, name)
    zone = ZoneDef("_world_", "full" if weight is not None else "dijkstra", where=name)
    names: dict[Hashable, str] = {}
    for vertex, data in graph.nodes(data=True):
        names[vertex] = _name(vertex, names, name)
        zone.members.append(_point(names[vertex], data, f"{name}: vertex {vertex!r}"))
    if not any(isinstance(member, HostDef) for member in zone.members):
        raise UsageError(f"{name}: expected at least one vertex that is a host, got none")
    sharing = SHARED if graph.is_directed() else SPLIT
    cables: dict[tuple[Hashable, Hashable], Hop] = {}
    for one, other, data in graph.edges(data=True):
        where = f"{name}: edge {one!r} - {other!r}"
        if one == other:
            raise UsageError(f"{where}: expected an edge between two vertices, got a loop")
        if bandwidth not in data:
            raise UsageError(f"{where}: expected the attribute {bandwidth!r}, got none")
        shared = _sharing(data, sharing, where)
        link = LinkDef(
            f"{names[one]}--{names[other]}",
            _quantity(data[bandwidth], parse_bandwidth, where, bandwidth, zero=False),
            _quantity(data.get(latency, 0.0), parse_time, where, latency),
            shared,
            where=where,
        )
        zone.members.append(link)
        if graph.is_directed():
            cables[one, other] = Hop(link.name)
        elif shared != SPLIT:
            cables[one, other] = cables[other, one] = Hop(link.name)
        else:
            cables[one, other] = Hop(link.name, "up")
            cables[other, one] = Hop(link.name, "down")
    if weight is None:
        for (one, other), hop in cables.items():
            zone.routes.append(RouteDef(names[one], names[other], [hop], False, where=name))
    else:
        _add_lightest(graph, weight, names, cables, zone)
    config, preset = _configuration(graph, name)
    return construct(
        PlatformDef(name, zone, name, "made from a graph", config=config, preset=preset)
    )


def _configuration(graph: nx.Graph, name: str) -> tuple[dict[str, str], str]:
    """The options and the preset among the attributes of a graph."""
    preset = str(graph.graph.get("preset", "neutral"))
    config = graph.graph.get("config", {})
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except ValueError:
            config = None
    if not isinstance(config, Mapping) or not all(isinstance(one, str) for one in config):
        raise UsageError(f"{name}: config: expected options and their values, as JSON if a text")
    return {key: str(value) for key, value in config.items()}, preset


def _sharing(data: Mapping[str, object], usual: str, where: str) -> str:
    found = data.get("sharing", usual)
    if found not in (SHARED, FATPIPE, SPLIT):
        raise UsageError(
            f"{where}: sharing: expected {SHARED}, {FATPIPE} or {SPLIT}, got {found!r}"
        )
    return str(found)


def _check_single(graph: nx.Graph, name: str) -> None:
    """UsageError if a multigraph has two edges between two vertices."""
    if not graph.is_multigraph():
        return
    seen: set[Hashable] = set()
    for one, other in graph.edges():
        pair = (one, other) if graph.is_directed() else frozenset((one, other))
        if pair in seen:
            raise UsageError(
                f"{name}: expected one edge between two vertices, got several between {one!r} and "
                f"{other!r}"
            )
        seen.add(pair)


def _add_lightest(
    graph: nx.Graph,
    weight: object,
    names: Mapping[Hashable, str],
    cables: Mapping[tuple[Hashable, Hashable], Hop],
    zone: ZoneDef,
) -> None:
    """Routes between all hosts, along the shortest paths."""
    import networkx

    hosts = [v for v, data in graph.nodes(data=True) if data.get("kind", "host") == "host"]
    for source in hosts:
        ways = networkx.single_source_dijkstra_path(graph, source, weight=weight)
        for target in hosts:
            if target != source and target in ways:
                way = ways[target]
                hops = [cables[pair] for pair in zip(way, way[1:])]
                zone.routes.append(
                    RouteDef(names[source], names[target], hops, False, where=zone.where)
                )


def _name(vertex: Hashable, names: Mapping[Hashable, str], graph: str) -> str:
    text = str(vertex)
    if text in names.values():
        raise UsageError(f"{graph}: expected vertices with names of their own, got {text!r} twice")
    return text


def _point(name: str, data: Mapping[str, object], where: str) -> HostDef | RouterDef:
    kind = data.get("kind", "host")
    if kind == "switch":
        return RouterDef(name, where)
    if kind != "host":
        raise UsageError(f'{where}: kind: expected "host" or "switch", got {kind!r}')
    speeds: tuple[float, ...] = ()
    if data.get("speed") is not None:
        speeds = (_quantity(data["speed"], parse_speed, where, "speed", zero=False),)
    try:
        cores = read_count(str(data.get("cores", 1)))
    except UsageError as error:
        raise UsageError(f"{where}: cores: {error}") from None
    return HostDef(name, speeds, cores, where=where)


def _quantity(
    value: object, parse: Callable[..., float], where: str, key: str, zero: bool = True
) -> float:
    try:
        found = parse(str(value), bare=True)
    except UsageError as error:
        raise UsageError(f"{where}: {key}: {error}") from None
    if found == 0.0 and not zero:
        raise UsageError(f"{where}: {key}: expected more than 0, got {value!r}")
    return found


def to_graph(platform: Platform) -> nx.MultiGraph:
    """The graph of a machine, from its routes.

    A vertex is a host (`kind="host"`, `speed` in flop/s or None, `cores`) by its name, or a point
    at which links join (`kind="switch"`). An edge is a link, with `bandwidth` (bytes/s), `latency`
    (s), `sharing` and `name`; the two directions of a split-duplex link are one edge. The graph has
    the `preset` and the `config` of the machine, so that `from_graph` makes the machine again, but
    for the inside of nodes. Loopback links are left out. Raises UsageError for more than 1,024
    hosts.
    """
    import networkx

    hosts = platform.hosts
    if len(hosts) > MOST_HOSTS:
        raise UsageError(
            f"{platform.source}: expected at most {MOST_HOSTS:,} hosts for a graph, got "
            f"{len(hosts):,}"
        )
    ends = _Ends()
    for source in hosts:
        for target in hosts:
            if source is not target:
                try:
                    links = platform.way(source, target)
                except UsageError:
                    continue  # hosts need not reach each other
                # A link that is only a distance joins no points.
                ends.follow(source, tuple(link for link in links if link.index >= 0), target)
    graph = networkx.MultiGraph(name=platform.name, config=json.dumps(dict(platform.config)))
    graph.graph["preset"] = platform.preset
    for host in hosts:
        graph.add_node(host.name, kind="host", speed=host.speed, cores=host.cores)
    known: dict[Hashable, str] = {ends.find(host): host.name for host in hosts}
    for link in ends.links:
        pair = []
        for end in ((link, 0), (link, 1)):
            found = ends.find(end)
            if found not in known:
                known[found] = f"switch-{len(known) - len(hosts)}"
                graph.add_node(known[found], kind="switch")
            pair.append(known[found])
        name = link.name.removesuffix("_UP") if link.opposite is not None else link.name
        graph.add_edge(
            *pair,
            key=name,
            name=name,
            bandwidth=link.bandwidth,
            latency=link.latency,
            sharing=SPLIT if link.opposite is not None else link.sharing,
        )
    return graph


class _Ends:
    """The ends of links that join: a union of sets, of hosts and pairs (link, 0 or 1)."""

    def __init__(self) -> None:
        self._parents: dict[Hashable, Hashable] = {}
        self.links: dict[Link, None] = {}  # in the order in which they were seen

    def find(self, end: Hashable) -> Hashable:
        """The representative of the ends that join there."""
        parents = self._parents
        root = end
        while root in parents:
            root = parents[root]
        while end != root:
            parents[end], end = root, parents[end]
        return root

    def _join(self, one: Hashable, other: Hashable) -> None:
        one, other = self.find(one), self.find(other)
        if one != other:
            # A host represents all ends that join there.
            if isinstance(one, Host):
                one, other = other, one
            self._parents[one] = other

    def follow(self, source: Host, links: tuple[Link, ...], target: Host) -> None:
        """Record the ends that a route joins."""
        here: Hashable = source
        for i, link in enumerate(links):
            cable, near, far = link, 0, 1
            if link.opposite is not None and link.name.endswith("_DOWN"):
                cable, near, far = link.opposite, 1, 0
            elif link.opposite is None and link in self.links:
                # A link without directions is crossed from its known end.
                last = i == len(links) - 1
                if self.find((link, 1)) == self.find(here) or (
                    last and self.find((link, 0)) == target
                ):
                    near, far = 1, 0
            self.links[cable] = None
            self._join((cable, near), here)
            here = cable, far
        self._join(here, target)
