"""pysmpi's own platform files: the keys, the errors, and that XML converts without loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.errors import UsageError
from pysmpi.platform import load
from pysmpi.platform.check import show, summary
from pysmpi.platform.dump import dump
from pysmpi.platform.loader import read
from pysmpi.platform.profiles import KINDS

PLATFORMS = Path(__file__).parent.parent / "data" / "platforms"


@pytest.fixture
def platform_of(tmp_path):
    def load_text(text: str):
        path = tmp_path / "p.yaml"
        path.write_text(text, encoding="utf-8")
        return load(path)

    return load_text


MACHINE = """\
name: two
config: {smpi/os: "0:0:0"}
hosts:
  - name: a
    speed: [2Gf, 1Gf]
    pstate: 1
    cores: 4
    sockets: 2
    properties: {rack: 7}
  - {name: b, speed: 1Gf}
links:
  - {name: wire, bandwidth: 10Gbps, latency: 2us, sharing: split-duplex}
  - {name: bus, bandwidth: 1GBps, sharing: fatpipe}
routes:
  - {from: a, to: b, via: [bus, {up: wire}]}
"""


def test_reads_hosts_links_and_routes(platform_of):
    platform = platform_of(MACHINE)
    a, b = platform.hosts
    assert (a.speed, a.speeds, a.cores, a.sockets) == (1e9, (2e9, 1e9), 4, 2)
    assert a.properties["rack"] == "7"
    assert platform.config == {"smpi/os": "0:0:0"}
    assert [link.name for link in platform.route(a, b).links] == ["bus", "wire_UP"]
    assert [link.name for link in platform.route(b, a).links] == ["wire_DOWN", "bus"]
    assert platform.route(a, b).latency == 2e-6


def test_hosts_come_in_the_order_of_the_file(platform_of):
    platform = platform_of(
        "name: order\n"
        "zones:\n"
        "- {name: z, hosts: [{name: h, speed: 1Gf}]}\n"
        "- cluster: {name: c, hosts: 'c[2,0-1]', speed: 1Gf, link: {bandwidth: 1GBps}}\n"
        "- {name: y, hosts: [{name: i, speed: 1Gf}]}\n"
        "clusters:\n- {name: d, hosts: 'd[0]', speed: 1Gf, link: {bandwidth: 1GBps}}\n"
    )
    assert [host.name for host in platform.hosts] == ["h", "c2", "c0", "c1", "i", "d0"]


def test_a_star_attaches_its_members_to_a_centre(platform_of):
    platform = platform_of(
        "name: star\nrouting: star\n"
        "clusters:\n- {name: c, hosts: 'c[0-1]', speed: 1Gf, link: {bandwidth: 1GBps}}\n"
        "hosts:\n- {name: h, speed: 1Gf}\n"
        "links:\n- {name: s, bandwidth: 1GBps, sharing: split-duplex}\n"
        "- {name: t, bandwidth: 1GBps}\n"
        "attach:\n- {node: c, up: [{up: s}]}\n- {node: h, up: [t], down: [t]}\n"
    )
    c0, _, h = platform.hosts
    assert [link.name for link in platform.route(c0, h).links] == ["c_link_0_UP", "s_UP", "t"]
    assert [link.name for link in platform.route(h, c0).links] == ["t", "s_DOWN", "c_link_0_DOWN"]
    assert [link.name for link in platform.route(h, h).links] == ["t"]


def test_merged_mappings_spare_repetition(platform_of):
    platform = platform_of(
        "name: m\nclusters:\n"
        "- &c {name: a, hosts: 'a[0]', speed: 1Gf, cores: 3, link: {bandwidth: 1GBps}}\n"
        "- {<<: *c, name: b, hosts: 'b[0]', speed: 2Gf}\n"
    )
    assert [(h.name, h.speed, h.cores) for h in platform.hosts] == [("a0", 1e9, 3), ("b0", 2e9, 3)]


WRONG = {
    "unknown key": (MACHINE + "rutes: []\n", "p.yaml:16: rutes: expected a key", 'mean "routes"?'),
    "unknown inner key": (
        MACHINE.replace("sharing: fatpipe", "shared: yes"),
        "p.yaml:13: links[1].shared:",
        "expected a key among name, bandwidth",
    ),
    "key twice": (MACHINE + "name: again\n", "p.yaml:16: name:", "expected once, got it twice"),
    "missing key": (MACHINE.replace("name: two\n", ""), "p.yaml:1:", 'expected the key "name"'),
    "bad unit": (
        MACHINE.replace("10Gbps", "10 G"),
        "p.yaml:12: links[0].bandwidth:",
        'expected a bandwidth, e.g. "10Gbps" or "125MBps", got "10 G"',
    ),
    "no unit": (MACHINE.replace("2us", "2"), "p.yaml:12: links[0].latency:", "with its unit"),
    "negative": (MACHINE.replace("10Gbps", "-10Gbps"), "links[0].bandwidth:", 'got "-10Gbps"'),
    "zero": (MACHINE.replace("10Gbps", "0"), "links[0].bandwidth:", "above 0"),
    "nothing": (
        MACHINE.replace("10Gbps", ""),
        "links[0].bandwidth:",
        "expected a text, got nothing",
    ),
    "a list": (MACHINE.replace("10Gbps", "[1]"), "links[0].bandwidth:", "got a list"),
    "no list": (MACHINE.replace("[bus, {up: wire}]", "bus"), "routes[0].via:", 'a list, got "bus"'),
    "no mapping": (MACHINE + "clusters: [a]\n", "p.yaml:16: clusters[0]:", "expected a mapping"),
    "sharing": (MACHINE.replace("fatpipe", "fat"), "links[1].sharing:", "shared, fatpipe, split"),
    "sockets": (
        MACHINE.replace("sockets: 2", "sockets: 3"),
        "hosts[0].sockets:",
        "divides 4 cores",
    ),
    "cores": (MACHINE.replace("cores: 4", "cores: four"), "p.yaml:7: hosts[0].cores:", '"four"'),
    "pstate": (MACHINE.replace("pstate: 1", "pstate: 2"), "hosts[0].pstate:", "from 0 to 1"),
    "no speed": (MACHINE.replace("[2Gf, 1Gf]", "[]"), "hosts[0].speed:", "at least one speed"),
    "two ways": (MACHINE.replace("{up: wire}", "{up: wire, down: wire}"), "via[1]:", "up and down"),
    "no direction": (MACHINE.replace("{up: wire}", "wire"), "routes[0].via[1]:", "a direction"),
    "unknown link": (MACHINE.replace("[bus,", "[buss,"), "routes[0].via[0]:", 'mean "bus"?'),
    "unknown host": (MACHINE.replace("to: b", "to: c"), "p.yaml:15: routes[0]:", 'got "c"'),
    "symmetric": (
        MACHINE.replace("to: b,", "to: b, symmetric: 1,"),
        "routes[0].symmetric:",
        'true or false, got "1"',
    ),
    "routing": ("name: x\nrouting: flat\n", "p.yaml:2: routing:", 'got "flat"'),
    "pattern": (
        "name: x\nclusters:\n- {name: c, hosts: c, speed: 1Gf, link: {bandwidth: 1GBps}}\n",
        "p.yaml:3: clusters[0].hosts:",
        'e.g. "node-[0-63]", got "c"',
    ),
    "topology": (
        "name: x\nclusters:\n- {name: c, hosts: 'c[0-3]', speed: 1Gf, link: {bandwidth: 1GBps}, "
        "topology: {kind: torus, dimension: [4]}}\n",
        "clusters[0].topology.dimension:",
        'mean "dimensions"?',
    ),
    "dimensions": (
        "name: x\nclusters:\n- {name: c, hosts: 'c[0-3]', speed: 1Gf, link: {bandwidth: 1GBps}, "
        "topology: {kind: torus, dimensions: [2, 0]}}\n",
        "clusters[0].topology.dimensions[1]:",
        "above 0",
    ),
    "shape": (
        "name: x\nclusters:\n- {name: c, hosts: 'c[0-3]', speed: 1Gf, link: {bandwidth: 1GBps}, "
        "topology: {kind: fat_tree, children: [4], parents: [1], cables: [1, 1]}}\n",
        "clusters[0].topology:",
        "as many children as parents and cables",
    ),
    "no hosts": ("name: x\n", "p.yaml:", "at least one host"),
    "broken": ("name: [x\n", "p.yaml:", "expected well-formed YAML"),
    "two documents": (MACHINE + "---\nname: y\n", "p.yaml:", "expected well-formed YAML"),
    "empty": ("", "p.yaml:", "got nothing"),
    "a text": ("hello", "p.yaml:1:", 'expected a mapping of keys to values, got "hello"'),
    "itself": ("name: x\nzones: &z\n- {name: y, zones: *z}\n", "p.yaml:", "contains itself"),
    "merged itself": ("name: x\nconfig: &c\n  <<: *c\n", "p.yaml:", "contains itself"),
}


@pytest.mark.parametrize(("text", "where", "what"), WRONG.values(), ids=WRONG)
def test_one_line_says_where_and_what(platform_of, text, where, what):
    with pytest.raises(UsageError) as caught:
        platform_of(text)
    message = str(caught.value)
    assert where in message
    assert what in message
    assert "\n" not in message


def test_other_data_is_refused(tmp_path):
    path = tmp_path / "data.yaml"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(UsageError, match=r"data\.yaml.*expected"):
        load(path)


def same(first, second):
    """Whether two platforms have the same hosts, links, options and routes."""
    assert [h.name for h in first.hosts] == [h.name for h in second.hosts]
    for a, b in zip(first.hosts, second.hosts, strict=True):
        assert (a.speeds, a.speed, a.cores, a.sockets) == (b.speeds, b.speed, b.cores, b.sockets)
        assert dict(a.properties) == dict(b.properties)

    def links(platform):
        return {(li.name, li.bandwidth, li.latency, li.sharing) for li in platform.links}

    assert links(first) == links(second)
    assert first.config == second.config
    step = max(1, len(first.hosts) // 15)
    for i in range(0, len(first.hosts), step):
        for j in range(0, len(first.hosts), step):
            ways = [p.route(p.hosts[i], p.hosts[j]).links for p in (first, second)]
            assert [li.name for li in ways[0]] == [li.name for li in ways[1]]


@pytest.mark.parametrize("path", sorted(PLATFORMS.glob("*.xml")), ids=lambda path: path.stem)
def test_xml_converts_to_yaml_without_loss(path, tmp_path):
    converted = tmp_path / "converted.yaml"
    converted.write_text(dump(read(path)), encoding="utf-8")
    same(load(path), load(converted))


def test_dumping_what_was_dumped_changes_nothing(tmp_path):
    once = dump(read(PLATFORMS / "nested.xml"))
    path = tmp_path / "once.yaml"
    path.write_text(once, encoding="utf-8")
    assert dump(read(path)) == once


@given(st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_a_platform_or_one_usage_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "any.yaml"
    path.write_bytes(data)
    with pytest.raises(UsageError):
        load(path)


@given(st.integers(0, len(MACHINE) - 1), st.sampled_from("{}[]:,-&*\"' \n\tx0"))
@settings(max_examples=100, deadline=None)
def test_one_wrong_character_never_gives_anything_but_a_usage_error(tmp_path_factory, at, char):
    path = tmp_path_factory.mktemp("typo") / "typo.yaml"
    path.write_text(MACHINE[:at] + char + MACHINE[at + 1 :], encoding="utf-8")
    try:
        load(path)
    except UsageError as error:
        assert "\n" not in str(error)


SIX = """\
name: lab
clusters:
  - name: lab
    hosts: node-[0-3]
    cores: 32
    network: {bandwidth: 100Gbps, latency: 1.5us}
