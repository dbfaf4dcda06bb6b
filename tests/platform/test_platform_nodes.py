"""Descriptions of the inside of computers: the keys, the errors, the output of show."""

import json
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.errors import UsageError
from pysmpi.platform import load
from pysmpi.platform.check import describe, show
from pysmpi.platform.dump import dump
from pysmpi.platform.loader import read
from pysmpi.platform.node_description import ACCESSES, LIKE, Curve
from pysmpi.platform.node_show import node_keys
from pysmpi.platform.placement import place

DESCRIBED = ["multicore-cluster", "novascale", "opteron-6272", "xeon-e5-2650", "xeon-phi-5110p"]

FILE = """\
name: p
nodes:
  - name: n
    cores: 8
    sockets: 2
    numa: 4
    caches:
      - {level: 1, size: 32KiB}
      - {level: 2, size: 1MiB, cores: 2, bandwidth: 40GBps}
      - {level: 3, size: 8MiB, cores: 4}
    distances:
      - {name: socket, cores: 4}
      - {name: node, cores: 8, bandwidth: 10GBps}
    memory: {bandwidth: 20GBps}
    curves:
      - {access: LHM, points: {32KiB: 40GBps, 8MiB: 20GBps}}
      - {access: SHM, points: {32KiB: 30GBps}}
      - {access: SHS, distance: socket, points: {32KiB: 10GBps}}
      - {access: LMM, distance: socket, points: {32KiB: 12GBps}}
      - {access: LMM, distance: node, points: {32KiB: 6GBps}}
      - {access: LMI, points: {32KiB: 9GBps}}
      - {access: SMI, points: {32KiB: 5GBps}}
    overlap: {4KiB: 0.5}
    latencies:
      - {access: LHM, time: 2ns}
      - {access: LMM, distance: node, time: 90ns}
    contention: {base: 1ns, slope: 2ns}
    streams: [{state: E, per_line: 76ns, start: 1us, amortized: 900ns}]
    packing: {node: 1ns, network: 2ns}
hosts:
  - {name: a, speed: 1Gf, node: n}
"""


@pytest.fixture
def platform_of(tmp_path):
    def load_text(text):
        path = tmp_path / "p.yaml"
        path.write_text(text, encoding="utf-8")
        return load(path)

    return load_text


