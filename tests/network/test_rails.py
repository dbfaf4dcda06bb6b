"""Hosts with several network cards: rules of choice, striped messages, faults, recordings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pysmpi
from pysmpi.cli.main import status_of
from pysmpi.errors import UsageError
from pysmpi.machine import Machine
from pysmpi.network.rails import RailTransport
from pysmpi.replay import Replay

GB, US = 1e9, 1e-6
LARGE = 1 << 20


def machine(rails=None, hosts=2, cores=8, **keys):
    cluster = {
        "name": "c", "hosts": f"n[0-{hosts - 1}]", "cores": cores,
        "link": {"bandwidth": "10GBps", "latency": "500ns"}, **keys,
    }  # fmt: skip
    if rails is not None:
        cluster["rails"] = rails
    return {"name": "machine", "clusters": [cluster]}


def transport_of(platform, nprocs, map_by=None, **options):
    found = Machine(nprocs, platform, map_by=map_by, **options)
    transport = found.transport([slot.host for slot in found.slots], found.slots)
    while not isinstance(transport, RailTransport):
        transport = transport.network
    return transport


def links_of(plan):
    return {one.name: weight for one, weight in zip(plan.constraints, plan.weights, strict=True)}


def stream(sizes, pairs=1, wait=True):
    """The seconds in which each of the first ranks sends messages to its partner."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.Barrier()
    begin = MPI.Wtime()
    other = (comm.rank + pairs) % (2 * pairs)
    if comm.rank < pairs:
        requests = [comm.Isend(bytearray(size), other, i) for i, size in enumerate(sizes)]
    else:
        requests = [comm.Irecv(bytearray(size), other, i) for i, size in enumerate(sizes)]
    MPI.Request.Waitall(requests)
    return MPI.Wtime() - begin


def seconds(platform, sizes, pairs=1, **options):
    options = {"map_by": f"ppr:{pairs}:node", "compute": "none", **options}
    result = pysmpi.run(
        stream, 2 * pairs, args=(list(sizes), pairs), platform=platform,
        cfg={"smpi/wtime": "0", **options.pop("cfg", {})}, **options,
    )  # fmt: skip
    return max(result.returns)


# Rules of choice.


def sent_on(transport, source, destination, nbytes=1000):
    """The rails at both ends, of the names of the links."""
    plan = transport.plan(source, destination, nbytes)
    rails = [0 if "_rail_" not in one.name else int(one.name.split("_")[4])
             for one in plan.constraints]  # fmt: skip
    assert [one.name.rpartition("_")[2] for one in plan.constraints] == ["UP", "DOWN"]
    return tuple(rails)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("by-block", [0, 0, 1, 1, 2, 2, 3, 3]),
        ("by-rank", [0, 1, 2, 3, 0, 1, 2, 3]),
        ("by-core", [0, 0, 0, 0, 1, 1, 1, 1]),  # ranks are on the first 8 of 16 cores
        ("first", [0] * 8),
    ],
)
def test_ranks_have_rails_by_the_rule(choice, expected):
    transport = transport_of(machine({"count": 4, "choice": choice}, cores=16), 16, "ppr:8:node")
    assert [sent_on(transport, rank, 8 + rank) for rank in range(8)] == [
        (rail, rail) for rail in expected
    ]
    # A message to another rank arrives at the rail of that rank.
    assert [sent_on(transport, 0, 8 + rank)[1] for rank in range(8)] == expected


def test_ranks_have_the_rail_of_the_sender_on_separate_networks():
    rails = {"count": 4, "choice": "by-rank", "separate": True}
    transport = transport_of(machine(rails), 8, "ppr:4:node")
    assert [sent_on(transport, 1, 4 + rank) for rank in range(4)] == [(1, 1)] * 4


def test_sizes_choose_rails():
    rails = {"count": 3, "choice": "by-size", "sizes": ["1KiB", "64KiB"]}
    transport = transport_of(machine(rails), 2, "ppr:1:node")
    sizes = [0, 1023, 1024, 65535, 65536, LARGE]
    assert [sent_on(transport, 0, 1, size)[0] for size in sizes] == [0, 0, 1, 1, 2, 2]