"""


def test_six_lines_are_a_machine(platform_of):
    lab = platform_of(SIX)
    first, last = lab.hosts[0], lab.hosts[-1]
    route = lab.route(first, last)
    assert route.latency == 1.5e-6
    assert [link.bandwidth for link in route.links] == [12.5e9, 12.5e9]
    assert (first.speed, first.speeds, first.cores) == (None, (), 32)
    assert lab.route(first, first).links == (lab.loopback,)
    assert lab.loopback.latency == 300e-9
    assert (lab.preset, lab.models, lab.simgrid) == ("neutral", {}, False)
    assert "128 cores of this computer's speed" in summary(lab)
    large = summary(platform_of(SIX.replace("cores: 32", "cores: 512")))
    assert "2,048 cores of this computer's speed" in large


def test_a_link_is_half_of_the_way(platform_of):
    lab = platform_of(SIX.replace("network", "link"))
    assert lab.route(lab.hosts[0], lab.hosts[1]).latency == 3e-6


def test_messages_of_a_host_to_itself_may_cross_its_link(platform_of):
    lab = platform_of(SIX + "    loopback: link\n")
    host = lab.hosts[0]
    assert [li.name for li in lab.route(host, host).links] == ["lab_link_0_UP", "lab_link_0_DOWN"]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        (SIX + "    link: {bandwidth: 1Gbps}\n", ":6: clusters[0].network:", "link or network"),
        (SIX + "    backbone: {bandwidth: 1Gbps}\n", ":6:", "expected link with a backbone"),
        (
            SIX + "    topology: {kind: torus, dimensions: [4]}\n",
            ":6: clusters[0].network:",
            "expected link with a topology",
        ),
        (SIX.replace("    network: {", "    # {"), ":3:", 'the key "link" or "network", got none'),
        (
            SIX.replace(", latency: 1.5us", ""),
            ":6: clusters[0].network:",
            'key "latency", got none',
        ),
        (SIX + "    loopback: network\n", ":7: clusters[0].loopback:", "expected one of link"),
        ("name: x\nhosts:\n- {name: a, pstate: 0}\n", ":3:", "expected none without speeds"),
        (SIX + "models: [hybrid]\n", ":7: models:", "expected a mapping"),
    ],
)
def test_what_is_wrong_with_a_short_file(platform_of, text, where, what):
    with pytest.raises(UsageError) as caught:
        platform_of(text)
    assert where in str(caught.value)
    assert what in str(caught.value)


def test_profiles_are_the_same_wherever_a_file_has_them(tmp_path):
    """After a conversion, too; errors name the line of each file."""
    machine = (
        "name: two\nhosts: [{name: a, speed: 1Gf}, {name: b, speed: 1Gf}]\n"
        "links: [{name: l, bandwidth: 1MBps, latency: 10ms}]\n"
        "routes: [{from: a, to: b, via: [l]}]\n"
    )
    profiles = (
        "profiles:\n- {host: a, speed: {0s: 0.5, 1s: 1}, loop_after: 1s}\n"
        "- {host: b, state: {0s: up, 1s: down}}\n"
        "- {link: l, bandwidth: {0s: 2MBps}}\n- {link: l, latency: {0s: 1ms}}\n"
        "- {link: l, state: {3s: down}}\n"
    )
    path = tmp_path / "p.yaml"
    path.write_text(machine + profiles)
    last = read(path)
    path.write_text(profiles + machine)
    first = read(path)
    path.write_text(dump(last))
    again = read(path)
    assert {profile.kind for profile in last.profiles} == set(KINDS)
    assert last.profiles == first.profiles == again.profiles
    assert first.profiles[0].where != last.profiles[0].where


def test_presets_and_models_are_kept(platform_of, tmp_path):
    text = SIX + "preset: smpi\nmodels:\n  cm02: {network/bandwidth-factor: '0.9'}\n"
    lab = platform_of(text)
    again = tmp_path / "again.yaml"
    again.write_text(dump(lab.definition), encoding="utf-8")
    same(lab, load(again))
    for platform in (lab, load(again)):
        assert platform.preset == "smpi"
        assert platform.models == {"cm02": {"network/bandwidth-factor": "0.9"}}
        assert show(platform).endswith(
            "\npreset smpi\noption of model cm02 network/bandwidth-factor: 0.9"
        )
