"""Machines from graphs (networkx), and the attributes that the graph of a machine has."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
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
    RailsDef,
    RouteDef,
    RouterDef,
    ZoneDef,
)
from pysmpi.platform.model import Platform
from pysmpi.platform.node_description import NodeDescription
from pysmpi.platform.numbers import read_count
from pysmpi.platform.rails import read_rails
from pysmpi.platform.units import parse_bandwidth, parse_speed, parse_time
from pysmpi.text import did_you_mean, whole

if TYPE_CHECKING:
    import networkx as nx

# The kind of an edge between two switches with a bandwidth of their own, without a link.
JOINT = "joint"
# The attribute of an edge: the end from which its link goes up, if it is not the first one.
UP_FROM = "up_from"
# The attribute of a host with rails: its links in routes, if they are not all at its vertex.
RAIL_LINKS = "rail_links"
# The attribute of a graph: links by the hosts at the two ends of a route.
ROUTES = "routes"
# Attributes of a graph that are keys of a platform file, as JSON.
KEYS = ("description", "sources", "config", "models", "nodes", "profiles")


def from_graph(
    graph: nx.Graph,
    name: str = "graph",
    *,
    latency: str = "latency",
    bandwidth: str = "bandwidth",
    weight: str | Callable[[object, object, object], float] | None = None,
) -> Platform:
    """The machine of a networkx graph.

    A vertex is a host, or with `kind="switch"` a point that runs no rank. A host may have `speed`
    (flop/s), `cores` and `sockets`, or the name of a `node` of the graph; `loopback` are the
    attributes of the link, or links, of its messages to itself, and with `own_link` these cross its
    only link, or the one of this name, up and down. A switch with a
    `bandwidth` (and `latency`, `sharing`) is a bus or a backplane: each message through the switch
    crosses it.

    An edge is a link with the attributes that `bandwidth` (bytes/s, required) and `latency` (s, 0)
    name, and optionally a `name`; quantities may be texts with units. An edge of an undirected
    graph has its bandwidth in each direction, unless its attribute `sharing` is "shared" or
    "fatpipe". An edge with `kind="joint"` is no link: it joins two switches that have a
    bandwidth. A host with several network cards has `rails`, the keys of a cluster's rails; an edge
    with the number of a `rail` from 1 on, and the name `rail_of` another edge of the host, is the
    link of this rail in the place of the other.

    The attributes `preset`, `description`, `sources`, `config`, `models`, `nodes` and `profiles` of
    the graph are those of the machine, as in a platform file; the last five may be JSON texts.
    `routes` of the graph are routes that messages take in place of the shortest: an object, or
    JSON, of source hosts, target hosts and lists of links, with _UP or _DOWN after the name of a
    link that has directions. A route whose hosts or links are not in the graph is left out.

    Messages take the route with the fewest links, and messages to different hosts different ones
    of equal routes. With `weight` they take the route with the smallest sum over its edges: the
    name of an attribute (1 if an edge has none), or a function, as in networkx. Raises UsageError
    with the vertex or edge for invalid graphs.
    """
    return construct(define(graph, name, latency=latency, bandwidth=bandwidth, weight=weight))


def define(
    graph: nx.Graph,
    name: str,
    *,
    latency: str = "latency",
    bandwidth: str = "bandwidth",
    weight: str | Callable[[object, object, object], float] | None = None,
) -> PlatformDef:
    """The definition of the machine of a graph; see `from_graph`."""
    definition = _described(graph, name)
    zone = ZoneDef("_world_", "full" if weight is not None else "spread", where=name)
    if weight is not None:
        _check_single(graph, name)
    names: dict[Hashable, str] = {}
    buses: dict[Hashable, list[Hop]] = {}
    taken: set[str] = set()

    def link_of(data: Mapping[str, object], usual: str, sharing: str, where: str) -> LinkDef:
        if data.get(bandwidth) is None:
            raise UsageError(f"{where}: expected the attribute {bandwidth!r}, got none")
        called = str(data.get("name") or usual)
        if called in taken:
            called = usual if usual not in taken else f"{usual}#{len(taken)}"
        taken.add(called)
        link = LinkDef(
            called,
            _quantity(data[bandwidth], parse_bandwidth, where, bandwidth, zero=False),
            _quantity(data.get(latency, 0.0), parse_time, where, latency),
            _sharing(data, sharing, where),
            _json(data.get("properties", {}), f"{where}: properties"),
            where=where,
        )
        zone.members.append(link)
        return link

    used: set[str] = set()
    for vertex, data in graph.nodes(data=True):
        where = f"{name}: vertex {vertex!r}"
        text = names[vertex] = str(vertex)
        if text in used:
            raise UsageError(
                f"{name}: expected vertices with names of their own, got {text!r} twice"
            )
        used.add(text)
        point = _point(text, data, where, definition.nodes)
        zone.members.append(point)
        buses[vertex] = []
        if isinstance(point, RouterDef) and data.get(bandwidth) is not None:
            bus = link_of(data, f"{text}-bus", SHARED, where)
            buses[vertex] = [Hop(bus.name, "up" if bus.sharing == SPLIT else "")]
    hosts = {member.name for member in zone.members if isinstance(member, HostDef)}
    if not hosts:
        raise UsageError(f"{name}: expected at least one vertex that is a host, got none")
    cables: dict[tuple[Hashable, Hashable], list[list[Hop]]] = {}
    rails = _GraphRails()
    for one, other, data in graph.edges(data=True):
        where = f"{name}: edge {one!r} - {other!r}"
        there, back = cables.setdefault((one, other), []), cables.setdefault((other, one), [])
        if data.get("kind") == JOINT:
            if one == other or not (buses[one] or buses[other]):
                raise UsageError(
                    f"{where}: kind: expected as ends of a joint two switches with the attribute "
                    f"{bandwidth!r}, or such a switch and a host"
                )
            there += [list(buses[other])] if buses[other] else []
            back += [list(buses[one])] if buses[one] else []
            continue
        if one == other:
            raise UsageError(f"{where}: expected an edge between two vertices, got a loop")
        usual = f"{names[one]}--{names[other]}"
        link = link_of(data, usual, SHARED if graph.is_directed() else SPLIT, where)
        if rails.add(data, link.name, (one, other), where):
            continue
        up, down = ("up", "down") if link.sharing == SPLIT else ("", "")
        if data.get(UP_FROM) == names[other]:
            up, down = down, up
        there.append([Hop(link.name, up), *buses[other]])
        if not graph.is_directed():
            back.append([Hop(link.name, down), *buses[one]])
    points = {member.name: member for member in zone.members if isinstance(member, HostDef)}
    for vertex, data in graph.nodes(data=True):
        where, text = f"{name}: vertex {vertex!r}", names[vertex]
        if data.get("rails") is not None:
            links = _parsed(data.get(RAIL_LINKS))
            points[text].rails = rails.of(vertex, data["rails"], links, f"{where}: rails")
        if data.get("own_link"):
            zone.routes.append(_own_link(vertex, text, data["own_link"], cables, where))
        elif data.get("loopback") is not None:
            hops = [
                Hop(link_of(one, f"{text}-loopback", FATPIPE, f"{where}: loopback").name)
                for one in _loopbacks(data["loopback"], f"{where}: loopback")
            ]
            zone.routes.append(RouteDef(text, text, hops, False, where=where))
    if weight is None:
        for (one, other), several in cables.items():
            for hops in several:
                zone.routes.append(RouteDef(names[one], names[other], hops, False, where=name))
    else:
        _add_lightest(graph, weight, names, cables, zone)
    _add_routes(graph.graph.get(ROUTES), name, zone)
    definition.root = zone
    return definition


class _GraphRails:
    """The links of a graph that are in the place of others for the rails of hosts."""

    def __init__(self) -> None:
        self._names: dict[object, str] = {}  # of links in routes, by their names in the graph
        self._at: dict[Hashable, list[object]] = {}  # the links at a vertex
        self._others: dict[object, dict[int, str]] = {}  # by the link in routes, by rail

    def add(
        self, data: Mapping[str, object], link: str, ends: Sequence[Hashable], where: str
    ) -> bool:
        """Take in an edge; whether it is the link of a rail after the first."""
        first = data.get("rail_of")
        if first is None:
            name = data.get("name") or link
            self._names[name] = link
            for end in ends:
                self._at.setdefault(end, []).append(name)
            return False
        rail = whole(str(data.get("rail")))
        if not rail:
            raise UsageError(
                f"{where}: rail: expected the number of a rail after the first, from 1 on, got "
                f"{data.get('rail')!r}"
            )
        self._others.setdefault(first, {})[rail] = link
        return True

    def of(self, vertex: Hashable, value: object, links: object, where: str) -> RailsDef:
        """The rails of a host, of its edges or of the links that are named."""
        from pysmpi.platform.nodes import from_data

        rails = read_rails(from_data(_parsed(value), where), of_cluster=True)
        names: Iterable[object] = self._names if rails.separate else self._at.get(vertex, [])
        if isinstance(links, list):
            names = [name for name in links if name in self._names]
        for name in names:
            others = self._others.get(name, {})
            if not others:
                continue
            if sorted(others) != list(range(1, rails.count)):
                raise UsageError(
                    f"{where}: expected an edge with rail_of {name!r} for each rail from 1 to "
                    f"{rails.count - 1}, got {', '.join(map(str, sorted(others)))}"
                )
            rails.links.append([self._names[name], *(others[i] for i in range(1, rails.count))])
        if not rails.links:
            raise UsageError(f"{where}: expected edges of its rails, with rail_of, got none")
        rails.others = []
        rails.where = where
        return rails


def _described(graph: nx.Graph, name: str) -> PlatformDef:
    """The definition that the attributes of a graph give, without a machine yet."""
    from pysmpi.platform.yaml import read_data

    data: dict[str, object] = {"name": str(graph.graph.get("machine") or name)}
    for key in KEYS:
        value = graph.graph.get(key)
        if value is None:
            continue
        data[key] = str(value) if key == "description" else _parsed(value)
        if key == "config":
            config = _json(value, f"{name}: config", "options and their values")
            data[key] = {option: str(one) for option, one in config.items()}
    data["preset"] = str(graph.graph.get("preset", "neutral"))
    definition = read_data(data, name)
    definition.description = definition.description or "made from a graph"
    return definition


def _parsed(value: object) -> object:
    """The data of a JSON text; other values, and other texts, as they are."""
    if isinstance(value, str):
        import json

        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _json(value: object, where: str, expected: str = "names and values") -> dict[str, str]:
    data = _parsed(value)
    if not isinstance(data, Mapping) or not all(isinstance(one, str) for one in data):
        raise UsageError(f"{where}: expected {expected}, as JSON if a text")
    return {key: str(one) for key, one in data.items()}


def _own_link(
    vertex: Hashable,
    name: str,
    link: object,
    cables: Mapping[tuple[Hashable, Hashable], list[list[Hop]]],
    where: str,
) -> RouteDef:
    """The route of a host to itself over its only link, or the one of a name, up and down."""
    up = [hops[0] for (one, _), several in cables.items() if one == vertex for hops in several]
    down = [hops[0] for (_, one), several in cables.items() if one == vertex for hops in several]
    if isinstance(link, str) and len(up) > 1:
        up, down = ([hop for hop in hops if hop.link == link] for hops in (up, down))
    if len(up) != 1 or len(down) != 1:
        raise UsageError(f"{where}: own_link: expected a host with one link, or the name of one")
    hops = up if up == down else [*up, *down]
    return RouteDef(name, name, hops, False, where=where)


def _add_routes(value: object, name: str, zone: ZoneDef) -> None:
    """Add the routes that a graph has in place of the shortest."""
    if value is None:
        return
    where = f"{name}: {ROUTES}"
    hops: dict[str, Hop] = {}
    hosts = set()
    for member in zone.members:
        if isinstance(member, HostDef):
            hosts.add(member.name)
        elif isinstance(member, LinkDef) and member.sharing == SPLIT:
            hops[f"{member.name}_UP"] = Hop(member.name, "up")
            hops[f"{member.name}_DOWN"] = Hop(member.name, "down")
        elif isinstance(member, LinkDef):
            hops[member.name] = Hop(member.name)
    routes = _parsed(value)
    if not isinstance(routes, Mapping):
        raise UsageError(f"{where}: expected hosts, hosts and lists of links, as JSON if a text")
    for source, targets in routes.items():
        if not isinstance(targets, Mapping):
            raise UsageError(
                f"{where}: {source}: expected hosts and lists of links, got {targets!r}"
            )
        for target, links in targets.items():
            if not isinstance(links, list):
                raise UsageError(f"{where}: {source}: {target}: expected a list, got {links!r}")
            if {source, target} <= hosts and all(link in hops for link in links):
                way = [hops[link] for link in links]
                zone.routes.append(RouteDef(source, target, way, False, bypass=True, where=where))


def _loopbacks(value: object, where: str) -> list[Mapping[str, object]]:
    """The attributes of the links of a host's messages to itself."""
    data = _parsed(value)
    links = [
        one for one in (data if isinstance(data, list) else [data]) if isinstance(one, Mapping)
    ]
    if not links or (isinstance(data, list) and len(links) < len(data)):
        raise UsageError(f"{where}: expected the attributes of a link or a list of links")
    if any(one.get("sharing") == SPLIT for one in links):
        raise UsageError(f"{where}: sharing: expected shared or fatpipe, got {SPLIT}")
    return links


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
    cables: Mapping[tuple[Hashable, Hashable], list[list[Hop]]],
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
                hops = [hop for pair in zip(way, way[1:]) for hop in cables[pair][0]]
                zone.routes.append(
                    RouteDef(names[source], names[target], hops, False, where=zone.where)
                )