def test_messages_of_two_hosts_take_turns():
    transport = transport_of(machine({"count": 3, "choice": "round-robin"}), 4, "ppr:2:node")
    plan = transport.plan(0, 2, 1000)
    other = transport.plan(1, 3, 2000)  # of other ranks and another size
    got = [plan.turns.next(), other.turns.next(), plan.turns.next(), plan.turns.next()]
    assert [sorted(links_of(one))[0] for one in got] == [
        "c_link_0_UP", "c_link_0_rail_1_UP", "c_link_0_rail_2_UP", "c_link_0_UP",
    ]  # fmt: skip


def test_fewer_rails_by_an_option():
    rails = {"count": 4, "stripe_from": 0}
    assert len(links_of(transport_of(machine(rails), 2, "ppr:1:node").plan(0, 1, 9))) == 8
    two = transport_of(machine(rails), 2, "ppr:1:node", cfg={"network/rails": "2"})
    assert len(links_of(two.plan(0, 1, 9))) == 4


def test_a_host_with_fewer_rails_limits_a_message():
    platform = {
        "name": "unequal", "routing": "star",
        "links": [{"name": f"{host}{rail}", "bandwidth": "1GBps", "latency": "1us",
                   "sharing": "split-duplex"} for host in "abc" for rail in range(3)],
        "hosts": [
            {"name": "a", "rails": {"links": [["a0", "a1", "a2"]], "stripe_from": 0}},
            {"name": "b", "rails": {"links": [["b0", "b1"]], "stripe_from": 0}},
            {"name": "c"},
        ],
        "attach": [{"node": host, "up": [{"up": f"{host}0"}]} for host in "abc"],
    }  # fmt: skip
    transport = transport_of(platform, 3, "node")
    assert set(links_of(transport.plan(0, 1, 9))) == {"a0_UP", "a1_UP", "b0_DOWN", "b1_DOWN"}
    assert set(links_of(transport.plan(1, 0, 9))) == {"b0_UP", "b1_UP", "a0_DOWN", "a1_DOWN"}
    assert set(links_of(transport.plan(0, 2, 9))) == {"a0_UP", "c0_DOWN"}
    assert set(links_of(transport.plan(2, 0, 9))) == {"c0_UP", "a0_DOWN"}
    assert set(links_of(transport.plan(0, 0, 9))) == {"a0_UP", "a0_DOWN"}


# Times.


@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_striped_message_has_the_bandwidth_of_all_rails(count):
    one = seconds(machine(), [64 * LARGE])
    striped = seconds(machine({"count": count, "stripe_from": "16KiB"}), [64 * LARGE])
    assert one / striped == pytest.approx(count, rel=0.005)


def test_messages_below_the_size_are_not_striped():
    rails = {"count": 4, "stripe_from": 1001}
    assert seconds(machine(rails), [1000]) == seconds(machine(), [1000])
    assert seconds(machine(rails), [1001]) < seconds(machine(), [1001])


def test_unequal_rails_carry_shares_by_their_bandwidth():
    rails = {"others": [{"bandwidth": "30GBps", "latency": "2us"}], "stripe_from": 0}
    transport = transport_of(machine(rails), 2, "ppr:1:node")
    plan = transport.plan(0, 1, LARGE)
    assert links_of(plan) == {
        "c_link_0_UP": 0.25, "c_link_1_DOWN": 0.25,
        "c_link_0_rail_1_UP": 0.75, "c_link_1_rail_1_DOWN": 0.75,
    }  # fmt: skip
    assert plan.bound == 40 * GB
    assert plan.latency == pytest.approx(4 * US)  # that of the later part


def test_pairs_of_ranks_with_rails_of_their_own_do_not_share():
    alone = seconds(machine({"count": 4}), [LARGE], 1)
    assert seconds(machine({"count": 4}), [LARGE], 4) == pytest.approx(alone, rel=1e-6)
    assert seconds(machine({"count": 2}), [LARGE], 4) > 1.9 * alone


