"""Graphs of machines (networkx): the points at which links join, from the routes of the hosts.

networkx computes the diameter, cuts, components or a layout of such a graph as of any other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from pysmpi.errors import UsageError
from pysmpi.platform.definition import SPLIT
from pysmpi.platform.graph import JOINT, KEYS, RAIL_LINKS, ROUTES, UP_FROM, from_graph
from pysmpi.platform.model import Host, Link, Platform
from pysmpi.platform.rails import rails_keys

if TYPE_CHECKING:
    import networkx as nx

# The routes between all hosts are followed on machines of at most this many hosts.
FEW = 256
# On larger ones, the routes between all groups of hosts with a common switch are followed, if there
# are at most this many groups, and random routes of all hosts until so many rounds join nothing.
MOST_GROUPS = 2048
QUIET = 4


def to_graph(
    platform: Platform, hosts: Sequence[Host] | None = None, routes: bool = True
) -> nx.MultiGraph:
    """The graph of a machine, from its routes; `from_graph` makes the machine again.

    With some `hosts`, it is the part of the machine that messages between them cross. The attribute
    `routes` of the graph has the routes of a machine of at most 256 hosts that `from_graph` would
    not choose by itself, unless the argument `routes` is false.

    A vertex is a host (`kind="host"`, `speed` in flop/s if it has one, `cores`, `sockets`, `node`)
    by its name, or a point at which links join (`kind="switch"`). A link that joins a point with
    itself, such as the backbone of a cluster, is a switch with `bandwidth`, `latency` and
    `sharing`. An edge is a link, with `bandwidth` (bytes/s), `latency` (s), `sharing` and `name`;
    the two directions of a split-duplex link are one edge. The graph has
    the configuration, the descriptions of nodes and the profiles of the machine, and hosts their
    `properties` and the links of messages to themselves (`loopback`, or `own_link`), and the rule
    of their `rails`. The links of rails after the first are edges beside those in whose place
    they are, with the attributes `rail`, their number, and `rail_of`, the name of that link.

    On more than 256 hosts the points are derived from the routes between all switches of hosts,
    if there are at most 2,048, and from random routes of all hosts until several rounds have
    changed nothing. Disks and further pstates are left out.
    """
    import networkx

    chosen = platform.hosts if hosts is None else hosts
    graph = networkx.MultiGraph(**_attributes(platform))
    for host in chosen:
        graph.add_node(host.name, **_host_attributes(platform, host))
    joined = _joined(graph, chosen, lambda buses: _followed(platform, chosen, buses))
    _add_rails(joined, chosen)
    if routes and len(chosen) <= FEW:
        others = _other_routes(platform, chosen, joined)
        if others:
            joined.graph[ROUTES] = _json(others)
    return joined


def _other_routes(
    platform: Platform, hosts: Sequence[Host], graph: nx.MultiGraph
) -> dict[str, dict[str, list[str]]]:
    """The links of routes that differ from those of the machine of a graph, by its two hosts."""
    again = from_graph(graph)
    result: dict[str, dict[str, list[str]]] = {}
    for source in hosts:
        for target in hosts:
            try:
                links = [link.name for link in platform.way(source, target) if link.index >= 0]
            except UsageError:
                continue
            try:
                found = again.way(again.host(source.name), again.host(target.name))
            except UsageError:
                found = ()
            if [link.name for link in found] != links:
                result.setdefault(source.name, {})[target.name] = links
    return result


def _add_rails(graph: nx.MultiGraph, hosts: Sequence[Host]) -> None:
    """Add the links that rails have in the place of those in routes, beside these."""
    swaps = {
        id(swap): (rail, swap)
        for host in hosts
        if host.rails is not None
        for rail, swap in enumerate(host.rails.swaps)
    }
    others: dict[str, list[dict[str, object]]] = {}
    for rail, swap in swaps.values():
        for link, other in swap.items():
            if link.opposite is not None and link.name.endswith("_DOWN"):
                continue
            name = str(_link_attributes(link)["name"])
            attributes = _link_attributes(other) | {"rail": rail, "rail_of": name}
            others.setdefault(name, []).append(attributes)
    names = {str(data.get("name")) for *_, data in graph.edges(data=True)}
    railed = names & set(others)
    links: dict[int, set[str]] = {}  # in the graph, by the rails of a host or of a cluster
    for host in hosts:
        rails = host.rails
        if rails is None:
            continue
        if id(rails) not in links:
            links[id(rails)] = names & {
                str(_link_attributes(link)["name"]) for swap in rails.swaps for link in swap
            }
        own, vertex = links[id(rails)], graph.nodes[host.name]
        usual = railed
        if not rails.definition.separate:
            edges = graph.edges(host.name, data=True)
            usual = {str(data.get("name")) for *_, data in edges if data.get("name") in railed}
        if not own:
            # Without routes over its links, as of a host alone, rails have no meaning.
            del vertex["rails"]
        elif own != usual:
            vertex[RAIL_LINKS] = _json(sorted(own))
    if others:
        for one, end, data in list(graph.edges(data=True)):
            tail = {UP_FROM: data[UP_FROM]} if UP_FROM in data else {}
            for attributes in others.get(data.get("name", ""), ()):
                graph.add_edge(one, end, key=attributes["name"], **attributes, **tail)


# A route: its first host, its links (names and bytes/s), its last host.
NamedRoute = tuple[str, Sequence[tuple[str, float]], str]


def graph_of_routes(names: Iterable[str], routes: Sequence[NamedRoute]) -> nx.MultiGraph:
    """The graph of some hosts and of the links that routes between them cross, as of `to_graph`.

    Two links NAME_UP and NAME_DOWN are the directions of a split-duplex link.
    """
    import networkx

    hosts = {name: Host(name, i, ()) for i, name in enumerate(names)}
    links: dict[str, Link] = {}
    for _, crossed, _ in routes:
        for name, bandwidth in crossed:
            links.setdefault(name, Link(name, len(links), bandwidth))
    for name, link in list(links.items()):
        if name.endswith("_DOWN"):
            up = name.removesuffix("_DOWN") + "_UP"
            link.opposite = links.setdefault(up, Link(up, len(links), link.bandwidth))
            link.opposite.opposite = link

    def follow(buses: frozenset[Link]) -> _Ends:
        ends = _Ends(buses)
        for source, crossed, target in routes:
            ends.follow(hosts[source], tuple(links[name] for name, _ in crossed), hosts[target])
        return ends

    graph = networkx.MultiGraph()
    graph.add_nodes_from(hosts, kind="host")
    return _joined(graph, list(hosts.values()), follow)


def _joined(
    graph: nx.MultiGraph, hosts: Sequence[Host], follow: Callable[[frozenset[Link]], _Ends]
) -> nx.MultiGraph:
    """A graph of hosts, completed by the points and links of the routes that `follow` follows."""
    ends = follow(frozenset())
    buses = frozenset(link for link in ends.links if ends.find((link, 0)) == ends.find((link, 1)))
    if buses:
        ends = follow(buses)
    names: dict[Hashable, str] = {ends.find(host): host.name for host in hosts}
    taken = {host.name for host in hosts}
    for link in ends.links:
        if link in buses:
            name = _free(link.name, taken)
            names[ends.find((link, 0))] = name
            graph.add_node(name, kind="switch", **_link_attributes(link))
    number = 0
    places = {vertex: place for place, vertex in enumerate(graph)}
    for link in ends.links:
        if link in buses:
            continue
        pair = []
        for end in ((link, 0), (link, 1)):
            root = ends.find(end)
            if root not in names:
                names[root] = _free(f"switch-{number}", taken)
                number += 1
                graph.add_node(names[root], kind="switch")
                places[names[root]] = len(places)
            pair.append(names[root])
        attributes = _link_attributes(link)
        # An undirected graph lists the ends of an edge in the order of its vertices.
        if link.opposite is not None and places[pair[0]] > places[pair[1]]:
            attributes[UP_FROM] = pair[0]
        graph.add_edge(*pair, key=attributes["name"], **attributes)
    for one, other in ends.joints:
        graph.add_edge(names[ends.find(one)], names[ends.find(other)], key=JOINT, kind=JOINT)
    return graph


def _free(name: str, taken: set[str]) -> str:
    """A name that no vertex has yet, which is taken then."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name


