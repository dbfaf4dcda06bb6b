"""Rails in platform files: their keys and errors, their links, other formats."""

from __future__ import annotations

import pytest
import yaml

from pysmpi.errors import UsageError
from pysmpi.platform import from_graph, load, to_graph
from pysmpi.platform.check import describe, show
from pysmpi.platform.dump import dump
from pysmpi.platform.graph_files import text_of
from pysmpi.platform.loader import read
from pysmpi.platform.rails import CHOICES
from pysmpi.platform.xml_dump import dump_xml, leaves_out

RULES = [
    {"count": 2},
    {"count": 3, "choice": "by-rank", "stripe_from": "16KiB"},
    {"count": 3, "choice": "by-size", "sizes": ["1KiB", "1MiB"], "separate": True},
    {"others": [{"bandwidth": "5GBps"}, {"latency": "3us"}, {}]},
]
TOPOLOGIES = [
    {"kind": "flat"},
    {"kind": "fat_tree", "children": [2, 2], "parents": [1, 2], "cables": [1, 1]},
    {"kind": "dragonfly", "groups": 2, "blue": 1, "chassis": 1, "black": 1, "routers": 2,
     "green": 1, "nodes": 1},
    {"kind": "hypercube", "dimensions": 2, "nodes": 1},
]  # fmt: skip


def cluster(rails, topology=None, **keys):
    return {"name": "c", "hosts": "n[0-3]", "cores": 4,
            "link": {"bandwidth": "10GBps", "latency": "1us"},
            **({"topology": topology} if topology else {}), "rails": rails, **keys}  # fmt: skip


def machine(rails, topology=None, **keys):
    return load({"name": "m", "clusters": [cluster(rails, topology, **keys)]})


def swaps(platform):
    """For each host and rail, the bandwidths and latencies by the names of the links in routes."""
    return {
        host.name: [
            {link.name: (other.bandwidth, other.latency, other.sharing)
             for link, other in swap.items()}
            for swap in host.rails.swaps
        ]
        for host in platform.hosts
    }  # fmt: skip


@pytest.mark.parametrize("rails", RULES)
@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda one: one["kind"])
def test_a_file_and_its_graph_have_the_same_rails(rails, topology, tmp_path):
    platform = machine(rails, topology)
    file = tmp_path / "m.yaml"
    file.write_text(dump(platform.definition))
    again = load(file)
    assert swaps(again) == swaps(platform)
    assert [host.rails.definition.choice for host in again.hosts] == [
        host.rails.definition.choice for host in platform.hosts
    ]
    graph = to_graph(platform)
    made = from_graph(graph)
    assert swaps(made) == swaps(platform)
    for host, other in zip(made.hosts, platform.hosts, strict=True):
        for name in ("count", "choice", "stripe_from", "sizes", "separate"):
            assert getattr(host.rails.definition, name) == getattr(other.rails.definition, name)
    # The graph has the capacity of all rails, and files of graphs keep it.
    cables = [data for _, _, data in graph.edges(data=True) if data.get("rail_of")]
    assert len(cables) == len({data["name"] for data in cables}) > 0
    for form in ("json", "graphml", "gexf"):
        target = tmp_path / f"m.{form}"
        target.write_text(text_of(graph, form))
        assert swaps(load(target)) == swaps(platform)
    # A machine from a graph can be written as a file, which names the links.
    file.write_text(dump(made.definition))
    assert swaps(load(file)) == swaps(platform)


def test_rails_have_their_own_links():
    platform = machine({"others": [{"bandwidth": "5GBps"}, {"latency": "3us"}]})
    assert swaps(platform)["n2"] == [
        {},
        {"c_link_2_UP": (5e9, 1e-6, "shared"), "c_link_2_DOWN": (5e9, 1e-6, "shared")},
        {"c_link_2_UP": (10e9, 3e-6, "shared"), "c_link_2_DOWN": (10e9, 3e-6, "shared")},
    ]
    names = [link.name for link in platform.links]
    assert "c_link_2_rail_1_UP" in names and "c_link_2_rail_2_DOWN" in names
    assert [link.index for link in platform.links] == list(range(len(platform.links)))


def test_the_latency_between_hosts_is_that_of_two_links():
    platform = load({"name": "m", "clusters": [
        {"name": "c", "hosts": "n[0-1]", "network": {"bandwidth": "1GBps", "latency": "2us"},
         "rails": {"others": [{"latency": "8us"}]}}]})  # fmt: skip
    assert swaps(platform)["n0"][1]["c_link_0_UP"][1] == 4e-6


def test_routes_of_a_dragonfly_keep_the_width_of_their_links():
    shape = {"kind": "dragonfly", "groups": 2, "blue": 3, "chassis": 1, "black": 1, "routers": 2,
             "green": 1, "nodes": 1}  # fmt: skip
    platform = machine({"others": [{"bandwidth": "5GBps"}], "separate": True}, shape)
    (blue,) = [name for name in swaps(platform)["n0"][1] if "blue" in name and "UP" in name]
    assert swaps(platform)["n0"][1][blue][0] == 15e9