def test_a_part_shares_its_rail_as_a_message_of_this_rail_does():
    """A striped message and one of rail 0: the first has half of rail 0, and as much of rail 1."""
    rails = {"count": 2, "choice": "first", "stripe_from": 2 * LARGE}
    both = seconds(machine(rails), [2 * LARGE, LARGE - 16])
    # Both end after 2 MiB over rail 0 with half of its bandwidth each.
    assert both == pytest.approx(2 * LARGE / (10 * GB), rel=0.01)


@pytest.mark.parametrize("preset", ["smpi", "infiniband-hdr", "slingshot-11", "ethernet-10g"])
def test_factors_of_presets_are_those_of_the_parts(preset):
    """A part of n bytes takes no longer than a message of n bytes, but the whole's latency."""
    plain = {**machine(), "preset": preset}
    rails = {**machine({"count": 2, "stripe_from": "64KiB"}), "preset": preset}
    assert seconds(rails, [1000]) == seconds(plain, [1000])
    large = 256 * LARGE
    assert seconds(plain, [large]) / seconds(rails, [large]) == pytest.approx(2.0, rel=0.02)
    transport = transport_of(rails, 2, "ppr:1:node")
    flows = transport.flows
    assert transport.plan(0, 1, LARGE).factor == flows.sized(LARGE // 2).bandwidth_factor


@given(
    st.integers(2, 5),
    st.lists(st.floats(1e8, 1e11), min_size=1, max_size=4),
    st.integers(1, 1 << 30),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_parts_of_a_message_are_the_message(hosts, bandwidths, nbytes, traffic):
    others = [{"bandwidth": f"{one}Bps"} for one in bandwidths]
    cfg = {"network/crosstraffic": "yes" if traffic else "no"}
    transport = transport_of(
        machine({"others": others, "stripe_from": 1}, hosts), hosts, "node", cfg=cfg
    )
    plan = transport.plan(0, hosts - 1, nbytes)
    shares = dict(zip((one.name for one in plan.constraints), plan.kind.shares, strict=True))
    out = [share for name, share in shares.items() if name.startswith("c_link_0_") and "UP" in name]
    into = [share for name, share in shares.items() if name.startswith(f"c_link_{hosts - 1}_")
            and "DOWN" in name]  # fmt: skip
    assert len(out) == len(into) == 1 + len(others)
    assert sum(out) == pytest.approx(1.0) and sum(into) == pytest.approx(1.0)
    assert plan.bound == pytest.approx(10 * GB + sum(bandwidths))


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([1, 900, 2000, 70_000])), max_size=12),
    st.sampled_from(["round-robin", "by-size", "by-rank"]),
    st.sampled_from([None, 1500]),
)
@settings(max_examples=40, deadline=None)
def test_messages_of_two_ranks_do_not_overtake(messages, choice, stripe):
    """Although the first rail is a hundred times as slow as the second."""
    rails = {"others": [{"latency": "5ns"}], "choice": choice}
    if choice == "by-size":
        rails["sizes"] = [1000]
    if stripe is not None:
        rails["stripe_from"] = stripe
    result = pysmpi.run(
        in_order, 3, args=(messages,), platform=machine(rails, link={"bandwidth": "10GBps",
        "latency": "500ns"}), map_by="ppr:2:node", compute="none",
    )  # fmt: skip
    for source in range(2):
        sent = [size for one, size in messages if one == source]
        assert [size for one, size in result.returns[2] if one == source] == sent


def in_order(messages):
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank < 2:
        sizes = [size for one, size in messages if one == comm.rank]
        MPI.Request.Waitall([comm.Isend(bytearray(size), 2) for size in sizes])
        return None
    status, found, buffer = MPI.Status(), [], bytearray(100_000)
    for _ in messages:
        comm.Recv(buffer, status=status)
        found.append((status.Get_source(), status.Get_count()))
    return found