def _followed(platform: Platform, hosts: Sequence[Host], buses: frozenset[Link]) -> _Ends:
    """The ends of links that the routes of the hosts join; those of a bus are one point."""
    ends = _Ends(buses)

    def follow(pairs: Iterable[tuple[Host, Host]]) -> bool:
        """Follow the routes between some hosts; whether they have joined anything."""
        before = ends.changes
        for source, target in pairs:
            try:
                links = platform.way(source, target)
            except UsageError:
                continue  # hosts need not reach each other
            # A link that is only a distance joins no points.
            ends.follow(source, tuple(link for link in links if link.index >= 0), target)
        return ends.changes != before

    for host in hosts:
        links = platform.way(host, host)
        if len(links) == 2 and links[0].opposite is links[1]:
            ends.follow(host, links[:1])
        elif len(links) == 2 and all(link.opposite is not None for link in links):
            ends.follow(host, links, host)
    if len(hosts) <= FEW:
        pairs = [(one, other) for one in hosts for other in hosts if one is not other]
        # Short routes tell which ends links without directions have.
        lengths = {pair: _length(platform, *pair) for pair in pairs}
        follow(sorted(pairs, key=lengths.__getitem__))
        return ends
    apart = 1
    while apart < len(hosts):
        follow(zip(hosts, [*hosts[apart:], *hosts[:apart]]))
        apart *= 2
    groups = _neighbours(platform, hosts, ends)
    if len(groups) <= MOST_GROUPS:
        follow(
            (one[b % len(one)], other[a % len(other)])
            for a, one in enumerate(groups)
            for b, other in enumerate(groups)
            if a != b
        )
    generator = random.Random(len(hosts))
    quiet = 0
    while quiet < QUIET:
        others = list(hosts)
        generator.shuffle(others)
        changed = follow((one, other) for one, other in zip(hosts, others) if one is not other)
        quiet = 0 if changed else quiet + 1
    return ends


