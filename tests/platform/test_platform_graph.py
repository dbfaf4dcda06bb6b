"""Machines from graphs and graphs of machines, pictures, and the topologies of direct networks."""

from __future__ import annotations

from xml.etree import ElementTree

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.platform import from_graph, load, to_graph
from pysmpi.platform.drawing import draw, levels
from pysmpi.platform.zones.slim_fly import generators

SVG = "{http://www.w3.org/2000/svg}"


def cluster(tmp_path, hosts, topology, **keys):
    path = tmp_path / "machine.yaml"
    more = "".join(f", {key}: {value}" for key, value in keys.items())
    path.write_text(
        f"name: machine\nclusters:\n- {{name: c, hosts: 'n[0-{hosts - 1}]', "
        f"link: {{bandwidth: 1GBps, latency: 1us}}, topology: {{{topology}}}{more}}}\n"
    )
    return load(path)


def routers(platform):
    """The graph of routers alone, as the names of cables say it."""
    graph = nx.Graph()
    for link in platform.links:
        if "_cable_" in link.name:
            a, b = link.name.partition("_cable_")[2].split("_")[:2]
            graph.add_edge(int(a), int(b))
    return graph


@pytest.mark.parametrize(("dimensions", "nodes"), [(1, 1), (3, 2), (5, 1)])
def test_a_hypercube(tmp_path, dimensions, nodes):
    hosts = nodes << dimensions
    shape = f"kind: hypercube, dimensions: {dimensions}, nodes: {nodes}"
    platform = cluster(tmp_path, hosts, shape)
    graph = routers(platform)
    assert nx.is_isomorphic(graph, nx.hypercube_graph(dimensions))
    for a in platform.hosts:
        for b in platform.hosts:
            if a is not b:
                hops = (a.index // nodes ^ b.index // nodes).bit_count()
                assert len(platform.route(a, b).links) == hops + 2


@pytest.mark.parametrize("q", [3, 5, 7, 11, 13])
def test_a_slim_fly(tmp_path, q):
    """The degree is (3q - delta) / 2 with q = 4w + delta, and the diameter is 2."""
    hosts = 2 * q * q
    platform = cluster(tmp_path, hosts, f"kind: slim_fly, q: {q}, nodes: 1")
    graph = routers(platform)
    delta = 1 if q % 4 == 1 else -1
    assert {degree for _, degree in graph.degree()} == {(3 * q - delta) // 2}
    assert len(graph) == hosts and nx.diameter(graph) == 2
    sample = platform.hosts[:: max(1, hosts // 20)]
    for a in sample:
        for b in sample:
            if a is not b:
                way = nx.shortest_path_length(graph, a.index, b.index)
                links = platform.route(a, b).links
                assert len(links) == way + 2
    one, other = generators(q)
    assert one | other == set(range(1, q))


def test_the_slim_fly_of_the_paper():
    """Figure 2: q = 5, X = {1, 4}, X' = {2, 3}: the graph of Hoffman and Singleton."""
    assert generators(5) == ({1, 4}, {2, 3})


def dragonfly(tmp_path, kind):
    return cluster(
        tmp_path,
        8 * 2 * 4 * 2,
        f"kind: {kind}, groups: 8, blue: 1, chassis: 2, black: 1, routers: 4, green: 1, nodes: 2",
    )


def test_valiant_routes_are_connected_and_go_through_a_third_group(tmp_path):
    platform = dragonfly(tmp_path, "dragonfly_valiant")
    minimal = dragonfly(tmp_path, "dragonfly")
    assert [link.name for link in platform.links] == [link.name for link in minimal.links]
    blues = []
    for a in platform.hosts[::3]:
        for b in platform.hosts[::5]:
            names = [link.name for link in platform.route(a, b).links]
            colours = [name.partition("_")[0] for name in names]
            if a.index // 16 == b.index // 16:
                assert "blue" not in colours
                assert colours.count("green") <= 1 and colours.count("black") <= 1
            else:
                blues.append(colours.count("blue"))
                assert colours.count("green") + colours.count("black") <= 2 * (blues[-1] + 1)
            # Each cable begins where the one before has ended.
            assert len(names) == len(set(names)) or a is b
    assert set(blues) == {1, 2}
    assert blues.count(2) / len(blues) == pytest.approx(6 / 8, abs=0.1)


def adversary():
    """All of one group send to the next group, which minimal routes do over one cable."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    mine, theirs = numpy.zeros(1 << 20, "b"), numpy.zeros(1 << 20, "b")
    begin = MPI.Wtime()
    half = comm.size // 2
    other = (comm.rank + half) % comm.size
    comm.Sendrecv(mine, other, recvbuf=theirs, source=other)
    return MPI.Wtime() - begin


def test_valiant_spreads_what_minimal_routes_crowd(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"n{i}\n" for i in range(32)))

    def slowest(kind):
        platform = dragonfly(tmp_path, kind)
        return max(
            pysmpi.run(adversary, 32, platform=platform, hostfile=hosts, compute="none").returns
        )

    assert slowest("dragonfly") > 2 * slowest("dragonfly_valiant")


def test_new_topologies_refuse_what_no_machine_has(tmp_path):
    for topology, message in (
        ("kind: slim_fly, q: 9, nodes: 1", "expected as q an odd prime"),
        ("kind: hypercube, dimensions: 40, nodes: 1", "expected at most 24 dimensions"),
        ("kind: hypercube, dimensions: 3, nodes: 1", "expected 8 hosts for this hypercube, got 4"),
    ):
        with pytest.raises(UsageError, match=message):
            cluster(tmp_path, 4, topology)


# From a graph


def diamond():
    graph = nx.Graph()
    graph.add_node("a", speed="2Gf", cores=4)
    graph.add_node("b", speed=1e9)
    graph.add_nodes_from(["s", "t"], kind="switch")
    graph.add_edge("a", "s", bandwidth="10Gbps", latency="1us", cost=1)
    graph.add_edge("s", "b", bandwidth=2e9, latency=2e-6, cost=5)
    graph.add_edge("s", "t", bandwidth=3e9, latency=1e-6, cost=1)
    graph.add_edge("t", "b", bandwidth=3e9, latency=1e-6, cost=1)
    return graph


def test_a_machine_from_a_graph():
    platform = from_graph(diamond(), "diamond")
    a, b = platform.hosts
    assert (a.name, a.speed, a.cores, b.speed) == ("a", 2e9, 4, 1e9)
    way = platform.route(a, b)
    assert [link.name for link in way.links] == ["a--s_UP", "b--s_DOWN"]
    assert (way.links[0].bandwidth, way.latency) == (1.25e9, 3e-6)
    assert [link.name for link in platform.route(b, a).links] == ["b--s_UP", "a--s_DOWN"]


def test_ways_follow_a_weight():
    platform = from_graph(diamond(), weight="cost")
    a, b = platform.hosts
    assert [link.name for link in platform.route(a, b).links] == ["a--s_UP", "s--t_UP", "b--t_DOWN"]
    back = [link.name for link in platform.route(b, a).links]
    assert back == ["b--t_UP", "s--t_DOWN", "a--s_DOWN"]


def test_edges_of_a_directed_graph_go_one_way():
    graph = nx.DiGraph()
    graph.add_edge(0, 1, bandwidth=1e9)
    graph.add_edge(1, 2, bandwidth=1e9)
    graph.add_edge(2, 0, bandwidth=1e9)
    platform = from_graph(graph)
    zero, one, _ = platform.hosts
    assert len(platform.route(zero, one).links) == 1
    assert len(platform.route(one, zero).links) == 2


def test_a_program_runs_on_a_graph():
    graph = nx.cycle_graph(6)
    nx.set_edge_attributes(graph, 1e9, "bandwidth")
    nx.set_edge_attributes(graph, 1e-3, "latency")

    def main():
        from mpi4py import MPI

        begin = MPI.Wtime()
        MPI.COMM_WORLD.bcast(None)
        return MPI.Wtime() - begin

    result = pysmpi.run(
        main, 6, platform=from_graph(graph), coll={"bcast": "flattree"}, compute="none",
        map_by="node",
    )  # fmt: skip
    # Rank 3 is three cables away.
    assert max(result.returns) == pytest.approx(3e-3, rel=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.add_edge("a", "t"), "edge 'a' - 't': expected the attribute 'bandwidth'"),
        (lambda g: g.add_edge("a", "t", bandwidth="fast"), "bandwidth: expected a bandwidth"),
        (lambda g: g.add_edge("a", "t", bandwidth=0), "bandwidth: expected more than 0"),
        (lambda g: g.add_edge("a", "t", bandwidth=1, latency=-1), "latency: expected"),
        (lambda g: g.add_edge("a", "a", bandwidth=1), "edge 'a' - 'a': expected an edge between"),
        (lambda g: g.add_node("a", kind="router"), "vertex 'a': kind: expected \"host\" or"),
        (lambda g: g.add_node("a", cores="two"), "vertex 'a': cores: expected a whole number"),
        (lambda g: g.add_nodes_from("ab", kind="switch"), "at least one vertex that is a host"),
    ],
)
def test_a_graph_that_is_no_machine_is_refused(change, message):
    graph = diamond()
    change(graph)
    with pytest.raises(UsageError, match=message):
        from_graph(graph)


# To a graph


@given(st.integers(4, 12), st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_a_tree_survives_there_and_back(size, seed):
    tree = nx.random_labeled_tree(size, seed=seed)
    for vertex, degree in list(tree.degree()):
        tree.nodes[vertex]["kind"] = "host" if degree == 1 else "switch"
    nx.set_edge_attributes(tree, 1e9, "bandwidth")
    back = to_graph(from_graph(tree))
    assert nx.is_isomorphic(nx.Graph(back), tree)
    assert sum(d["kind"] == "host" for _, d in back.nodes(data=True)) == sum(
        d["kind"] == "host" for _, d in tree.nodes(data=True)
    )


def test_graphs_of_topologies(tmp_path):
    torus = to_graph(cluster(tmp_path, 24, "kind: torus, dimensions: [4, 3, 2]"))
    assert (len(torus), nx.diameter(torus)) == (24, 2 + 1 + 1)
    fly = to_graph(cluster(tmp_path, 50, "kind: slim_fly, q: 5, nodes: 1"))
    assert (len(fly), nx.diameter(fly)) == (100, 4)
    tree = to_graph(
        cluster(tmp_path, 16, "kind: fat_tree, children: [4, 4], parents: [1, 2], cables: [1, 1]")
    )
    assert len(tree) == 16 + 4 + 2
    # Two switches at the top: half of the hosts can talk to the other half over 4 cables a side.
    half = {f"n{i}" for i in range(8)}
    tree.add_edges_from([("left", h) for h in half], capacity=100)
    tree.add_edges_from([("right", f"n{i}") for i in range(8, 16)], capacity=100)
    plain = nx.Graph()
    for a, b, data in tree.edges(data=True):
        plain.add_edge(a, b, capacity=data.get("capacity", 1))
    assert nx.maximum_flow_value(plain, "left", "right") == 4


def test_the_cabinets_of_graphene_are_found():
    graph = to_graph(load("graphene"))
    assert nx.is_tree(nx.Graph(graph)) and graph.number_of_edges() == 4 * 2 + 2 * 144
    kinds = [data["kind"] for _, data in graph.nodes(data=True)]
    assert kinds.count("host") == 144


# Pictures


@pytest.mark.parametrize("name", ["graphene", "griffon", "cluster", "laptop"])
def test_a_picture_has_every_host_and_link(name):
    platform = load(name)
    root = ElementTree.fromstring(draw(platform))
    graph = to_graph(platform)
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert all(host.name in titles for host in platform.hosts)
    lines = [line for line in root.iter(f"{SVG}line") if line.find(f"{SVG}title") is not None]
    assert len(lines) == sum(one != other for one, other in graph.edges())
    for place in [*root.iter(f"{SVG}rect"), *root.iter(f"{SVG}circle")]:
        x = place.get("x") or place.get("cx")
        assert x is None or 0 <= float(x) <= 1000


def test_names_and_figures_of_a_picture_can_be_read():
    texts = [text for text in ElementTree.fromstring(draw(load("cluster"))).iter(f"{SVG}text")]
    assert texts[-1].text == "12.5 GB/s, 500 ns"
    names = [text for text in texts if text.text.startswith("cluster-n")]
    assert names[0].text == "cluster-n0"
    at = [float(text.get("x")) for text in names]
    assert len(names) > 20 and all(b - a >= 17 for a, b in zip(at, at[1:]))
    root = ElementTree.fromstring(draw(load("griffon")))
    assert at[-1] + 6 * len("cluster-n63") * 0.7 < float(root.get("width"))
    buses = [text.text for text in root.iter(f"{SVG}text")][-1]
    assert buses.startswith("inside a point: cabinet1_backbone, ")


def test_trees_stand_in_rows_and_meshes_do_not(tmp_path):
    tree = to_graph(
        cluster(tmp_path, 16, "kind: fat_tree, children: [4, 4], parents: [1, 2], cables: [1, 1]")
    )
    assert sorted(levels(tree).values()) == [0] * 16 + [1] * 4 + [2] * 2
    platform = cluster(tmp_path, 8, "kind: torus, dimensions: [2, 4]")
    assert levels(to_graph(platform)) == {}
    assert draw(platform) == draw(platform)


def test_the_graph_of_a_machine_is_a_machine_again():
    """Between all hosts the same latency and the same narrowest link."""
    from pysmpi.platform import load

    graphene = load("graphene")
    again = from_graph(to_graph(graphene))
    assert [host.name for host in again.hosts] == [host.name for host in graphene.hosts]
    for one, other in ((0, 1), (0, 38), (38, 39), (0, 100), (143, 74)):
        routes = [
            machine.route(machine.host(f"graphene-{one}"), machine.host(f"graphene-{other}"))
            for machine in (graphene, again)
        ]
        assert routes[0].latency == pytest.approx(routes[1].latency)
        narrowest = [min(link.bandwidth for link in route.links) for route in routes]
        assert narrowest[0] == narrowest[1]


def test_parallel_edges_have_no_weights():
    import networkx as nx

    graph = nx.MultiGraph()
    graph.add_edge("a", "b", bandwidth="1GBps")
    assert len(from_graph(graph).hosts) == 2
    graph.add_edge("b", "a", bandwidth="1GBps")
    assert len(from_graph(graph).links) == 5
    with pytest.raises(UsageError, match="got several between 'a' and 'b'|between 'b' and 'a'"):
        from_graph(graph, weight="cost")


@pytest.mark.parametrize("name", ["graphene", "fat-tree", "torus"])
def test_a_machine_is_the_same_after_a_round_trip(name):
    machine = load(name)
    again = from_graph(to_graph(machine), name)
    assert dict(again.config) == dict(machine.config) and again.preset == machine.preset
    assert [host.name for host in again.hosts] == [host.name for host in machine.hosts]

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.Alltoall(bytearray(comm.size * 1000), bytearray(comm.size * 1000))

    one, other = (
        pysmpi.run(main, 8, platform=one, compute="none", map_by="node").seconds
        for one in (machine, again)
    )
    assert other == pytest.approx(one, rel=1e-6)


def test_configuration_of_graphs():
    graph = nx.path_graph(2)
    nx.set_edge_attributes(graph, "1GBps", "bandwidth")
    graph.graph["config"] = '{"smpi/os": "0:1e-6:0"}'
    assert from_graph(graph).config == {"smpi/os": "0:1e-6:0"}
    for wrong in ("{", "[1]", 5):
        graph.graph["config"] = wrong
        with pytest.raises(UsageError, match="config: expected options"):
            from_graph(graph)
    del graph.graph["config"]
    graph.edges[0, 1]["sharing"] = "some"
    with pytest.raises(UsageError, match="sharing: expected shared, fatpipe or split-duplex"):
        from_graph(graph)