@pytest.mark.parametrize("choice", ["by-rank", "by-block"])
def test_messages_inside_a_host_use_no_rail(choice):
    """They have the costs of their cores, also where two pairs have the same rails."""
    rails = {"count": 2, "stripe_from": 0, "choice": choice}
    for model in (None, "loopback"):
        inside = {"map_by": "ppr:4:node", "memory_model": model}
        assert seconds(machine(rails), [LARGE, 1000], 2, **inside) == seconds(
            machine(), [LARGE, 1000], 2, **inside
        )


@pytest.mark.parametrize(
    ("topology", "hosts", "separate"),
    [
        ({"kind": "fat_tree", "children": [2, 2], "parents": [1, 2], "cables": [1, 1]}, 4, False),
        ({"kind": "fat_tree", "children": [2, 2], "parents": [1, 2], "cables": [1, 1]}, 4, True),
        ({"kind": "torus", "dimensions": [2, 2]}, 4, True),
        ({"kind": "hypercube", "dimensions": 2, "nodes": 1}, 4, True),
        ({"kind": "dragonfly", "groups": 2, "blue": 1, "chassis": 1, "black": 1, "routers": 2,
          "green": 1, "nodes": 1}, 4, False),
        ({"kind": "dragonfly", "groups": 2, "blue": 1, "chassis": 1, "black": 1, "routers": 2,
          "green": 1, "nodes": 1}, 4, True),
    ],
)  # fmt: skip
def test_rails_of_topologies(topology, hosts, separate):
    """Separate networks double the bandwidth; in a common one the links of switches do not grow."""
    rails = {"count": 2, "stripe_from": 0, "separate": separate}
    transport = transport_of(machine(rails, hosts, topology=topology), hosts, "node")
    plain = Machine(hosts, machine(None, hosts, topology=topology), map_by="node").platform
    for end in range(1, hosts):
        plan = transport.plan(0, end, LARGE)
        route = [link.name for link in plain.route(plain.hosts[0], plain.hosts[end]).links]
        weights = links_of(plan)
        twins = {name for name in weights if "_rail_1" in name}
        if separate:
            assert plan.bound == 20 * GB
            assert len(twins) == len(route) and set(weights.values()) == {0.5}
        else:
            assert len(twins) == 2  # the first and the last link
            between = route[1:-1]
            assert [weights[name] for name in between] == [1.0] * len(between)


# Models, errors.


@pytest.mark.parametrize("model", ["ib", "logp", "loggp", "loggps", "plogp", "log_nP", "log_3P"])
def test_models_with_one_card_refuse_rails(model):
    with pytest.raises(UsageError, match="network/rails:1"):
        transport_of(machine({"count": 2}), 2, "node", model=model)
    one = {"model": model, "cfg": {"network/rails": "1"}}
    assert seconds(machine({"count": 2}), [1000], **one) == seconds(machine(), [1000], model=model)


@pytest.mark.parametrize("model", ["hybrid", "fluid", "cm02", "lv08"])
def test_models_whose_messages_share_links_have_rails(model):
    one = seconds(machine(), [64 * LARGE], model=model)
    two = seconds(machine({"count": 2, "stripe_from": 0}), [64 * LARGE], model=model)
    assert one / two == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("memory", [None, "loopback"])
def test_replays_take_turns_too(memory, tmp_path):
    platform = machine({"count": 2, "choice": "round-robin"})
    file = tmp_path / "run.jsonl"
    run = seconds(platform, [LARGE] * 4, trace=str(file), memory_model=memory)
    assert run == pytest.approx(2 * LARGE / (10 * GB), rel=0.02)
    options = {"platform": platform, "map_by": "ppr:1:node", "memory_model": memory}
    again = Replay([(file, 0.0)], **options).run()
    one = Replay([(file, 0.0)], **options, cfg={"network/rails": "1"}).run()
    assert one.seconds / again.seconds == pytest.approx(2.0, rel=0.05)