def _length(platform: Platform, source: Host, target: Host) -> int:
    try:
        return len(platform.way(source, target))
    except UsageError:
        return 0


def _neighbours(platform: Platform, hosts: Sequence[Host], ends: _Ends) -> list[list[Host]]:
    """The hosts by the point at which their first link ends."""
    found: dict[Hashable, list[Host]] = {}
    for host, other in zip(hosts, [*hosts[1:], *hosts[:1]]):
        try:
            link = platform.way(host, other)[0]
        except UsageError:
            continue
        cable, far = (link, 1)
        if link.opposite is not None and link.name.endswith("_DOWN"):
            cable, far = link.opposite, 0
        found.setdefault(ends.find((cable, far)), []).append(host)
    return list(found.values())


def _json(value: object) -> str:
    """An attribute of a graph that has a structure, as text."""
    import json

    return json.dumps(value)


def _attributes(platform: Platform) -> dict[str, object]:
    """The attributes of a graph: keys of a platform file."""
    from pysmpi.platform.dump import file_keys

    keys = file_keys(platform.definition)
    return {"machine": platform.name, "preset": platform.preset} | {
        key: keys[key] if key == "description" else _json(keys[key]) for key in KEYS if key in keys
    }


def _host_attributes(platform: Platform, host: Host) -> dict[str, object]:
    found: dict[str, object] = {"kind": "host", "cores": host.cores}
    if host.speed is not None:
        found["speed"] = host.speed
    if host.sockets != 1:
        found["sockets"] = host.sockets
    if host.node is not None:
        found["node"] = host.node.name
    if host.properties:
        found["properties"] = _json(dict(host.properties))
    if host.rails is not None:
        rule = rails_keys(host.rails.definition) | {"count": host.rails.definition.count}
        found["rails"] = _json({key: rule[key] for key in rule if key not in ("others", "links")})
    links = platform.way(host, host)
    if any(link.opposite is not None for link in links):
        found["own_link"] = links[0].name.removesuffix("_UP")
    elif links != (platform.loopback,):
        found["loopback"] = _json([_link_attributes(link) for link in links])
    return found


