"""Routes: link for link those of SimGrid, and properties of any platform."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.errors import UsageError
from pysmpi.platform import load, model
from pysmpi.platform.zones import ZONE_KINDS, load_kinds
from tests.platform.listed_routes import assert_route

DATA = Path(__file__).parent.parent / "data"
PLATFORMS = DATA / "platforms"
GOLDEN = sorted((DATA / "routes").glob("*.txt"))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_routes_are_those_of_simgrid(golden):
    platform = load(PLATFORMS / f"{golden.stem}.xml")
    for line in golden.read_text().splitlines():
        src, dst, latency, *links = line.split()
        assert_route(platform, src, dst, latency, links)


@pytest.mark.parametrize("path", sorted(PLATFORMS.glob("*.xml")), ids=lambda path: path.stem)
def test_every_pair_is_connected_and_numbered(path):
    platform = load(path)
    assert [host.index for host in platform.hosts] == list(range(len(platform.hosts)))
    assert [link.index for link in platform.links] == list(range(len(platform.links)))
    assert platform.links[-1] is platform.loopback
    sample = platform.hosts[:: max(1, len(platform.hosts) // 12)]
    for src in sample:
        for dst in sample:
            route = platform.route(src, dst)
            assert route.links
            assert route.latency == pytest.approx(sum(link.latency for link in route.links))
            assert platform.route(src, dst) is route
    for link in platform.links:
        if link.opposite is not None:
            assert link.opposite.opposite is link
            assert link.opposite is not link


def names(platform, src, dst):
    return [link.name for link in platform.route(platform.host(src), platform.host(dst)).links]


def test_a_flat_cluster_crosses_limiter_link_link_limiter():
    flat = load(PLATFORMS / "flat.default.xml")
    assert names(flat, "n-3", "n-9") == [
        "flat_link_3_limiter",
        "flat_link_3_UP",
        "flat_link_9_DOWN",
        "flat_link_9_limiter",
    ]
    assert names(flat, "n-3", "n-3") == ["flat_link_3_loopback"]


def test_a_shared_backbone_is_crossed_once_even_to_oneself():
    shared = load(PLATFORMS / "shared_backbone.default.xml")
    assert names(shared, "n-0", "n-1") == ["bb_link_0_UP", "bb_backbone", "bb_link_1_DOWN"]
    assert names(shared, "n-4", "n-4") == ["bb_link_4_UP", "bb_backbone", "bb_link_4_DOWN"]


def test_dijkstra_and_floyd_agree_where_the_shortest_way_is_unique():
    floyd, dijkstra = load(PLATFORMS / "floyd.xml"), load(PLATFORMS / "dijkstra.xml")
    for a in floyd.hosts:
        for b in floyd.hosts:
            assert names(floyd, a.name, b.name) == names(dijkstra, a.name, b.name)


def test_the_implicit_loopback_follows_the_options(tmp_path):
    nested = load(PLATFORMS / "nested.xml")
    assert names(nested, "e0", "e0") == ["__loopback__"]
    assert nested.loopback.bandwidth == 2e9
    assert nested.loopback.latency == 1e-7
    assert nested.loopback.sharing == "fatpipe"
    overruled = load(PLATFORMS / "nested.xml", {"network/loopback-bw": "3GBps"})
    assert overruled.loopback.bandwidth == 3e9
    flat = load(PLATFORMS / "flat.default.xml")
    assert (flat.loopback.bandwidth, flat.loopback.latency) == (10e9, 0.0)
    with pytest.raises(UsageError, match="network/loopback option: expected a bandwidth"):
        load(PLATFORMS / "nested.xml", {"network/loopback-bw": "fast"})


def test_a_host_that_nothing_connects_to_itself_uses_the_implicit_loopback():
    torus = load(PLATFORMS / "torus_limiters.xml")
    assert names(torus, "n-0", "n-0") == ["a_link_0_loopback"]
    limited = load(PLATFORMS / "fat_tree_limiters.xml")
    # SimGrid crosses the host's limiter there, and so does pysmpi.
    assert names(limited, "n-0", "n-0")


def test_hosts_without_a_route_are_an_error_that_names_both(tmp_path):
    path = tmp_path / "split.yaml"
    path.write_text(
        "name: split\nhosts:\n- {name: a, speed: 1Gf}\n- {name: b, speed: 1Gf}\n", encoding="utf-8"
    )
    platform = load(path)
    with pytest.raises(UsageError, match=r"split\.yaml: there is no route from a to b"):
        platform.route(*platform.hosts)
    assert platform.route(platform.hosts[0], platform.hosts[0]).links == (platform.loopback,)


def test_routes_are_kept_in_bounded_number(monkeypatch):
    monkeypatch.setattr(model, "ROUTE_CACHE", 10)
    flat = load(PLATFORMS / "flat.default.xml")
    for host in flat.hosts:
        flat.route(flat.hosts[0], host)
        assert 1 <= len(flat._routes) <= 10


def test_a_dragonfly_with_more_groups_than_blades_reaches_every_group():
    platform = load(PLATFORMS / "dragonfly.default.xml")
    for src in platform.hosts[::5]:
        for dst in platform.hosts:
            if src.index // 16 != dst.index // 16:
                blue = [n for n in names(platform, src.name, dst.name) if n.startswith("blue")]
                assert len(blue) == 1


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.booleans(),
    st.data(),
)
@settings(max_examples=30, deadline=None)
def test_a_torus_takes_the_shortest_way(tmp_path_factory, dimensions, limiter, data):
    size = 1
    for dimension in dimensions:
        size *= dimension
    path = tmp_path_factory.mktemp("torus") / "torus.yaml"
    path.write_text(
        f"name: t\nclusters:\n- name: t\n  hosts: 'n[0-{size - 1}]'\n  speed: 1Gf\n"
        f"  link: {{bandwidth: 1GBps, latency: 1us}}\n"
        + ("  limiter: 1GBps\n" if limiter else "")
        + f"  topology: {{kind: torus, dimensions: {dimensions}}}\n",
        encoding="utf-8",
    )
    platform = load(path)
    src = data.draw(st.integers(0, size - 1))
    dst = data.draw(st.integers(0, size - 1))
    hops = 0
    stride = 1
    for dimension in dimensions:
        apart = abs(src // stride % dimension - dst // stride % dimension)
        hops += min(apart, dimension - apart)
        stride *= dimension
    route = platform.route(platform.hosts[src], platform.hosts[dst])
    own = platform.loopback in route.links
    away = platform.loopback.latency if own else hops * 1e-6
    assert route.latency == pytest.approx(away)


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_a_fat_tree_goes_up_as_far_as_it_comes_down(tmp_path_factory, data):
    levels = data.draw(st.integers(1, 3))
    sizes = st.lists(st.integers(1, 3), min_size=levels, max_size=levels)
    children, parents, cables = data.draw(sizes), data.draw(sizes), data.draw(sizes)
    hosts = 1
    for count in children:
        hosts *= count
    path = tmp_path_factory.mktemp("tree") / "tree.yaml"
    path.write_text(
        f"name: t\nclusters:\n- name: t\n  hosts: 'n[0-{hosts - 1}]'\n  speed: 1Gf\n"
        f"  link: {{bandwidth: 1GBps, latency: 1us}}\n"
        f"  topology: {{kind: fat_tree, children: {children}, parents: {parents}, "
        f"cables: {cables}}}\n",
        encoding="utf-8",
    )
    platform = load(path)
    src = platform.hosts[data.draw(st.integers(0, hosts - 1))]
    dst = platform.hosts[data.draw(st.integers(0, hosts - 1))]
    links = [link.name for link in platform.route(src, dst).links]
    ups = [name for name in links if name.endswith("_UP")]
    downs = [name for name in links if name.endswith("_DOWN")]
    assert links == ups + downs
    assert len(ups) == len(downs)
    stride, apart = 1, 1
    for count in children:
        if src.index // stride // count == dst.index // stride // count:
            break
        stride *= count
        apart += 1
    # A host has no loopback here: a message to itself crosses its switch, as in SimGrid.
    assert len(ups) == apart


def test_each_kind_of_zone_has_a_line_for_listings():
    kinds = load_kinds()
    assert {"full", "star", "flat", "fat_tree", "torus", "dragonfly", "floyd", "dijkstra"} <= set(
        kinds
    )
    for kind in ZONE_KINDS:
        assert kind.cls.kind == kind.name
        assert kind.line and "\n" not in kind.line


def test_an_unknown_host_is_an_error_with_the_closest_name():
    with pytest.raises(UsageError, match='there is no host "n-64"; did you mean "n-6'):
        load(PLATFORMS / "flat.default.xml").host("n-64")