ERRORS = [
    ({"count": 1}, "expected 2 to 64 rails, got 1"),
    ({"count": 65}, "expected 2 to 64 rails, got 65"),
    ({}, 'expected the key "count"'),
    ({"count": 2, "choice": "nearest"}, "rails.choice: expected one of by-block, by-core"),
    ({"count": 2, "stripe": 8}, 'did you mean "stripe_from"'),
    ({"count": 2, "stripe_from": "16"}, None),
    ({"count": 2, "stripe_from": "many"}, "rails.stripe_from: expected"),
    ({"count": 2, "choice": "by-size"}, 'expected the key "sizes"'),
    ({"count": 2, "sizes": [8]}, "expected sizes only by choice by-size"),
    ({"count": 3, "choice": "by-size", "sizes": [8]}, "expected 2 sizes in rising order"),
    ({"count": 3, "choice": "by-size", "sizes": [9, 8]}, "expected 2 sizes in rising order"),
    ({"count": 3, "others": [{}]}, "rails.count: expected 2, the rails listed, got 3"),
    ({"others": [{"bandwidth": "0GBps"}]}, "expected a bandwidth above 0"),
    ({"others": [{"speed": "1GBps"}]}, "expected a key among bandwidth, latency"),
    ({"count": 2, "links": [["a", "b"]]}, "expected a key among"),
]


@pytest.mark.parametrize(("rails", "message"), ERRORS)
def test_wrong_rails_of_a_cluster(rails, message):
    if message is None:
        machine(rails)
        return
    with pytest.raises(UsageError) as error:
        machine(rails)
    assert message in str(error.value) and "clusters[0].rails" in str(error.value)


def test_a_torus_has_only_separate_rails():
    torus = {"kind": "torus", "dimensions": [2, 2]}
    with pytest.raises(UsageError, match="expected separate: true in a torus"):
        machine({"count": 2}, torus)
    assert len(machine({"count": 2, "separate": True}, torus).hosts) == 4


def test_a_backbone_has_no_separate_rails():
    with pytest.raises(UsageError, match="backbone: expected none with separate rails"):
        machine({"count": 2, "separate": True}, backbone={"bandwidth": "1GBps"})
    platform = machine({"count": 2}, backbone={"bandwidth": "1GBps"})
    assert "c_backbone_rail_1" not in [link.name for link in platform.links]


def hosts_with(rails, **more):
    links = [{"name": name, "bandwidth": "1GBps", "sharing": "split-duplex"} for name in "abcd"]
    links.append({"name": "half", "bandwidth": "1GBps"})
    return load({"name": "m", "links": links, "hosts": [{"name": "x", "rails": rails},
        {"name": "y"}], "routes": [{"from": "x", "to": "y", "via": [{"up": "a"}, {"up": "c"}]}],
        **more})  # fmt: skip


@pytest.mark.parametrize(
    ("rails", "message"),
    [
        ({"links": [["a", "z"]]}, 'expected a link, got "z"'),
        ({"links": [["a", "a"]]}, 'expected each link once, got "a" again'),
        ({"links": [["a", "b"], ["c", "b"]]}, 'expected each link once, got "b" again'),
        ({"links": [["a", "half"]]}, "to be split-duplex both, or neither"),
        ({"links": [["a", "b"], ["c"]]}, "expected lists of equal length"),
        ({"links": []}, "expected lists of equal length"),
        ({"links": [["a"]]}, "expected 2 to 64 rails, got 1"),
        ({"count": 2}, 'expected the key "links"'),
        ({"count": 3, "links": [["a", "b"]]}, "rails.count: expected 2"),
    ],
)
def test_wrong_rails_of_a_host(rails, message):
    with pytest.raises(UsageError) as error:
        hosts_with(rails)
    assert message in str(error.value) and "hosts[0].rails" in str(error.value)


def test_a_host_names_the_links_of_its_rails():
    platform = hosts_with({"links": [["a", "b"], ["c", "d"]], "choice": "by-core"})
    found = {link.name: other.name for link, other in platform.hosts[0].rails.swaps[1].items()}
    assert found == {"a_UP": "b_UP", "a_DOWN": "b_DOWN", "c_UP": "d_UP", "c_DOWN": "d_DOWN"}
    assert platform.hosts[1].rails is None
    keys = yaml.safe_load(dump(platform.definition))
    assert keys["hosts"][0]["rails"] == {"choice": "by-core", "links": [["a", "b"], ["c", "d"]]}


def test_show_has_a_line_of_rails_and_simgrid_has_none():
    platform = machine({"count": 4, "choice": "by-rank", "stripe_from": "16KiB"})
    line = "4 rails, choice by-rank (the ranks of a host in turn), striped from 16KiB on"
    assert line in show(platform).splitlines()
    assert describe(platform)["rails"] == [line]
    assert leaves_out(platform.definition) == ["rails but the first of each host"]
    assert "rail" not in dump_xml(platform.definition)
    assert describe(load("fat-tree"))["rails"] == []


def test_the_page_has_all_rules():
    from pathlib import Path

    page = Path(__file__).parents[2] / "docs" / "reference" / "rails.md"
    text = page.read_text()
    assert [name for name in CHOICES if f"`{name}`" not in text] == []


def test_a_cluster_without_rails_has_the_links_it_had():
    plain = load({"name": "m", "clusters": [
        {key: value for key, value in cluster({}).items() if key != "rails"}]})  # fmt: skip
    assert all(host.rails is None for host in plain.hosts)
    assert not [link for link in plain.links if "rail" in link.name]
    assert read("fat-tree").root.members[0].rails is None
