"""SimGrid's platform files: contents, and one clear line for each error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.errors import UsageError
from pysmpi.platform import load

PLATFORMS = Path(__file__).parent.parent / "data" / "platforms"


@pytest.fixture
def platform_of(tmp_path):
    """Load a platform from the elements inside <platform>, which begin on line 2."""

    def load_text(inside: str, version: str = "4.1"):
        path = tmp_path / "p.xml"
        path.write_text(f'<platform version="{version}">\n{inside}\n</platform>', encoding="utf-8")
        return load(path)

    return load_text


CLUSTER = '<cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="1us" {}/>'
ZONE = """<zone id="z" routing="Full">
<host id="a" speed="1Gf"/><host id="b" speed="2Gf" core="4"><prop id="rack" value="7"/></host>
<link id="l" bandwidth="1GBps" latency="1us"/>
<link id="s" bandwidth="1GBps" sharing_policy="SPLITDUPLEX"/>
{}
</zone>"""


def test_reads_options_hosts_and_links():
    platform = load(PLATFORMS / "graphene.hybrid.xml")
    assert platform.name == "graphene.hybrid"
    assert platform.source.endswith("graphene.hybrid.xml")
    assert platform.config["smpi/send-is-detached-thresh"] == "327680"
    assert platform.config["smpi/bw-factor"].startswith("0:0.400977;")
    assert [host.name for host in platform.hosts[37:41]] == [f"graphene-{i}" for i in range(37, 41)]
    assert {host.speed for host in platform.hosts} == {3.542e9}
    links = {link.name: link for link in platform.links}
    assert links["bb1_UP"].opposite is links["bb1_DOWN"]
    assert links["lim1"].opposite is None
    assert links["cab1_link_0_limiter"].bandwidth == 187.5e6
    assert links["cab4_link_143_loopback"].sharing == "fatpipe"


def test_reads_host_properties_cores_and_pstates(platform_of):
    platform = load(PLATFORMS / "nested.xml")
    e1 = platform.host("e1")
    assert (e1.speed, e1.speeds, e1.cores) == (1e9, (3e9, 1e9), 2)
    assert dict(e1.properties) == {"rack": "r7"}
    properties = platform_of(
        CLUSTER.replace("/>", '><prop id="watts" value=""/></cluster>').format("")
    )
    assert dict(properties.hosts[3].properties) == {"watts": ""}


def test_old_names_of_elements_are_read(platform_of):
    platform = platform_of(
        '<AS id="root" routing="Full">'
        + CLUSTER.format('sharing_policy="FULLDUPLEX"')
        + CLUSTER.replace('"c"', '"d"').replace('"n"', '"m"').format("")
        + '<link id="l" bandwidth="1GBps"/>'
        '<ASroute src="c" dst="d" gw_src="nc_router" gw_dst="md_router">'
        '<link_ctn id="l"/></ASroute>'
        "</AS>",
        version="4",
    )
    route = platform.route(platform.host("n0"), platform.host("m0"))
    assert [link.name for link in route.links] == ["c_link_0_UP", "l", "d_link_0_DOWN"]


WRONG = {
    "unknown element": (
        ZONE.format("<hots id='c'/>"),
        "p.xml:6: <hots id=",
        "did you mean <host>?",
    ),
    "unknown attribute": (CLUSTER.format('limiter="1GBps"'), "p.xml:2:", '"limiter"; did you mean'),
    "missing attribute": ('<zone id="z"></zone>', "p.xml:2:", 'expected the attribute "routing"'),
    "unit missing": (
        CLUSTER.replace("1us", "1").format(""),
        "p.xml:2:",
        "lat: expected a time with",
    ),
    "bad unit": (
        CLUSTER.replace("1GBps", "1GB").format(""),
        "p.xml:2:",
        "bw: expected a bandwidth",
    ),
    "negative": (CLUSTER.replace("1GBps", "-1GBps").format(""), "p.xml:2:", 'got "-1GBps"'),
    "zero bandwidth": (CLUSTER.replace("1GBps", "0").format(""), "p.xml:2:", "above 0"),
    "zero speed": (CLUSTER.replace("1Gf", "0").format(""), "p.xml:2:", "speed above 0"),
    "zero cores": (CLUSTER.format('core="0"'), "p.xml:2:", "core: expected a whole number above 0"),
    "bad radical": (CLUSTER.replace("0-3", "3-0").format(""), "p.xml:2:", "radical: expected"),
    "bad topology": (
        CLUSTER.format('topology="RING"'),
        "p.xml:2:",
        "topology: expected one of DRAGONFLY, FAT_TREE, FLAT",
    ),
    "no parameters": (CLUSTER.format('topology="TORUS"'), "p.xml:2:", "expected topo_parameters"),
    "wrong size": (
        CLUSTER.format('topology="TORUS" topo_parameters="2,3"'),
        "p.xml:2:",
        "expected 6 hosts for this torus, got 4",
    ),
    "bad shape": (
        CLUSTER.format('topology="FAT_TREE" topo_parameters="2;2,2;1,1"'),
        "p.xml:2:",
        "topo_parameters: expected e.g.",
    ),
    "levels": (
        CLUSTER.format('topology="FAT_TREE" topo_parameters="2;4;1;1"'),
        "p.xml:2:",
        "expected 2 numbers",
    ),
    "too many groups": (
        CLUSTER.format('topology="DRAGONFLY" topo_parameters="4,1;1,1;1,1;1"'),
        "p.xml:2:",
        "expected at most 1 groups",
    ),
    "parameters of flat": (CLUSTER.format('topo_parameters="2"'), "p.xml:2:", "FLAT topology"),
    "loopback latency alone": (CLUSTER.format('loopback_lat="1us"'), "p.xml:2:", "loopback_bw"),
    "backbone latency alone": (CLUSTER.format('bb_lat="1us"'), "p.xml:2:", "bb_bw"),
    "profile": (
        ZONE.format('<host id="c" speed="1Gf" state_file="x"/>'),
        "p.xml:6:",
        "x: cannot be read: No such file or directory",
    ),
    "connection to no trace": (
        '<zone id="z" routing="Full"><host id="c" speed="1Gf"/></zone>'
        '<trace_connect kind="SPEED" trace="t" element="c"/>',
        "p.xml:2:",
        'trace: expected the id of a <trace>, got "t"',
    ),
    "disk": (
        ZONE.format('<host id="c" speed="1Gf"><disk id="d" read_bw="0" write_bw="1Bps"/></host>'),
        "p.xml:6:",
        "read_bw: expected a bandwidth above 0",
    ),
    "old disk": (
        ZONE.format('<host id="c" speed="1Gf"><mount storageId="d" name="/"/></host>'),
        "p.xml:6:",
        "disks as SimGrid 3.31",
    ),
    "peer elsewhere": (
        ZONE.format('<peer id="c" speed="1Gf" bw_in="1Bps" bw_out="1Bps" coordinates="1 2 3"/>'),
        "p.xml:6:",
        'expected only in a zone with routing="Vivaldi"',
    ),
    "bad coordinates": (
        ZONE.format('<router id="r" coordinates="1 2 nan"/>'),
        "p.xml:6:",
        'coordinates: expected three numbers such as "25.5 9.4 1.4", got "1 2 nan"',
    ),
    "wifi": ('<zone id="z" routing="Wifi"/>', "p.xml:2:", "not supported"),
    "wifi link": (
        ZONE.format('<link id="w" bandwidth="1GBps" sharing_policy="WIFI"/>'),
        "p.xml:6:",
        "not supported",
    ),
    "routing": ('<zone id="z" routing="Fool"/>', "p.xml:2:", 'got "Fool"'),
    "actor": ('<actor host="a" function="f"/>', "p.xml:2:", "<actor> is not supported"),
    "empty route": (ZONE.format('<route src="a" dst="b"/>'), "p.xml:6:", "at least one link"),
    "unknown link": (
        ZONE.format('<route src="a" dst="b"><link_ctn id="ll"/></route>'),
        'p.xml:6: <link_ctn id="ll">',
        'did you mean "l"?',
    ),
    "direction missing": (
        ZONE.format('<route src="a" dst="b"><link_ctn id="s"/></route>'),
        "p.xml:6:",
        "expected a direction",
    ),
    "direction too much": (
        ZONE.format('<route src="a" dst="b"><link_ctn id="l" direction="UP"/></route>'),
        "p.xml:6:",
        "expected no direction",
    ),
    "bad direction": (
        ZONE.format('<route src="a" dst="b"><link_ctn id="s" direction="LEFT"/></route>'),
        "p.xml:6:",
        'got "LEFT"',
    ),
    "route to nowhere": (
        ZONE.format('<route src="a" dst="c"><link_ctn id="l"/></route>'),
        "p.xml:6:",
        'got "c", which is none',
    ),
    "route twice": (
        ZONE.format(
            '<route src="a" dst="b"><link_ctn id="l"/></route>\n'
            '<route src="b" dst="a"><link_ctn id="l"/></route>'
        ),
        "p.xml:7:",
        "got a second one",
    ),
    "symmetrical": (
        ZONE.format('<route src="a" dst="b" symmetrical="maybe"><link_ctn id="l"/></route>'),
        "p.xml:6:",
        'got "maybe"',
    ),
    "host twice": (ZONE.format('<host id="a" speed="1Gf"/>'), "p.xml:6:", "already a host"),
    "link twice": (ZONE.format('<link id="s_UP" bandwidth="1GBps"/>'), "p.xml:6:", '"s_UP" again'),
    "pstate": (ZONE.format('<host id="c" speed="1Gf" pstate="1"/>'), "p.xml:6:", "from 0 to 0"),
    "gateway outside": (
        ZONE.replace('<link id="l"', CLUSTER.format("") + '<link id="l"').format(
            '<zoneRoute src="c" dst="a" gw_src="b" gw_dst="a"><link_ctn id="l"/></zoneRoute>'
        ),
        "p.xml:6:",
        "expected a gateway inside zone c",
    ),
    "backbone elsewhere": (
        ZONE.format('<backbone id="bb" bandwidth="1GBps" latency="0"/>'),
        "p.xml:6:",
        'only in a zone with routing="Cluster"',
    ),
    "text": (ZONE.format("hello"), "p.xml:2:", 'expected no text inside, got "hello"'),
    "nothing": ("", "p.xml:1:", "at least one zone or cluster"),
    "no hosts": ('<zone id="z" routing="Full"><router id="r"/></zone>', "p.xml:", "one host"),
    "late config": (CLUSTER.format("") + "\n<config/>", "p.xml:3:", "before every zone"),
}


@pytest.mark.parametrize(("inside", "where", "what"), WRONG.values(), ids=WRONG)
def test_one_line_says_where_and_what(platform_of, inside, where, what):
    with pytest.raises(UsageError) as caught:
        platform_of(inside)
    message = str(caught.value)
    assert where in message
    assert what in message
    assert "expected" in message or "not supported" in message
    assert "\n" not in message


@pytest.mark.parametrize("version", ["3", "5", "4.10", ""])
def test_other_versions_are_refused(platform_of, version):
    with pytest.raises(UsageError, match="version: expected"):
        platform_of(CLUSTER.format(""), version=version)


def test_another_root_is_refused(tmp_path):
    path = tmp_path / "svg.xml"
    path.write_text("<svg/>", encoding="utf-8")
    with pytest.raises(UsageError, match=r"svg\.xml:1: <svg>: expected <platform>"):
        load(path)


@pytest.mark.parametrize("text", ["", "name: yaml", "\x00\x01", "<platform", "<a></b>"])
def test_what_is_no_xml_is_refused(tmp_path, text):
    path = tmp_path / "bad.xml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"bad\.xml:\d+: expected well-formed XML"):
        load(path)


def test_entities_are_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x", encoding="utf-8")
    path = tmp_path / "entity.xml"
    path.write_text(
        f'<!DOCTYPE p [<!ENTITY e SYSTEM "{secret}">]>\n<platform version="4.1">&e;</platform>',
        encoding="utf-8",
    )
    with pytest.raises(UsageError):
        load(path)


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_a_file_cut_anywhere_is_one_usage_error(tmp_path_factory, cut):
    whole = (PLATFORMS / "nested.xml").read_bytes()
    path = tmp_path_factory.mktemp("cut") / "cut.xml"
    path.write_bytes(whole[: cut % (len(whole.rstrip()) - 1)])
    with pytest.raises(UsageError, match=r"cut\.xml:\d+"):
        load(path)
