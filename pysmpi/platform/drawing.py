"""A drawing of a machine as SVG: hosts, the points where links join, and links by their class."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import log10
from typing import TYPE_CHECKING

from pysmpi.errors import UsageError
from pysmpi.platform.graph import JOINT
from pysmpi.platform.model import Platform
from pysmpi.platform.topology import to_graph
from pysmpi.text import seconds, size

if TYPE_CHECKING:
    import networkx as nx

Position = tuple[float, float]

# A picture of more is not readable, and takes long.
MOST_HOSTS = 1024
# Above this number of vertices, a mesh is drawn as a circle.
MOST_SPRINGS = 499

WIDTH, MARGIN, ROW = 1000.0, 50.0, 110.0
APART = 17.0  # between the names of hosts in a row, at least
LETTER = 4.5  # the part of a letter's width that lies below its host, as names run obliquely
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22")


def draw(platform: Platform) -> str:
    """The picture of a machine, as the text of an SVG file.

    Trees, including fat trees, are drawn in rows above their hosts. Other networks are arranged as
    if their links were springs. Raises UsageError for more than 1,024 hosts.
    """
    if len(platform.hosts) > MOST_HOSTS:
        raise UsageError(
            f"{platform.source}: expected at most {MOST_HOSTS:,} hosts for a picture, got "
            f"{len(platform.hosts):,}"
        )
    graph = to_graph(platform, routes=False)
    rows = levels(graph)
    places, height = arrange(graph, rows)
    classes = _classes(graph)
    loops = [data["name"] for _, data in graph.nodes(data=True) if "bandwidth" in data]
    named = _named(graph, rows, places)
    # Names begin below their hosts and end to the right of them.
    oblique = LETTER * max(map(len, named), default=0)
    height, width = height + max(0.0, oblique - 20.0), WIDTH + max(0.0, oblique - MARGIN)
    legend = 30.0 + 18.0 * (len(classes) + bool(loops))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height + legend:g}" '
        f'viewBox="0 0 {width:g} {height + legend:g}" font-family="sans-serif" font-size="11">',
        f"<title>{escape(platform.name)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for one, other, data in graph.edges(data=True):
        (x1, y1), (x2, y2) = places[one], places[other]
        if data.get("kind") == JOINT:
            colour, thick, title = "#999999", 1.0, f"{one}, {other}"
        else:
            colour, thick = classes[data["bandwidth"], data["latency"]]
            title = data["name"]
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="{thick:.1f}"><title>{escape(title)}</title></line>'
        )
    for vertex, data in graph.nodes(data=True):
        parts += _vertex(vertex, data["kind"] == "host", places[vertex], vertex in named)
    y = height + 10.0
    for (bandwidth, latency), (colour, thick) in classes.items():
        text = f"{size(bandwidth)}/s, {seconds(latency)}"
        parts.append(
            f'<line x1="{MARGIN:g}" y1="{y:g}" x2="{MARGIN + 40:g}" y2="{y:g}" stroke="{colour}" '
            f'stroke-width="{thick:.1f}"/><text x="{MARGIN + 50:g}" y="{y + 4:g}">{text}</text>'
        )
        y += 18.0
    if loops:
        # A bus has no line: messages cross it at its point.
        more = f" and {len(loops) - 4} more" if len(loops) > 5 else ""
        text = f"inside a point: {', '.join(loops[: 4 if more else 5])}{more}"
        parts.append(f'<text x="{MARGIN:g}" y="{y + 4:g}">{escape(text)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def arrange(
    graph: nx.MultiGraph, rows: Mapping[object, int]
) -> tuple[dict[object, Position], float]:
    """The positions of all vertices of a picture of width `WIDTH`, and its height.

    `rows` are the rows of a tree (see `levels`), empty for any other graph.
    """
    return _in_rows(graph, rows) if rows else _as_springs(graph)


def levels(graph: nx.MultiGraph) -> dict[object, int]:
    """The row of each vertex, the hosts in row 0; empty where links join vertices of one row."""
    found = {v: 0 for v, data in graph.nodes(data=True) if data["kind"] == "host"}
    row = list(found)
    while row:
        above = []
        for vertex in row:
            for other in graph[vertex]:
                if other not in found:
                    found[other] = found[vertex] + 1
                    above.append(other)
        row = above
    if len(found) < len(graph) or any(found[a] == found[b] for a, b in graph.edges() if a != b):
        return {}
    return found


def _in_rows(
    graph: nx.MultiGraph, rows: Mapping[object, int]
) -> tuple[dict[object, Position], float]:
    """Hosts side by side in their order, all other points above the middle of their neighbours."""
    top = max(rows.values())
    height = 2 * MARGIN + ROW * max(top, 1)
    places: dict[object, Position] = {}
    for level in range(top + 1):
        members = [v for v in graph if rows[v] == level]
        if level:
            below = {
                v: [places[o][0] for o in graph[v] if o in places] or [WIDTH / 2] for v in members
            }
            members.sort(key=lambda v: sum(below[v]) / len(below[v]))
        step = (WIDTH - 2 * MARGIN) / len(members)
        for i, vertex in enumerate(members):
            places[vertex] = MARGIN + step * (i + 0.5), height - MARGIN - ROW * level
    return places, height


def _as_springs(graph: nx.MultiGraph) -> tuple[dict[object, Position], float]:
    import networkx

    if len(graph) <= MOST_SPRINGS:
        found = networkx.spring_layout(networkx.Graph(graph), seed=1, iterations=200)
    else:
        found = networkx.circular_layout(graph)
    points = {v: (float(x), float(y)) for v, (x, y) in found.items()}
    low = [min(p[i] for p in points.values()) for i in (0, 1)]
    high = [max(p[i] for p in points.values()) for i in (0, 1)]
    inner = WIDTH - 2 * MARGIN

    def scaled(value: float, axis: int) -> float:
        span = high[axis] - low[axis]
        return MARGIN + inner * ((value - low[axis]) / span if span else 0.5)

    return {v: (scaled(x, 0), scaled(y, 1)) for v, (x, y) in points.items()}, WIDTH


def _classes(graph: nx.MultiGraph) -> dict[tuple[float, float], tuple[str, float]]:
    """Colour and width of links by bandwidth and latency, the fastest first."""
    kinds = {
        (data["bandwidth"], data["latency"])
        for _, _, data in graph.edges(data=True)
        if data.get("kind") != JOINT
    }
    if not kinds:
        return {}
    order = sorted(kinds, key=lambda kind: (-kind[0], kind[1]))
    least = min(bandwidth for bandwidth, _ in order)
    return {
        kind: (COLOURS[i % len(COLOURS)], min(6.0, 1.0 + 1.5 * log10(kind[0] / least)))
        for i, kind in enumerate(order)
    }


def _named(
    graph: nx.MultiGraph, rows: Mapping[object, int], places: Mapping[object, Position]
) -> set[str]:
    """The hosts whose names are shown: in rows as many as fit, the first of them included."""
    hosts = [vertex for vertex, data in graph.nodes(data=True) if data["kind"] == "host"]
    if not rows:
        return set(hosts) if len(hosts) <= MOST_SPRINGS / 4 else set()
    hosts.sort(key=lambda host: places[host])
    step = (WIDTH - 2 * MARGIN) / max(1, len(hosts))
    return set(hosts[:: max(1, -int(-APART // step))])


def _vertex(name: str, host: bool, place: Position, named: bool) -> list[str]:
    x, y = place
    title = f"<title>{escape(name)}</title>"
    if not host:
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#555">{title}</circle>']
    parts = [
        f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="#fff" '
        f'stroke="#000">{title}</rect>'
    ]
    if named:
        parts.append(
            f'<text x="{x:.1f}" y="{y + 10:.1f}" transform="rotate(45 {x:.1f} {y + 10:.1f})">'
            f"{escape(name)}</text>"
        )
    return parts