def test_a_host_has_the_inside_that_it_names(platform_of):
    host = platform_of(FILE).hosts[0]
    node = host.node
    assert (host.cores, host.sockets) == (8, 2)
    assert [node.numa_of(core) for core in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [node.distance(0, core) for core in (0, 1, 3, 4, 7)] == [-1, 0, 0, 1, 1]
    assert node.contention == (1e-9, 2e-9)
    assert node.streams["E"].per_line == pytest.approx(76e-9)
    assert [slot.core for slot in place(platform_of(FILE), 3, None, "socket")] == [0, 4, 1]


def test_a_curve_is_linear_in_the_logarithm_of_the_size(platform_of):
    node = platform_of(FILE).hosts[0].node
    sizes = (1, 32 << 10, 512 << 10, 8 << 20, 1 << 30)
    assert [node.throughput("LHM", -1, size) for size in sizes] == pytest.approx(
        [40e9, 40e9, 30e9, 20e9, 20e9]
    )


@given(st.dictionaries(st.integers(1, 1 << 40), st.floats(1, 1e12), min_size=1),
       st.integers(1, 1 << 41))  # fmt: skip
def test_a_curve_stays_between_its_neighbouring_points(points, size):
    sizes = tuple(sorted(points))
    curve = Curve(sizes, tuple(points[s] for s in sizes))
    below = max((s for s in sizes if s <= size), default=sizes[0])
    above = min((s for s in sizes if s >= size), default=sizes[-1])
    low, high = sorted((points[below], points[above]))
    assert low * (1 - 1e-9) <= curve.at(size) <= high * (1 + 1e-9)


def test_what_is_not_given_is_taken_from_what_is_most_like_it(platform_of):
    node = platform_of(FILE).hosts[0].node
    assert node.curve("LMM", 1) is node.curves["LMM", 1]
    assert node.curve("LMS", 1) is node.curves["LMM", 1]
    assert node.curve("SHO", 1) is node.curves["SHS", 0]
    assert node.curve("SMM", 0) is node.curves["LMM", 0]
    assert node.latency("LMM", 0) == node.latency("LMM", 1)
    for access in ACCESSES:
        assert node.curve(access, 0)
    assert set(LIKE) <= set(ACCESSES)


def test_a_node_that_ships_can_be_named_in_any_file(platform_of):
    platform = platform_of(
        "name: c\nclusters:\n- {name: c, hosts: 'c[0-3]', speed: 1Gf, node: xeon-e5-2650, "
        "link: {bandwidth: 1GBps}}\n"
    )
    assert [host.cores for host in platform.hosts] == [16] * 4
    assert platform.hosts[0].node == load("xeon-e5-2650").hosts[0].node


WRONG = {
    "unknown key": ("numa: 4", "nmua: 4", "nodes[0].nmua:", 'did you mean "numa"?'),
    "sockets": ("sockets: 2", "sockets: 3", "nodes[0].sockets:", "divides 8 cores"),
    "level": ("level: 2", "level: 4", "nodes[0].caches[1].level:", "expected level 2, got 4"),
    "sharers": ("size: 1MiB, cores: 2", "size: 1MiB, cores: 3", "caches[1].cores:", "divides 8"),
    "fewer sharers": ("size: 8MiB, cores: 4", "size: 8MiB, cores: 1", "caches[2].cores:",
                      "multiple of the 2 cores"),
    "last distance": ("node, cores: 8, bandwidth: 10GBps", "node, cores: 4", "nodes[0].distances:",
                      "join all 8 cores, got 4"),
    "access": ("access: LMI", "access: LMX", "curves[5].access:", 'got "LMX"'),
    "missing curve": ("access: SMI", "access: SMM", "nodes[0].curves:", "got no SMI"),
    "twice": ("LMM, distance: node, points", "LMM, distance: socket, points",
              "curves[4].access:", "got it twice"),
    "distance of a hit": ("{access: LHM, points", "{access: LHM, distance: node, points",
                          "curves[0].distance:", "concerns no other core"),
    "distance": ("SHS, distance: socket", "SHS, distance: far", "curves[2].distance:",
                 'one of socket, node, got "far"'),
    "sizes": ("32KiB: 40GBps, 8MiB", "32KiB: 40GBps, 8KiB", "curves[0].points.8KiB:", "increase"),
    "unit": ("8MiB: 20GBps", "8MiB: 20", "curves[0].points.8MiB:", "with its unit"),
    "no throughput": ("8MiB: 20GBps", "8MiB: 0", "curves[0].points.8MiB:", "above 0"),
    "no points": ("points: {32KiB: 30GBps}", "points: {}", "curves[1].points:", "at least one"),
    "overlap": ("4KiB: 0.5", "4KiB: 1.5", "nodes[0].overlap.4KiB:", "from 0 to 1"),
    "state": ("state: E", "state: X", "streams[0].state:", 'got "X"'),
    "node": ("node: n}", "node: xeon-e5-265}", "hosts[0].node:", 'did you mean "xeon-e5-2650"?'),
    "cores twice": ("node: n}", "node: n, cores: 4}", "hosts[0].cores:", "node n says it"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_line_with_its_place(platform_of, wrong):
    before, after, *said = wrong
    assert before in FILE
    with pytest.raises(UsageError) as caught:
        platform_of(FILE.replace(before, after))
    message = str(caught.value)
    assert "\n" not in message
    assert "p.yaml:" in message
    for text in said:
        assert text in message


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_description_is_written_as_it_is_read(name, tmp_path):
    path = tmp_path / "again.yaml"
    path.write_text(dump(read(name)))
    there, again = load(name).hosts[0].node, load(path).hosts[0].node
    assert replace(again, where="") == replace(there, where="")
    keys = yaml.safe_load(yaml.safe_dump(node_keys(there)))
    assert keys["cores"] == there.cores


@pytest.mark.parametrize("name", DESCRIBED)
def test_show_tells_what_is_inside(name):
    node = load(name).hosts[0].node
    text = show(load(name))
    assert f"node {node.name}: {node.cores} cores" in text
    for distance in node.distances:
        assert f"distance {distance.name}:" in text
    facts = json.loads(json.dumps(describe(load(name))))
    assert [entry["name"] for entry in facts["nodes"]] == [node.name]
    assert len(facts["nodes"][0]["caches"]) == len(node.caches)


def test_the_machines_are_those_of_the_papers():
    facts = {name: (load(name).hosts[0].node, len(load(name).hosts)) for name in DESCRIBED}
    assert {name: (node.cores, node.sockets, len(node.distances), hosts)
            for name, (node, hosts) in facts.items()} == {
        "multicore-cluster": (8, 2, 2, 8),
        "novascale": (16, 16, 3, 1),
        "opteron-6272": (64, 4, 4, 1),
        "xeon-e5-2650": (16, 2, 2, 1),
        "xeon-phi-5110p": (60, 1, 1, 1),
    }  # fmt: skip
    # 640 and 192 buffers of 32 KiB fill the last level (Putigny et al., footnote 6).
    assert facts["xeon-e5-2650"][0].caches[-1].size == 640 * 32 * 1024
    assert facts["opteron-6272"][0].caches[-1].size == 192 * 32 * 1024
