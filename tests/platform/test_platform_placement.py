"""Placement of ranks: by core, round robin, by socket, and by a host file."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.errors import UsageError
from pysmpi.platform import load
from pysmpi.platform.mappings import EXPECTED_RANKINGS, MAPPINGS
from pysmpi.platform.placement import place

MACHINE = """\
name: three
hosts:
- {name: a, speed: 1Gf, cores: 4, sockets: 2}
- {name: b, speed: 1Gf, cores: 2}
- {name: "c:0", speed: 1Gf}
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    path = tmp_path_factory.mktemp("machine") / "three.yaml"
    path.write_text(MACHINE, encoding="utf-8")
    return load(path)


@pytest.fixture
def hostfile(tmp_path):
    def write(text: str):
        path = tmp_path / "hosts"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def spelled(slots):
    return " ".join(f"{slot.host.name}{slot.core}" for slot in slots)


@pytest.mark.parametrize(
    ("map_by", "slots"),
    [
        (None, "a0 a1 a2 a3 b0 b1 c:00 a0 a1"),
        ("node", "a0 b0 c:00 a1 b1 c:00 a2 b0 c:00"),
        ("core", "a0 a1 a2 a3 b0 b1 c:00 a0 a1"),
        ("socket", "a0 a2 b0 c:00 a1 a3 b1 c:00 a0"),
    ],
)
def test_without_a_host_file(machine, map_by, slots):
    assert spelled(place(machine, 9, map_by=map_by)) == slots


@pytest.mark.parametrize(
    ("text", "map_by", "slots"),
    [
        ("a\nb\na\n", None, "a0 b0 a1"),
        ("b:3\na:2\n", None, "b0 b1 b0 a0 a1"),
        ("# all\nb slots=2  # both cores\n\na slots = 2\n", None, "b0 b1 a0 a1"),
        ("\ufeffa : 2\r\nb\r\n", None, "a0 a1 b0"),
        ("b:2\na:3\n", "node", "b0 a0 b1 a1 a2"),
        ("a:1\nb:1\na:2\n", "core", "a0 a1 a2 b0"),
        ("a:3\nb:2\n", "socket", "a0 a2 b0 a1 b1"),
    ],
)
def test_with_a_host_file(machine, hostfile, text, map_by, slots):
    count = len(slots.split())
    path = hostfile(text)
    assert spelled(place(machine, count, path, map_by)) == slots
    with pytest.raises(UsageError, match=rf"expected room for {count + 1} ranks, got {count} on"):
        place(machine, count + 1, path, map_by)


def test_fewer_ranks_than_the_host_file_allows(machine, hostfile):
    assert spelled(place(machine, 2, hostfile("a:4\nb\n"))) == "a0 a1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nd\n", r'hosts:2: .*there is no host "d"'),
        ("a:0\n", r'hosts:1: expected a number of ranks above 0, got "0"'),
        ("a:\n", r'hosts:1: expected a number of ranks above 0, got ""'),
        ("a:x\n", r'hosts:1: expected a number of ranks above 0, got "x"'),
        ("a slots=-1\n", r'hosts:1: expected a number of ranks above 0, got "-1"'),
        ("a max_slots=2\n", r'hosts:1: expected "HOST", "HOST:N" or "HOST slots=N"'),
        ("a b\n", r'hosts:1: expected "HOST", "HOST:N" or "HOST slots=N", got "a b"'),
        ("# nobody\n\n", "hosts: expected at least one host, got none"),
        ("", "hosts: expected at least one host, got none"),
    ],
)
def test_a_wrong_host_file_is_one_line(machine, hostfile, text, message):
    with pytest.raises(UsageError, match=message) as caught:
        place(machine, 1, hostfile(text))
    assert "\n" not in str(caught.value)


def test_other_usage_errors(machine, tmp_path):
    with pytest.raises(UsageError, match="-n: expected at least 1 rank, got 0"):
        place(machine, 0)
    with pytest.raises(
        UsageError, match='--map-by: expected one of core, .*ppr:N:node, ppr:N:socket, got "rank"'
    ):
        place(machine, 1, map_by="rank")
    with pytest.raises(UsageError, match="missing: cannot be read: No such file"):
        place(machine, 1, tmp_path / "missing")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="expected a text file"):
        place(machine, 1, binary)


@given(st.integers(1, 60), st.sampled_from(MAPPINGS))
def test_every_mapping_uses_all_cores_before_it_shares_one(machine, nprocs, map_by):
    slots = place(machine, nprocs, map_by=map_by)
    assert len(slots) == nprocs
    assert all(0 <= slot.core < slot.host.cores for slot in slots)
    for host in machine.hosts:
        load_of_core = Counter(slot.core for slot in slots if slot.host is host)
        counts = [load_of_core[core] for core in range(host.cores)]
        assert max(counts) - min(counts) <= 1


def test_a_host_file_may_name_hosts_in_any_order_with_the_same_result_for_each_line(
    machine, hostfile
):
    slots = place(machine, 6, hostfile("b\nb\na\nb\na\na\n"))
    assert [slot.host.name for slot in slots] == ["b", "b", "a", "b", "a", "a"]


