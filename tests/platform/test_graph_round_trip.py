"""A machine, its graph and the files of the graph: the same routes, times and configuration."""

from __future__ import annotations

import json
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.platform import Platform, from_graph, load, to_graph
from pysmpi.platform.definition import SPLIT
from pysmpi.platform.graph_files import text_of

few = st.integers(1, 3)
RULE = ("count", "choice", "stripe_from", "sizes", "separate")
FORMS = [None, "graphml", "gexf", "json"]
RAILS = [
    None,
    None,
    {"count": 2},
    {"count": 2, "choice": "by-rank", "stripe_from": "1KiB", "separate": True},
    {"others": [{"bandwidth": "5GBps"}, {"latency": "3us"}], "choice": "by-size",
     "sizes": ["1KiB", "1MiB"]},
]  # fmt: skip


@st.composite
def fat_trees(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    levels = draw(st.integers(1, 3))
    children = [draw(st.integers(2, 3)) for _ in range(levels)]
    parents, cables = ([draw(few) for _ in range(levels)] for _ in range(2))
    hosts = 1
    for count in children:
        hosts *= count
    shape = {"kind": "fat_tree", "children": children, "parents": parents, "cables": cables}
    return shape, hosts


@st.composite
def tori(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    dimensions = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    hosts = 1
    for count in dimensions:
        hosts *= count
    return {"kind": "torus", "dimensions": dimensions}, hosts


@st.composite
def dragonflies(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    kind = draw(st.sampled_from(["dragonfly", "dragonfly_valiant"]))
    chassis, routers, nodes = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(few)
    groups = draw(st.integers(1, min(3, chassis * routers)))
    blue, black, green = draw(few), draw(few), draw(few)
    shape = {"kind": kind, "groups": groups, "blue": blue, "chassis": chassis, "black": black,
             "routers": routers, "green": green, "nodes": nodes}  # fmt: skip
    return shape, groups * chassis * routers * nodes


shapes = st.one_of(
    st.integers(1, 9).map(lambda hosts: ({"kind": "flat"}, hosts)),
    fat_trees(),
    tori(),
    dragonflies(),
    st.builds(
        lambda d, n: ({"kind": "hypercube", "dimensions": d, "nodes": n}, n << d),
        st.integers(1, 4), st.integers(1, 2),
    ),
)  # fmt: skip


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Any]:
    """A file with one or two clusters of any topologies, and what a file may say beside them."""
    clusters: list[dict[str, Any]] = []
    for number in range(draw(st.sampled_from([1, 1, 2]))):
        shape, hosts = draw(shapes.filter(lambda one: 2 <= one[1] <= 16))
        cluster = {
            "name": f"c{number}", "hosts": f"n{number}-[0-{hosts - 1}]", "cores": 2,
            "topology": shape,
            "link": {"bandwidth": "10GBps", "latency": "1us"},
            "properties": {"wattage_per_state": "100.0:120.0:200.0", "wattage_off": "10"},
        }  # fmt: skip
        if draw(st.booleans()):
            cluster["speed"] = "3Gf"
        rails = draw(st.sampled_from(RAILS))
        direct = shape["kind"] in ("torus", "hypercube", "slim_fly")
        if rails is not None and (not direct or rails.get("separate")):
            cluster["rails"] = rails
        elif draw(st.booleans()):
            cluster["link"]["sharing"] = draw(st.sampled_from(["shared", "fatpipe"]))
        separate = cluster.get("rails", {}).get("separate")
        if shape["kind"] == "flat" and not separate and draw(st.booleans()):
            cluster["backbone"] = {"bandwidth": "30GBps", "latency": "500ns"}
        extra = draw(st.sampled_from(["", "loopback", "limiter"]))
        if extra == "loopback":
            cluster["loopback"] = {"bandwidth": "6GBps", "latency": "300ns"}
        if extra == "limiter" and shape["kind"] in ("flat", "torus"):
            cluster["limiter"] = "15GBps"
        clusters.append(cluster)
    keys: dict[str, Any] = {
        "name": "m", "description": "made at random", "clusters": clusters,
        "preset": draw(st.sampled_from(["neutral", "infiniband-edr", "ethernet"])),
        "config": draw(st.sampled_from([{}, {"smpi/os": "0:1e-6:0"}])),
    }  # fmt: skip
    if draw(st.booleans()):
        keys["profiles"] = [
            {"host": "n0-0", "speed": {"0s": 1.0, "1s": 0.5}},
            {"host": "n0-0", "state": {"3s": "down", "4s": "up"}},
        ]
    if len(clusters) == 2:
        keys["links"] = [{"name": "between", "bandwidth": "20GBps", "latency": "2us"}]
        keys["routes"] = [
            {"from": "c0", "to": "c1", "via": ["between"], "from_gateway": "n0-0",
             "to_gateway": "n1-0"}
        ]  # fmt: skip
    return keys


def facts(machine: Platform) -> dict[str, Any]:
    """All that a machine has and its graph keeps."""
    routes = {}
    for source in machine.hosts:
        for target in machine.hosts:
            try:
                links = machine.way(source, target)
            except UsageError:
                links = ()
            routes[source.name, target.name] = [
                (link.name, link.bandwidth, link.latency, link.sharing) for link in links
            ]
    crossed = {link[0] for links in routes.values() for link in links}
    crossed |= {name.replace("_UP", "_DOWN") for name in crossed}
    crossed |= {name.replace("_DOWN", "_UP") for name in crossed}
    rails = {
        host.name: (
            [getattr(host.rails.definition, name) for name in RULE],
            [{link.name: (other.name, other.bandwidth, other.latency)
              for link, other in swap.items() if link.name in crossed}
             for swap in host.rails.swaps],
        )
        for host in machine.hosts if host.rails is not None and len(machine.hosts) > 1
    }  # fmt: skip
    return {
        "routes": routes,
        "rails": rails,
        "hosts": [(h.name, h.speed, h.cores, h.sockets, dict(h.properties)) for h in machine.hosts],
        "file": (machine.name, machine.preset, dict(machine.config), machine.description),
        "profiles": machine.profiles,
    }


def again(machine: Platform, form: str | None, folder: Any) -> Platform:
    """The machine of the graph of a machine, or of a file of the graph."""
    graph = to_graph(machine)
    if form is None:
        return from_graph(graph, "m")
    path = folder / f"m.{form}"
    path.write_text(text_of(graph, form))
    return load(path)


def test_a_slim_fly_is_the_same_after_its_graph(tmp_path: Any) -> None:
    shape = {"kind": "slim_fly", "q": 5, "nodes": 1}
    machine = load({"name": "m", "description": "one", "clusters": [
                    {"name": "c", "hosts": "n[0-49]", "topology": shape,
                    "link": {"bandwidth": "10GBps", "latency": "1us"}}]})  # fmt: skip
    assert facts(again(machine, "graphml", tmp_path)) == facts(machine)


@given(machines(), st.sampled_from(FORMS))
@settings(max_examples=12, deadline=None)
def test_any_machine_is_the_same_after_its_graph(
    tmp_path_factory: pytest.TempPathFactory, keys: dict[str, Any], form: str | None
) -> None:
    machine = load(keys)
    made = again(machine, form, tmp_path_factory.mktemp("graphs"))
    assert facts(made) == facts(machine)


def exchange() -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for size in (10, 3_000_000):
        comm.Alltoall(bytearray(comm.size * size), bytearray(comm.size * size))


TIMED = [
    ({"kind": "fat_tree", "children": [4, 2], "parents": [2, 2], "cables": [2, 3]}, 8),
    ({"kind": "torus", "dimensions": [3, 3]}, 9),
    ({"kind": "dragonfly", "groups": 2, "blue": 1, "chassis": 2, "black": 1, "routers": 2,
      "green": 1, "nodes": 1}, 8),
    ({"kind": "hypercube", "dimensions": 3, "nodes": 1}, 8),
]  # fmt: skip


@pytest.mark.parametrize("rails", [None, {"count": 2, "separate": True, "choice": "by-rank"}])
@pytest.mark.parametrize(("shape", "hosts"), TIMED, ids=lambda one: str(one)[:20])
def test_a_run_takes_the_same_time(shape: Any, hosts: int, rails: Any, tmp_path: Any) -> None:
    cluster = {"name": "c", "hosts": f"n[0-{hosts - 1}]", "topology": shape,
               "link": {"bandwidth": "10GBps", "latency": "1us"}}  # fmt: skip
    machine = load({"name": "m", "clusters": [cluster | ({"rails": rails} if rails else {})]})
    times = [
        pysmpi.run(exchange, hosts, platform=one, compute="none", data="none").seconds
        for one in (machine, again(machine, None, tmp_path), again(machine, "graphml", tmp_path))
    ]
    assert times[0] == times[1] == times[2]


def test_routes_of_a_graph_yield_to_its_links() -> None:
    """After a change of the graph, routes over links that are gone are the shortest ones."""
    shape = {"kind": "torus", "dimensions": [3, 3]}
    machine = load({"name": "m", "clusters": [{"name": "c", "hosts": "n[0-8]", "topology": shape,
                    "link": {"bandwidth": "10GBps", "latency": "1us"}}]})  # fmt: skip
    graph = to_graph(machine)
    routes = json.loads(graph.graph["routes"])
    source, target, links = next(
        (one, other, links) for one, others in routes.items() for other, links in others.items()
    )
    name = links[0].rpartition("_")[0]
    for one, other, key, data in list(graph.edges(keys=True, data=True)):
        data["bandwidth"] = 5e9
        if data["name"] == name:
            graph.remove_edge(one, other, key)
    made = from_graph(graph, "m")
    route = made.route(made.host(source), made.host(target))
    assert links[0] not in [link.name for link in route.links]
    assert {link.bandwidth for link in route.links} == {5e9}
    # The others are as before.
    for one, others in routes.items():
        for other, links in others.items():
            if not any(name in link for link in links):
                way = made.way(made.host(one), made.host(other))
                assert [link.name for link in way] == links


@pytest.mark.parametrize("routes", ["x", {"a": 1}, {"a": {"b": "x"}}])
def test_wrong_routes_are_refused(routes: Any) -> None:
    graph = nx.Graph(routes=routes)
    graph.add_edge("a", "b", bandwidth="1GBps")
    with pytest.raises(UsageError, match=r"graph: routes: .*expected"):
        from_graph(graph)


def test_a_link_goes_up_from_the_end_that_says_so() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", bandwidth="1GBps", name="one", sharing=SPLIT, up_from="b")
    machine = from_graph(graph)
    assert [link.name for link in machine.way(machine.host("a"), machine.host("b"))] == ["one_DOWN"]
