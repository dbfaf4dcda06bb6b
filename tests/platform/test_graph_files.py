"""Machines in files of graphs: GraphML, GEXF and node-link JSON; round trips of all machines."""

import json

import networkx as nx
import pytest

import pysmpi
from pysmpi.cli.platform import command
from pysmpi.errors import UsageError
from pysmpi.platform import from_graph, load, shipped, to_graph
from pysmpi.platform.node_show import node_keys

MACHINES = [*shipped(), "alps", "stampede2-skx"]


def signature(platform):
    """The configuration of a machine, and the routes between some of its hosts."""
    hosts = platform.hosts
    step = max(1, len(hosts) // 9)
    routes = {}
    for a in hosts[::step]:
        for b in hosts[:: step + 1]:
            route = platform.route(a, b)
            bandwidths = sorted(link.bandwidth for link in route.links)
            routes[a.name, b.name] = (round(route.latency * 1e12), bandwidths)
    definition = platform.definition
    return (
        platform.name,
        platform.preset,
        dict(platform.config),
        platform.description,
        {model: dict(options) for model, options in platform.models.items()},
        definition.sources,
        {name: node_keys(node) for name, node in definition.nodes.items()},
        platform.profiles,
        [(h.name, h.speed, h.cores, h.sockets, dict(h.properties)) for h in hosts],
        [h.node and h.node.name for h in hosts],
        routes,
    )


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_is_the_same_after_its_graph(name):
    machine = load(name)
    graph = to_graph(machine)
    assert signature(from_graph(graph, name)) == signature(machine)
    if len(machine.hosts) > 200:
        return
    # Links have the same names, also those of the next graph.
    again = to_graph(from_graph(graph, name))
    assert sorted(data["name"] for *_, data in again.edges(data=True) if "name" in data) == sorted(
        data["name"] for *_, data in graph.edges(data=True) if "name" in data
    )


@pytest.mark.parametrize("form", ["graphml", "gexf", "json"])
@pytest.mark.parametrize("name", ["multicore-cluster", "griffon", "laptop", "xeon-e5-2650"])
def test_files_of_graphs_are_machines(form, name, tmp_path):
    path = tmp_path / f"machine.{form}"
    command.main(["convert", name, "-o", str(path)], standalone_mode=False)
    assert signature(load(path)) == signature(load(name))


def exchange():
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.Alltoall(bytearray(comm.size * 1000), bytearray(comm.size * 1000))
    comm.Sendrecv(bytearray(100_000), comm.rank ^ 1, recvbuf=bytearray(100_000))


@pytest.mark.parametrize("name", ["multicore-cluster", "griffon", "cluster"])
def test_a_run_takes_the_same_time_on_the_file(name, tmp_path):
    path = tmp_path / "machine.graphml"
    nx.write_graphml(to_graph(load(name)), path)
    one, other = (
        pysmpi.run(exchange, 16, platform=machine, compute="none", map_by="core").seconds
        for machine in (name, path)
    )
    assert other == pytest.approx(one, rel=1e-9)


def test_a_large_graph_is_a_machine():
    """1,200 hosts behind 12 switches, in a ring."""
    graph = nx.Graph()
    for switch in range(12):
        graph.add_node(f"s{switch}", kind="switch")
        graph.add_edge(f"s{switch}", f"s{(switch + 1) % 12}", bandwidth="10GBps", latency="1us")
        for host in range(100):
            graph.add_edge(f"s{switch}", f"h{switch}-{host}", bandwidth="1GBps", latency="1us")
    machine = from_graph(graph)
    assert len(machine.hosts) == 1200
    assert machine.route(machine.host("h0-0"), machine.host("h6-3")).latency == pytest.approx(8e-6)
    again = to_graph(machine)
    assert sorted(d for _, d in again.degree()) == sorted(d for _, d in graph.degree())


def test_equal_routes_are_spread_over_the_switches_of_a_fat_tree():
    graph = nx.Graph()
    for leaf in range(4):
        for spine in range(4):
            graph.add_edge(f"leaf{leaf}", f"spine{spine}", bandwidth=1e9)
        for host in range(4):
            graph.add_edge(f"leaf{leaf}", f"h{leaf}{host}", bandwidth=1e9)
    nx.set_node_attributes(graph, {v: "switch" for v in graph if not v.startswith("h")}, "kind")
    machine = from_graph(graph)
    hosts = {host.name: host for host in machine.hosts}
    used = [
        {
            link.name
            for link in machine.route(hosts["h00"], hosts[f"h1{i}"]).links
            if "spine" in link.name
        }
        for i in range(4)
    ]
    assert len(frozenset().union(*used)) == 8  # four ways, two cables each
    # Parallel cables are ways, too.
    pair = nx.MultiGraph()
    pair.add_nodes_from("st", kind="switch")
    for switch, host in (("s", "a"), ("t", "b")):
        for i in range(4):
            pair.add_edge(switch, f"{host}{i}", bandwidth=1e9)
    for i in range(2):
        pair.add_edge("s", "t", bandwidth=1e9, name=f"cable{i}")
    machine = from_graph(pair)
    names = {
        link.name
        for i in range(4)
        for link in machine.route(machine.host("a0"), machine.host(f"b{i}")).links
    }
    assert {"cable0_UP", "cable1_UP"} <= names


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.graphml", "<graphml", "m.graphml: expected a graph as GraphML, got"),
        ("m.gexf", "<gexf/>", "m.gexf: expected a graph as GEXF, got"),
        ("m.json", "{", "m.json: expected JSON, got"),
        ("m.json", "[]", 'm.json: expected a graph as node-link JSON, an object with "nodes"'),
        ("m.json", '{"nodes": [1], "links": []}', r"nodes\[0\]: expected an object with id"),
        (
            "m.json",
            '{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2}]}',
            r"links\[0\]: expected ids of nodes, got '2'",
        ),
        ("m.json", '{"nodes": [], "links": []}', "expected at least one vertex that is a host"),
    ],
)
def test_a_file_that_is_no_graph_is_refused(name, text, message, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.nodes["a"].update(node="x"), "vertex 'a': node: expected one of the nodes"),
        (lambda g: g.nodes["a"].update(cores=3, sockets=2), "sockets: expected a divisor of 3"),
        (lambda g: g.nodes["a"].update(properties="x"), "vertex 'a': properties: expected names"),
        (lambda g: g.nodes["a"].update(loopback="[]"), "loopback: expected the attributes of a"),
        (lambda g: g.nodes["a"].update(loopback="{}"), "loopback: expected the attribute 'bandwid"),
        (lambda g: g.nodes["s"].update(own_link=True), "own_link: expected a host with one link"),
        (lambda g: g.edges["a", "s"].update(kind="joint"), "expected as ends of a joint two swit"),
        (lambda g: g.graph.update(preset="fast"), "preset"),
        (lambda g: g.graph.update(models="[]"), "models"),
    ],
)
def test_attributes_that_no_machine_has_are_refused(change, message):
    graph = nx.Graph()
    graph.add_node("s", kind="switch")
    for host in "ab":
        graph.add_edge(host, "s", bandwidth=1e9)
    change(graph)
    with pytest.raises(UsageError, match=message):
        from_graph(graph)


def test_labels_of_gexf_are_names_and_loopbacks_are_taken(tmp_path):
    graph = nx.Graph()
    graph.add_node(0, label="left", loopback=json.dumps({"bandwidth": "2GBps", "latency": "1us"}))
    graph.add_node(1, label="right")
    graph.add_edge(0, 1, bandwidth=1e9, latency=1e-6)
    nx.write_gexf(graph, tmp_path / "pair.gexf")
    machine = load(tmp_path / "pair.gexf")
    left, right = machine.hosts
    assert (left.name, right.name) == ("left", "right")
    assert machine.route(left, left).links[0].bandwidth == 2e9
    assert machine.route(right, right).links == (machine.loopback,)
