"""Files of graphs that describe machines: GraphML, GEXF, and node-link JSON of networkx or D3."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysmpi.errors import UsageError
from pysmpi.io.reading import read_text
from pysmpi.platform.definition import PlatformDef
from pysmpi.platform.graph import define

if TYPE_CHECKING:
    import networkx as nx

# GEXF has no attributes of graphs: one vertex has those of the machine, as JSON.
_MACHINE = "machine"


def read_machine(path: Path) -> PlatformDef:
    """The machine in a file of a graph, see `from_graph`. Raises UsageError."""
    return define(read_graph(path), str(path))


def read_graph(path: Path) -> nx.Graph:
    """The graph in a file called .graphml, .gexf or .json. Raises UsageError."""
    import networkx

    suffix = path.suffix.lower()
    text = read_text(path, "a file of a graph")
    if suffix == ".json":
        return _node_link(text, str(path))
    form = "GraphML" if suffix == ".graphml" else "GEXF"
    try:
        if suffix == ".graphml":
            return networkx.parse_graphml(text)
        graph = networkx.read_gexf(BytesIO(text.encode()))
        for _, data in graph.nodes(data=True):
            graph.graph.update(json.loads(data.pop(_MACHINE, "{}")))
    except (SyntaxError, ValueError, TypeError, KeyError, networkx.NetworkXException) as error:
        raise UsageError(f"{path}: expected a graph as {form}, got {error}") from None
    labels = [data.get("label") for _, data in graph.nodes(data=True)]
    if None not in labels and len(set(labels)) == len(labels):
        graph = networkx.relabel_nodes(graph, dict(zip(graph, labels, strict=True)))
    return graph


def _node_link(text: str, path: str) -> nx.Graph:
    """The graph of a JSON object with the lists `nodes` and `links` (or `edges`)."""
    import networkx

    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path}: expected JSON, got {error}") from None
    edges = data.get("links", data.get("edges")) if isinstance(data, dict) else None
    if not isinstance(edges, list) or not isinstance(data.get("nodes"), list):
        raise UsageError(
            f'{path}: expected a graph as node-link JSON, an object with "nodes" and "links"'
        )
    graph: Any = networkx.MultiDiGraph() if data.get("directed") else networkx.MultiGraph()
    if isinstance(data.get("graph"), Mapping):
        graph.graph.update(data["graph"])
    for number, one in enumerate(data["nodes"]):
        attributes = _object(one, ("id",), f"{path}: nodes[{number}]")
        graph.add_node(str(attributes.pop("id")), **attributes)
    for number, one in enumerate(edges):
        where = f"{path}: links[{number}]"
        attributes = _object(one, ("source", "target"), where)
        ends = [str(attributes.pop(end)) for end in ("source", "target")]
        for end in ends:
            if end not in graph:
                raise UsageError(f"{where}: expected ids of nodes, got {end!r}")
        attributes.pop("key", None)
        graph.add_edge(*ends, **attributes)
    return graph


def _object(one: object, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(one, dict) or any(key not in one for key in keys):
        raise UsageError(f"{where}: expected an object with {' and '.join(keys)}")
    return dict(one)


def text_of(graph: nx.MultiGraph, form: str) -> str:
    """The text of a file of a graph: graphml, gexf, or json."""
    import networkx

    if form == "graphml":
        return "\n".join(networkx.generate_graphml(graph)) + "\n"
    if form == "gexf":
        graph = graph.copy()
        graph.nodes[next(iter(graph))][_MACHINE] = json.dumps(graph.graph)
        return "\n".join(networkx.generate_gexf(graph)) + "\n"
    data = {
        "directed": graph.is_directed(),
        "multigraph": graph.is_multigraph(),
        "graph": dict(graph.graph),
        "nodes": [{"id": vertex, **data} for vertex, data in graph.nodes(data=True)],
        "links": [
            {"source": one, "target": other, **data} for one, other, data in graph.edges(data=True)
        ],
    }
    return json.dumps(data, indent=1) + "\n"