# Faults.


def test_other_rails_carry_when_one_is_off():
    rails = {"count": 2, "stripe_from": 0}
    platform = machine(rails)
    two, one = seconds(platform, [64 * LARGE]), seconds(machine(), [64 * LARGE])
    for name in ("c_link_0_rail_1", "c_link_0", "c_link_1_rail_1_DOWN"):
        off = seconds(platform, [64 * LARGE], fault=f"link={name}@0s")
        assert off == pytest.approx(one, rel=0.01)
        # Half of the message has passed when the rail fails: the other half takes twice as long.
        half = seconds(platform, [64 * LARGE], fault=f"link={name}@{two / 2}s")
        assert half == pytest.approx((two + one) / 2, rel=0.01)


@pytest.mark.parametrize("choice", ["round-robin", "by-rank", "by-block", "by-core", "first"])
def test_messages_pass_by_a_rail_that_is_off(choice):
    platform = machine({"count": 2, "choice": choice})
    sizes = [LARGE] * 4
    alone = 2 * 4 * LARGE / (10 * GB)
    for date in ("0s", "50us"):
        off = seconds(platform, sizes, 2, fault=f"link=c_link_0@{date}")
        assert off <= alone * 1.01
    assert off > alone / 2


def late_receive(nbytes):
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        comm.Send(bytearray(nbytes), 1)
        return None
    time.sleep(0.001)
    begin = MPI.Wtime()
    comm.Recv(bytearray(nbytes), 0)
    return MPI.Wtime() - begin


@pytest.mark.parametrize("stripe", [None, 0])
def test_a_message_that_waits_for_its_receive_takes_another_rail(stripe):
    rails = {"count": 2, "choice": "first"} | ({} if stripe is None else {"stripe_from": stripe})
    result = pysmpi.run(
        late_receive, 2, args=(64 * LARGE,), platform=machine(rails), map_by="node",
        compute="none", fault="link=c_link_0@100us", cfg={"smpi/wtime": "0"},
    )  # fmt: skip
    assert result.returns[1] == pytest.approx(64 * LARGE / (10 * GB), rel=0.01)


def test_messages_use_a_rail_again_after_its_fault():
    platform = machine({"count": 2, "stripe_from": 0})
    two = seconds(platform, [64 * LARGE])
    # The barrier takes longer than the fault, and the message begins after it.
    after = seconds(platform, [64 * LARGE], fault="link=c_link_0@0s:for=1us")
    assert after == pytest.approx(two, rel=0.01)


def test_a_job_fails_when_all_rails_are_off():
    faults = ["link=c_link_0@0s", "link=c_link_0_rail_1@1us"]
    result = pysmpi.run(
        stream,
        2,
        args=([LARGE],),
        check=False,
        platform=machine({"count": 2}),
        map_by="node",
        fault=faults,
    )
    assert result.exit_status != 0
    assert "link c_link_0" in result.error and "failed" in result.error


def test_a_slow_rail_delays_its_part():
    """The shares are those of the machine, so a striped message waits for the slow part."""
    platform = machine({"count": 2, "stripe_from": 0})
    usual = seconds(platform, [64 * LARGE])
    slow = seconds(platform, [64 * LARGE], fault="link=c_link_0@0s:slow=4")
    assert slow == pytest.approx(4 * usual, rel=0.01)


def test_jitter_keeps_the_turns():
    platform = machine({"count": 2, "choice": "round-robin"})
    noisy = seconds(platform, [LARGE] * 8, fault="jitter:time=1ns")
    assert noisy == pytest.approx(seconds(platform, [LARGE] * 8), rel=0.01)


# Recordings and energy.