def _point(
    name: str, data: Mapping[str, object], where: str, nodes: Mapping[str, NodeDescription]
) -> HostDef | RouterDef:
    kind = data.get("kind", "host")
    if kind == "switch":
        return RouterDef(name, where)
    if kind != "host":
        raise UsageError(f'{where}: kind: expected "host" or "switch", got {kind!r}')
    speeds: tuple[float, ...] = ()
    if data.get("speed") is not None:
        speeds = (_quantity(data["speed"], parse_speed, where, "speed", zero=False),)
    properties = _json(data.get("properties", {}), f"{where}: properties")
    if data.get("node") is not None:
        inside = nodes.get(str(data["node"]))
        if inside is None:
            raise UsageError(
                f"{where}: node: expected one of the nodes of the graph, got {data['node']!r}"
                + did_you_mean(str(data["node"]), list(nodes), '"{}"')
            )
        return HostDef(name, speeds, inside.cores, inside.sockets, 0, properties, where, inside)
    counts = {}
    for key in ("cores", "sockets"):
        try:
            counts[key] = read_count(str(data.get(key, 1)))
        except UsageError as error:
            raise UsageError(f"{where}: {key}: {error}") from None
    if counts["cores"] % counts["sockets"]:
        raise UsageError(
            f"{where}: sockets: expected a divisor of {counts['cores']} cores, got "
            f"{counts['sockets']}"
        )
    return HostDef(name, speeds, counts["cores"], counts["sockets"], 0, properties, where)


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