def test_simgrid_s_files_are_filled_as_smpirun_does(tmp_path):
    path = tmp_path / "two.xml"
    path.write_text(
        '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" '
        'core="2" bw="1GBps" lat="1us"/></platform>'
    )
    two = load(path)
    assert spelled(place(two, 4)) == "n00 n10 n01 n11"
    assert spelled(place(two, 4, map_by="core")) == "n00 n01 n10 n11"


def test_so_many_ranks_on_each_host(machine, hostfile):
    assert spelled(place(machine, 5, map_by="ppr:2:node")) == "a0 a1 b0 b1 c:00"
    assert spelled(place(machine, 3, map_by="ppr:1:node")) == "a0 b0 c:00"
    assert spelled(place(machine, 4, map_by="ppr:3:node")) == "a0 a1 a2 b0"
    # A host file's own limit holds too.
    assert spelled(place(machine, 3, hostfile("b:1\na:4\n"), map_by="ppr:2:node")) == "b0 a0 a1"
    with pytest.raises(
        UsageError, match="expected room for 7 ranks, got 6 on 3 hosts with at most 2 a host"
    ):
        place(machine, 7, map_by="ppr:2:node")
    for wrong in ("ppr:0:node", "ppr:2", "ppr:x:node"):
        with pytest.raises(UsageError, match="expected one of core, socket, node, ppr:N:node"):
            place(machine, 1, map_by=wrong)


def test_a_rank_may_have_several_cores(machine):
    assert spelled(place(machine, 6, map_by="core:PE=2")) == "a0 a2 b0 c:00 a0 a2"
    assert spelled(place(machine, 5, map_by="node:pe=2")) == "a0 b0 c:00 a2 b0"
    assert spelled(place(machine, 4, map_by="socket:pe=2")) == "a0 a2 b0 c:00"
    assert spelled(place(machine, 3, map_by="ppr:2:node:pe=2")) == "a0 a2 b0"


def test_so_many_ranks_on_each_socket(machine):
    assert spelled(place(machine, 4, map_by="ppr:1:socket")) == "a0 a2 b0 c:00"
    assert spelled(place(machine, 6, map_by="ppr:2:package")) == "a0 a1 a2 a3 b0 b1"
    with pytest.raises(UsageError, match="got 4 on 3 hosts with at most 1 a socket"):
        place(machine, 5, map_by="ppr:1:socket")


def test_names_and_modifiers_of_open_mpi(machine):
    for one, other in (
        ("slot", "core"), ("hwthread", "core"), ("package", "socket"), ("CORE", "core"),
        ("socket:span", "socket"), ("node:OVERSUBSCRIBE", "node"), ("core:pe=1,span", "core"),
    ):  # fmt: skip
        assert place(machine, 9, map_by=one) == place(machine, 9, map_by=other)
    with pytest.raises(UsageError, match="expected a core for each of 8 ranks, got two on core 0"):
        place(machine, 8, map_by="core:nooversubscribe")
    assert len(place(machine, 7, map_by="core:nooversubscribe")) == 7
    for wrong in ("core:", "core:pe", "core:pe=0", "node:pe=x", "ppr:2:core", "core;span", "seq"):
        with pytest.raises(UsageError, match="--map-by: expected one of"):
            place(machine, 1, map_by=wrong)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two nodes of two sockets with two cores, as in the manual of Open MPI."""
    path = tmp_path_factory.mktemp("two") / "two.yaml"
    path.write_text(
        "name: two\nhosts:\n- {name: a, cores: 4, sockets: 2}\n- {name: b, cores: 4, sockets: 2}\n"
    )
    return load(path)


@pytest.mark.parametrize(
    ("rank_by", "ranks"),
    [
        ("core", "0 1 2 3 4 5 6 7"),
        ("slot", "0 1 2 3 4 5 6 7"),
        ("socket", "0 2 1 3 4 6 5 7"),
        ("package", "0 2 1 3 4 6 5 7"),
        ("socket:span", "0 4 1 5 2 6 3 7"),
        ("node", "0 2 4 6 1 3 5 7"),
    ],
)
def test_ranks_are_numbered_as_in_the_manual_of_open_mpi(two, rank_by, ranks):
    slots = place(two, 8, map_by="ppr:2:socket", rank_by=rank_by)
    order = [slots.index((host, core)) for host in two.hosts for core in range(4)]
    assert " ".join(map(str, order)) == ranks


@given(st.integers(1, 20), st.sampled_from(MAPPINGS), st.sampled_from(EXPECTED_RANKINGS))
def test_a_ranking_moves_no_place(machine, nprocs, map_by, rank_by):
    slots = place(machine, nprocs, map_by=map_by)
    ranked = place(machine, nprocs, map_by=map_by, rank_by=rank_by)
    assert Counter(ranked) == Counter(slots)


def test_ranks_by_slot_fill_the_nodes_that_ranks_by_node_take_in_turn(two):
    assert spelled(place(two, 4, map_by="node", rank_by="slot")) == "a0 a1 b0 b1"
    assert spelled(place(two, 8, rank_by="node")) == "a0 b0 a1 b1 a2 b2 a3 b3"
    assert spelled(place(two, 4, map_by="socket", rank_by="core")) == "a0 a2 b0 b2"
    with pytest.raises(UsageError, match='--rank-by: expected one of slot, core.*got "x"'):
        place(two, 2, rank_by="x")
