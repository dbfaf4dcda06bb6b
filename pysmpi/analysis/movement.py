"""The picture of the machine of a run, on which messages move, and the rounds of collectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import cos, pi, sin
from typing import TYPE_CHECKING, Final, NamedTuple

from pysmpi.analysis.graph import NONE, EventGraph
from pysmpi.errors import UsageError
from pysmpi.platform.drawing import MOST_HOSTS, WIDTH, Position, arrange, levels
from pysmpi.platform.graph import JOINT
from pysmpi.platform.topology import FEW, graph_of_routes, to_graph
from pysmpi.trace import events
from pysmpi.trace.activity import RunActivity
from pysmpi.trace.recorded_machine import recorded_machine

if TYPE_CHECKING:
    import networkx as nx

RADIUS: Final = 400.0  # of hosts without links between them, which stand in a circle


class DrawnLink(NamedTuple):
    """A line between two vertices, or a point on one, and the numbers of the links that it shows.

    A split-duplex link has two numbers. A line without a link joins two switches.
    """

    one: int
    other: int
    links: tuple[int, ...]


class DrawnRoute(NamedTuple):
    """The vertices that a message passes, from host to host, and the links that it crosses."""

    vertices: tuple[int, ...]
    links: tuple[int, ...]


@dataclass
class MachinePicture:
    """The part of a machine that the ranks of a run use, as a drawing.

    The first `hosts` of the vertices are hosts. Positions are parts of the width of the drawing,
    `height` too; y grows downwards. In a tree, the hosts stand in the lowest row. `host_of` has the
    vertex of each rank, `routes` the routes of messages between hosts, and `route_of` their numbers
    by sender, receiver and route of the recording.
    """

    names: list[str]
    hosts: int
    positions: list[Position]
    height: float
    tree: bool
    edges: list[DrawnLink]
    host_of: list[int]
    routes: list[DrawnRoute] = field(default_factory=list)
    route_of: dict[tuple[int, int, int], int] = field(default_factory=dict)


def picture_of(record: RunActivity) -> MachinePicture | None:
    """The picture of the machine of a run; None if the run uses more than 1,024 hosts.

    The machine is that of the recording. If it cannot be read, the drawing has the links that
    messages have crossed.
    """
    hosts = list(dict.fromkeys(record.hosts))
    if not 0 < len(hosts) <= MOST_HOSTS:
        return None
    used: dict[tuple[str, str, int], None] = {}
    for source, destination, _, _, route in record.messages[:, 1:6].tolist():
        one, other = record.hosts[source], record.hosts[destination]
        if one != other:
            used[one, other, route] = None
    graph = _machine(record, hosts)
    if graph is None:
        named = [
            (one, [record.links[n] for n in record.routes[r]], other) for one, other, r in used
        ]
        graph = graph_of_routes(hosts, named)
    vertices = list(graph)
    if graph.number_of_edges() or len(hosts) == 1:
        rows = levels(graph)
        places, height = arrange(graph, rows)
    else:
        rows, height = {}, WIDTH
        turn = 2.0 * pi / len(hosts)
        places = {
            host: (
                WIDTH / 2 + RADIUS * sin(turn * i),
                WIDTH / 2 - RADIUS * cos(turn * i),
            )
            for i, host in enumerate(hosts)
        }  # fmt: skip
    number = {name: i for i, name in enumerate(vertices)}
    crossed = _Crossed(graph, number, record)
    found = MachinePicture(
        names=[str(name) for name in vertices],
        hosts=len(hosts),
        positions=[(places[v][0] / WIDTH, places[v][1] / WIDTH) for v in vertices],
        height=height / WIDTH,
        tree=bool(rows),
        edges=crossed.edges,
        host_of=[number[host] for host in record.hosts],
    )
    routes: dict[DrawnRoute, int] = {}
    by_hosts = {
        (one, other, route): routes.setdefault(
            crossed.route(number[one], record.routes[route], number[other], route in record.shares),
            len(routes),
        )
        for one, other, route in used
    }
    found.routes = list(routes)
    for source, destination, _, _, route in record.messages[:, 1:6].tolist():
        hosts_of = record.hosts[source], record.hosts[destination]
        if hosts_of[0] != hosts_of[1]:
            found.route_of[source, destination, route] = by_hosts[(*hosts_of, route)]
    return found


def _machine(record: RunActivity, hosts: Sequence[str]) -> nx.MultiGraph | None:
    """The graph of the hosts that are used, by the machine of the recording, if it can be read."""
    if record.measured or len(hosts) > FEW:
        return None
    try:
        platform = recorded_machine("", record.facts, record.ranks).platform
        return to_graph(platform, [platform.host(name) for name in hosts], routes=False)
    except UsageError:
        return None


def _cable(link: str) -> str:
    """The name of a split-duplex link, from that of a direction."""
    return link.removesuffix("_UP").removesuffix("_DOWN")


class _Crossed:
    """The edges of a picture, and the vertices that routes of links pass."""

    def __init__(
        self, graph: nx.MultiGraph, number: dict[object, int], record: RunActivity
    ) -> None:
        links: dict[str, list[int]] = {}
        for i, (name, _) in enumerate(record.links):
            cable = _cable(name)
            links.setdefault(cable, []).append(i)
            if cable != name:
                links.setdefault(name, []).append(i)
        self.edges: list[DrawnLink] = []
        self._edge: dict[int, DrawnLink] = {}  # by link
        for vertex, data in graph.nodes(data=True):
            if "bandwidth" in data:
                self._add(number[vertex], number[vertex], data["name"], links)
        for one, other, data in graph.edges(data=True):
            name = "" if data.get("kind") == JOINT else data["name"]
            self._add(number[one], number[other], name, links)

    def _add(self, one: int, other: int, name: str, links: dict[str, list[int]]) -> None:
        edge = DrawnLink(one, other, tuple(links.get(name, ())))
        self.edges.append(edge)
        for link in edge.links:
            self._edge[link] = edge

    def route(self, source: int, links: Sequence[int], destination: int, split: bool) -> DrawnRoute:
        """The vertices from one host to another over some links, and those that are drawn.

        If messages are `split`, links of several rails are side by side.
        """
        vertices, drawn = [source], []
        for link in links:
            edge = self._edge.get(link)
            if edge is None:
                continue
            drawn.append(link)
            if split and {edge.one, edge.other} == set(vertices[-2:]):
                continue
            ends = (edge.other, edge.one) if vertices[-1] == edge.other else (edge.one, edge.other)
            vertices += [v for v in dict.fromkeys(ends) if v != vertices[-1]]
        if vertices[-1] != destination:
            vertices.append(destination)
        return DrawnRoute(tuple(vertices), tuple(drawn))


class CollectiveSpan(NamedTuple):
    """A collective call: the site of its calls, its first begin and last end (s), its rounds.

    A non-blocking call ends with the last of its messages.
    """

    site: int
    begin: float
    end: float
    rounds: int


def rounds(graph: EventGraph) -> dict[int, int]:
    """The round of each message of a collective call, by the number of the message.

    A message is in the round after the last one of which its sender has received or sent a message
    that had arrived when this one was sent; otherwise in round 1.
    """
    table = graph.record.messages
    mine = {
        number: (source, destination, call)
        for number, source, destination, call in table[:, [0, 1, 2, 8]].tolist()
        if call
    }
    reached: dict[tuple[int, int], int] = {}
    found: dict[int, int] = {}
    for kind, number in zip(graph.kind, graph.a):
        if kind == events.START_SEND and number in mine:
            source, _, call = mine[number]
            found[number] = 1 + reached.get((call, source), 0)
        elif kind == events.ARRIVE and number in found:
            *ranks, call = mine[number]
            for rank in ranks:
                reached[call, rank] = max(reached.get((call, rank), 0), found[number])
    return found


def collective_calls(graph: EventGraph, round_of: dict[int, int]) -> dict[int, CollectiveSpan]:
    """The collective calls that take time, in the order of their begins, by their numbers."""
    left: dict[int, float] = {}  # the end of the call that an event belongs to, by its row
    inside: dict[int, list[int]] = {}
    for row, (kind, process) in enumerate(zip(graph.kind, graph.process)):
        if kind == events.ENTER:
            inside.setdefault(process, []).append(row)
        elif kind == events.RETURN:
            for entered in inside.pop(process, ()):
                left[entered] = graph.date[row]
    found: dict[int, CollectiveSpan] = {}
    for (number, _), rows in graph.entered.items():
        begin = min(graph.date[row] for row in rows)
        end = max(left.get(row, begin) for row in rows)
        site = next((graph.site[row] for row in rows if graph.site[row] != NONE), NONE)
        found[number] = CollectiveSpan(site, begin, end, 0)
    for number, call in graph.record.messages[:, [0, 8]].tolist():
        one = found.get(call)
        arrive = graph.arrives.get(number)
        if one is not None and arrive is not None:
            last = max(one.rounds, round_of.get(number, 0))
            found[call] = one._replace(end=max(one.end, graph.date[arrive]), rounds=last)
    some = [(one.begin, number) for number, one in found.items() if one.end > one.begin]
    return {number: found[number] for _, number in sorted(some)}