def _link_attributes(link: Link) -> dict[str, object]:
    split = link.opposite is not None
    found: dict[str, object] = {
        "name": link.name.removesuffix("_UP") if split else link.name,
        "bandwidth": link.bandwidth,
        "latency": link.latency,
        "sharing": SPLIT if split else link.sharing,
    }
    if link.properties:
        found["properties"] = _json(dict(link.properties))
    return found


class _Ends:
    """The ends of links that join: a union of sets, of hosts and pairs (link, 0 or 1).

    The two ends of a bus are one, and the ends of two buses, or of a bus and a host, are never one:
    such pairs are `joints`.
    """

    def __init__(self, buses: frozenset[Link]) -> None:
        self._parents: dict[Hashable, Hashable] = {}
        self._buses = buses
        self.links: dict[Link, None] = {}  # in the order in which they were seen
        self.joints: dict[tuple[Hashable, Hashable], None] = {}
        self.changes = 0

    def find(self, end: Hashable) -> Hashable:
        """The representative of the ends that join there."""
        if isinstance(end, tuple) and end[0] in self._buses:
            bus: Link = end[0]
            return bus
        parents = self._parents
        root = end
        while root in parents:
            root = parents[root]
        while end != root:
            parents[end], end = root, parents[end]
        return root

    def _join(self, one: Hashable, other: Hashable) -> None:
        one, other = self.find(one), self.find(other)
        if one == other:
            return
        # A host or a bus represents all ends that join there.
        if isinstance(one, Host | Link):
            one, other = other, one
        if isinstance(one, Host | Link):
            if (one, other) not in self.joints and (other, one) not in self.joints:
                self.joints[one, other] = None
                self.changes += 1
            return
        self._parents[one] = other
        self.changes += 1

    def _crossed_back(self, link: Link, here: Hashable, then: Link | Host | None) -> bool:
        """Whether a link without directions leads from its second end to its first."""
        first, second = self.find((link, 0)), self.find((link, 1))
        if second == self.find(here):
            return True
        if first == self.find(here) or then is None:
            return False
        if isinstance(then, Host):
            return first == then
        if then.opposite is not None and then.name.endswith("_DOWN"):
            return first == self.find((then.opposite, 1))
        ends = {self.find((then, 0))}
        if then.opposite is None:
            ends.add(self.find((then, 1)))
        return first in ends and second not in ends

    def follow(self, source: Host, links: tuple[Link, ...], target: Host | None = None) -> None:
        """Record the ends that a route joins, or the first links of a route."""
        if not links:
            return
        here: Hashable = source
        for i, link in enumerate(links):
            cable, near, far = link, 0, 1
            if link.opposite is not None and link.name.endswith("_DOWN"):
                cable, near, far = link.opposite, 1, 0
            elif link.opposite is None and link in self.links:
                # A link without directions is crossed from its known end.
                after = links[i + 1] if i + 1 < len(links) else None
                if self._crossed_back(link, here, target if after is None else after):
                    near, far = 1, 0
            if cable not in self.links:
                self.links[cable] = None
                self.changes += 1
            self._join((cable, near), here)
            here = cable, far
        if target is not None:
            self._join(here, target)