def test_recordings_have_the_shares_of_the_links(tmp_path):
    from pysmpi.analysis.graph import EventGraph
    from pysmpi.analysis.usage import link_usage
    from pysmpi.trace.activity import activity_of
    from pysmpi.trace.lines import read_lines

    file = tmp_path / "run.jsonl"
    rails = {"others": [{"bandwidth": "30GBps"}], "stripe_from": 1000}
    seconds(machine(rails), [4 * LARGE], trace=str(file))
    graph = EventGraph(activity_of(read_lines(file)))
    usage = {one.name: sum(one.amounts) for one in link_usage(graph, 8)}
    assert usage["c_link_0_rail_1_UP"] == pytest.approx(3 * LARGE)
    assert usage["c_link_1_rail_1_DOWN"] == pytest.approx(3 * LARGE)
    assert LARGE <= usage["c_link_0_UP"] < LARGE + 1000  # and the barrier's bytes


def test_pictures_show_the_links_of_rails_side_by_side(tmp_path):
    from pysmpi.analysis.movement import picture_of
    from pysmpi.trace.activity import activity_of
    from pysmpi.trace.lines import read_lines

    file = tmp_path / "run.jsonl"
    seconds(machine({"count": 3, "stripe_from": 1000}), [LARGE], trace=str(file))
    picture = picture_of(activity_of(read_lines(file)))
    host, switch, other = (picture.names.index(name) for name in ("n0", "switch-0", "n1"))
    (split,) = [route for route in picture.routes if len(route.links) > 2]
    assert split.vertices == (host, switch, other) and len(split.links) == 6


def test_the_energy_of_links_is_of_the_bytes_of_their_rail():
    platform = machine({"count": 2, "stripe_from": 0, "others": [{"bandwidth": "30GBps"}]})
    platform["clusters"][0].pop("rails")
    links = [
        {"name": name, "bandwidth": f"{rate}GBps", "latency": "500ns",
         "properties": {"wattage_range": "0:10"}}
        for host in "ab" for name, rate in ((f"{host}0", 10), (f"{host}1", 30))
    ]  # fmt: skip
    platform = {
        "name": "two", "links": links,
        "hosts": [{"name": host, "rails": {"links": [[f"{host}0", f"{host}1"]], "stripe_from": 0}}
                  for host in "ab"],
        "routes": [{"from": "a", "to": "b", "via": ["a0", "b0"]}],
    }  # fmt: skip
    result = pysmpi.run(
        stream, 2, args=([64 * LARGE],), platform=platform, map_by="node", compute="none"
    )
    watts = {one["link"]: one["joules"] for one in result.energy["links"]}
    # In use all of the time, both of them, since the parts end together.
    assert watts["a1"] == pytest.approx(watts["a0"], rel=0.01)
    assert watts["a0"] == pytest.approx(10 * result.seconds, rel=0.02)


def test_six_lines_and_the_command_line(tmp_path, monkeypatch, capfd):
    (tmp_path / "two.yaml").write_text(
        "name: two\n"
        "clusters:\n"
        "  - name: c\n"
        "    hosts: n[0-1]\n"
        "    network: {bandwidth: 10GBps, latency: 1us}\n"
        "    rails: {count: 2, stripe_from: 16KiB}\n"
    )
    (tmp_path / "bw.py").write_text(
        "from mpi4py import MPI\n"
        "comm = MPI.COMM_WORLD\n"
        "data = bytearray(1 << 26)\n"
        "comm.Barrier()\n"
        "begin = MPI.Wtime()\n"
        "comm.Send(data, 1) if comm.rank == 0 else comm.Recv(data, 0)\n"
        "if comm.rank: print(f'{len(data) / (MPI.Wtime() - begin) / 1e9:.2f}')\n"
    )
    monkeypatch.chdir(tmp_path)
    command = ["run", "-n", "2", "--platform", "two.yaml", "--compute", "none", "--map-by", "node"]
    for more, expected in (([], 20.0), (["--cfg", "network/rails:1"], 10.0)):
        assert status_of([*command, *more, "bw.py"]) == 0
        assert float(capfd.readouterr().out) == pytest.approx(expected, rel=0.01)
    assert status_of([*command, "--model", "loggp", "bw.py"]) == 2
    assert "model loggp has one network card in each host" in capfd.readouterr().err
