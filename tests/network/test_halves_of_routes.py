"""Plans of routes through the centre of a zone are those of the whole routes."""

from __future__ import annotations

import random
from itertools import product

import pytest

from pysmpi.network.choice import choose
from pysmpi.platform.loader import load
from pysmpi.platform.model import Platform

CLUSTER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="all" routing="Floyd">
    <cluster id="one" prefix="a-" suffix="" radical="0-3" speed="1Gf" bw="125MBps" lat="24us"
             {one}/>
    <cluster id="two" prefix="b-" suffix="" radical="0-2" speed="1Gf" bw="1GBps" lat="5us" {two}/>
    <link id="between" bandwidth="1GBps" latency="1us"/>
    <zoneRoute src="one" dst="two" gw_src="a-one_router" gw_dst="b-two_router">
      <link_ctn id="between"/>
    </zoneRoute>
  </zone>
</platform>
"""
FORMS = {
    "limiters": ('sharing_policy="SPLITDUPLEX" limiter_link="187MBps"', 'loopback_bw="6GBps"'),
    "backbones": ('bb_bw="1GBps" bb_lat="3us"', 'bb_bw="2GBps" bb_lat="1us" loopback_bw="1GBps"'),
    "shared links": ('sharing_policy="SHARED"', 'sharing_policy="FATPIPE"'),
}
INTERNET = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="all" routing="Vivaldi">
    <peer id="a" speed="1Gf" bw_in="1MBps" bw_out="2MBps" coordinates="10 20 1"/>
    <peer id="b" speed="1Gf" bw_in="3MBps" bw_out="4MBps" coordinates="40 60 2"/>
    <peer id="c" speed="1Gf" bw_in="5MBps" bw_out="6MBps" coordinates="0 0 0"/>
  </zone>
</platform>
"""

ONE_WAY = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="all" routing="Full">
    {hosts}
    {links}
    {routes}
  </zone>
</platform>
"""
# The links of the routes from a host to another, which need not be those of the way back.
ROUTES = {
    "a b": "1", "b a": "2 3 4",
    "a c": "1 2", "c a": "3 4",
    "a d": "1", "d a": "2 3",
    "b c": "1 2", "c b": "2 3",
    "b d": "1", "d b": "1",
    "c d": "1 2 3 4", "d c": "4 3 2 1",
}  # fmt: skip


def one_way() -> str:
    """A machine with other routes back than forth, in several combinations."""
    routes = []
    for ends, links in ROUTES.items():
        src, dst = ends.split()
        crossed = "".join(f'<link_ctn id="{link}"/>' for link in links.split())
        routes.append(f'<route src="{src}" dst="{dst}" symmetrical="NO">{crossed}</route>')
    return ONE_WAY.format(
        hosts="".join(f'<host id="{name}" speed="1Gf"/>' for name in "abcd"),
        links="".join(f'<link id="{name}" bandwidth="1GBps" latency="1us"/>' for name in "1234"),
        routes="".join(routes),
    )


def described(platform: Platform, crosstraffic: str) -> list[tuple[object, ...]]:
    """The figures of the plans between all pairs of hosts."""
    model, settings = choose(platform, {"network/crosstraffic": crosstraffic})
    hosts = list(platform.hosts)
    transport = model.build(platform, hosts, settings)
    found = []
    for source, destination in product(range(len(hosts)), repeat=2):
        plan = transport.plan(source, destination, 5000)
        crossed = [constraint.name for constraint in plan.constraints]
        figures = plan.latency, plan.volume, plan.bound, plan.penalty, plan.factor
        found.append((*figures, crossed, list(plan.weights)))
    return found


@pytest.mark.parametrize("crosstraffic", ["yes", "no"])
@pytest.mark.parametrize("form", [*FORMS, "distances"])
def test_halves_make_the_plans_of_whole_routes(tmp_path, monkeypatch, form, crosstraffic):
    path = tmp_path / "machine.xml"
    if form in FORMS:
        one, two = FORMS[form]
        path.write_text(CLUSTER.format(one=one, two=two))
    else:
        path.write_text(INTERNET)
    halves = described(load(path), crosstraffic)
    monkeypatch.setattr(Platform, "halves", lambda self, host: None)
    assert halves == described(load(path), crosstraffic)


@pytest.mark.parametrize("form", [*FORMS, "one way"])
def test_weights_are_the_uses_of_shared_links(tmp_path, form):
    """Once on the way forth, a twentieth on the way back, whatever the pairs before."""
    path = tmp_path / "machine.xml"
    if form in FORMS:
        one, two = FORMS[form]
        path.write_text(CLUSTER.format(one=one, two=two))
    else:
        path.write_text(one_way())
    platform = load(path)
    model, settings = choose(platform, {"network/crosstraffic": "yes"})
    hosts = list(platform.hosts)
    pairs = list(product(range(len(hosts)), repeat=2))
    draw = random.Random(form)
    for _ in range(30):
        draw.shuffle(pairs)
        transport = model.build(platform, hosts, settings)
        for source, destination in pairs:
            expected: dict[str, float] = {}
            for weight, ends in ((1.0, (source, destination)), (0.05, (destination, source))):
                for link in platform.way(*(hosts[end] for end in ends)):
                    if link.sharing == "shared":
                        expected[link.name] = expected.get(link.name, 0.0) + weight
            plan = transport.plan(source, destination, 1000)
            names = [constraint.name for constraint in plan.constraints]
            assert dict(zip(names, plan.weights, strict=True)) == expected


@pytest.mark.parametrize("weight", ["0", "20537", "8775"])
@pytest.mark.parametrize("form", FORMS)
def test_the_penalty_of_a_flow_is_its_latency_and_the_weight_over_each_bandwidth(
    tmp_path, form, weight
):
    """The round-trip time of SimGrid's models: `network/weight-S` is in bytes."""
    path = tmp_path / "machine.xml"
    one, two = FORMS[form]
    path.write_text(CLUSTER.format(one=one, two=two))
    platform = load(path)
    model, settings = choose(platform, {"network/weight-S": weight})
    hosts = list(platform.hosts)
    transport = model.build(platform, hosts, settings)
    for source, destination in product(range(len(hosts)), repeat=2):
        if source != destination:
            route = platform.route(hosts[source], hosts[destination])
            expected = sum(link.latency + float(weight) / link.bandwidth for link in route.links)
            assert transport.plan(source, destination, 1000).penalty == pytest.approx(expected)


def test_a_member_of_a_cluster_has_two_halves(tmp_path):
    path = tmp_path / "machine.xml"
    path.write_text(CLUSTER.format(one=FORMS["backbones"][0], two=""))
    platform = load(path)
    zone, up, down = platform.halves(platform.host("a-1"))
    assert zone is platform.host("a-1").zone
    assert [link.name for link in up] == ["one_link_1_UP", "one_backbone"]
    assert [link.name for link in down] == ["one_backbone", "one_link_1_DOWN"]
