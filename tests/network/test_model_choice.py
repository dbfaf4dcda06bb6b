"""`--model`: each model uses its own options of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.network.choice import choose
from pysmpi.network.flows import SIZES
from pysmpi.network.presets import HYBRID
from pysmpi.platform import load
from pysmpi.platform.definition import PlatformDef, ZoneDef
from pysmpi.platform.yaml import PRESETS

GRAPHENE_XML = Path(__file__).parent.parent / "data" / "platforms" / "graphene.hybrid.xml"

# Times of SMPI 3.32 with --cfg=network/model:NAME on graphene.hybrid.xml, in us: half a round trip
# of 1, 1,024 and 1,000,000 bytes between graphene-0 and graphene-143, the mean of ten.
SMPI = {
    "hybrid": (86.4836, 108.5736, 9099.5583),
    "lv08": (680.6953, 690.7962, 8944.6539),
    "cm02": (68.1811, 78.0289, 8054.0915),
}


def ping_pong():
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = []
    for size in (1, 1024, 1000000):
        buffer = numpy.zeros(size, "b")
        comm.Barrier()
        begin = MPI.Wtime()
        for _ in range(10):
            if comm.rank == 0:
                comm.Send(buffer, 1)
                comm.Recv(buffer, 1)
            else:
                comm.Recv(buffer, 0)
                comm.Send(buffer, 0)
        found.append((MPI.Wtime() - begin) / 20 * 1e6)
    return found


def exchange():
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    mine, theirs = numpy.zeros(1000000, "b"), numpy.zeros(1000000, "b")
    begin = MPI.Wtime()
    comm.Sendrecv(mine, 1 - comm.rank, recvbuf=theirs)
    return MPI.Wtime() - begin


@pytest.fixture
def ends(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("graphene-0\ngraphene-143\n")

    def run(main, model, platform="graphene", **options):
        options["cfg"] = {"smpi/wtime": "0", **options.get("cfg", {})}
        return pysmpi.run(
            main, 2, platform=platform, hostfile=hosts, model=model, compute="none", **options
        )

    return run


@pytest.mark.parametrize("platform", ["graphene", GRAPHENE_XML])
@pytest.mark.parametrize("model", SMPI)
def test_models_differ_on_graphene_as_smpi_s_do(ends, platform, model):
    result = ends(ping_pong, model, platform)
    assert result.model == model
    assert result.returns[0] == pytest.approx(SMPI[model], rel=2e-4)


def test_no_two_models_agree_on_an_exchange(ends):
    times = {ends(exchange, model).returns[0] for model in ("hybrid", "lv08", "cm02", "fluid")}
    assert len(times) == 4


@pytest.mark.parametrize("name", ["cluster", "laptop", "multicore-cluster"])
def test_models_differ_on_machines_that_give_factors(name):
    times = set()
    for model in ("hybrid", "lv08"):
        result = pysmpi.run(
            ping_pong, 2, platform=name, map_by="node", model=model, compute="none",
            memory_model="loopback",
        )  # fmt: skip
        times.add(tuple(result.returns[0]))
    assert len(times) == 2


MACHINE = """\
name: two
clusters:
  - name: two
    hosts: n[0-1]
    link: {bandwidth: 1GBps, latency: 5us}
"""


@pytest.fixture
def seconds(tmp_path):
    """Seconds that one byte takes on the machine with further keys, under a model and options."""
    path = tmp_path / "two.yaml"

    def of(keys="", model=None, **cfg):
        path.write_text(MACHINE + keys)
        options = {name.replace("__", "/").replace("_", "-"): text for name, text in cfg.items()}
        result = pysmpi.run(
            ping_pong, 2, platform=path, model=model, compute="none", map_by="node",
            cfg={"smpi/wtime": "0", **options},
        )  # fmt: skip
        return result.returns[0][0] * 1e-6

    return of


LATENCY, BYTE = 10e-6, 17 / 1e9


def near(seconds: float) -> object:
    """Equal up to the time by which the barrier before a ping-pong separates its two ends."""
    return pytest.approx(seconds, rel=2e-4)


def test_a_machine_without_factors_is_neutral(seconds):
    assert seconds() == near(LATENCY + BYTE)
    assert seconds("preset: neutral\n") == near(LATENCY + BYTE)


def test_smpi_s_factors_have_a_name(seconds):
    expected = near(2.01467 * LATENCY + BYTE / 0.812084)
    assert seconds("preset: smpi\n") == expected
    assert seconds("config: {network/preset: smpi}\n") == expected
    assert seconds(network__preset="smpi") == expected
    assert seconds("preset: smpi\n", network__preset="neutral") == near(LATENCY + BYTE)


def test_the_command_line_wins_over_factors_of_the_machine(seconds):
    for key in ("smpi/lat-factor", "network/latency-factor"):
        machine = f"config: {{{key}: 3}}\n"
        assert seconds(machine) == near(3 * LATENCY + BYTE)
        assert seconds(machine, "cm02") == near(LATENCY + BYTE)
        assert seconds(machine, "lv08") == near(13.01 * LATENCY + BYTE / 0.97)
        assert seconds(machine, network__latency_factor="2") == near(2 * LATENCY + BYTE)
        assert seconds(machine, "cm02", smpi__lat_factor="2") == near(2 * LATENCY + BYTE)
        assert seconds(machine, network__model="CM02") == near(LATENCY + BYTE)


def test_a_machine_carries_parameters_for_several_models(seconds):
    machine = "models:\n  hybrid: {smpi/lat-factor: 2}\n  cm02: {network/latency-factor: 4}\n"
    assert seconds(machine) == near(2 * LATENCY + BYTE)
    assert seconds(machine, "cm02") == near(4 * LATENCY + BYTE)
    assert seconds(machine, "fluid") == near(LATENCY + BYTE)
    assert seconds(machine, "cm02", network__latency_factor="5") == near(5 * LATENCY + BYTE)


def test_a_machine_names_the_model_it_was_made_for(seconds):
    machine = "config: {network/model: CM02, network/latency-factor: 4}\n"
    assert seconds(machine) == near(4 * LATENCY + BYTE)
    assert seconds(machine, "cm02") == near(4 * LATENCY + BYTE)
    assert seconds(machine, "hybrid") == near(LATENCY + BYTE)


def test_overheads_and_protocol_hold_for_every_model(seconds):
    machine = 'config: {smpi/os: "0:1e-6", smpi/or: "0:2e-6"}\n'
    for model in ("hybrid", "cm02", "fluid"):
        assert seconds(machine, model) == near(LATENCY + BYTE + 3e-6)


@pytest.mark.parametrize(
    ("keys", "cfg", "name", "message"),
    [
        ("", {"network/model": "CM02"}, "lv08", "--model lv08: .*which is model cm02; give one"),
        ("", {"network/model": "ns-3"}, None, "--cfg: network/model: ns-3 is not available"),
        ("config: {network/model: CM}\n", {}, None, "p.yaml: network/model: expected one of SMPI"),
        ("models: {cm2: {}}\n", {}, None, "p.yaml: models: expected names of models .* 'cm2'"),
        ("models: {cm02: {smpi/oss: 1}}\n", {}, "cm02", "unknown option 'smpi/oss'"),
        ("", {}, "hybird", "--model hybird: no such model; did you mean hybrid"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, keys, cfg, name, message):
    path = tmp_path / "p.yaml"
    path.write_text(MACHINE + keys)
    with pytest.raises(UsageError, match=message):
        choose(load(path), cfg, name)


def test_files_and_models_know_the_same_presets():
    assert set(PRESETS) == set(HYBRID)
    assert PRESETS[0] == PlatformDef("p", ZoneDef("p"), "p.yaml").preset


def test_an_unknown_preset_is_refused(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(MACHINE + "preset: gigabit\n")
    with pytest.raises(UsageError, match="p.yaml:6: preset: expected one of neutral, smpi, ether"):
        load(path)
    path.write_text(MACHINE)
    with pytest.raises(UsageError, match="network/preset: expected one of neutral.*, got"):
        pysmpi.run(ping_pong, 2, platform=path, cfg={"network/preset": "gigabit"})


@pytest.mark.parametrize(
    ("preset", "eager", "payload"),
    [("ethernet", 65536, 1448 / 1538), ("infiniband", 12288, 4096 / 4122),
     ("slingshot", 16384, 4096 / 4178)],
)  # fmt: skip
def test_a_preset_of_a_network_has_its_payload_and_its_rendezvous(tmp_path, preset, eager, payload):
    """Bytes flow at the data's part of the rate; from a size on the latency counts thrice."""

    def one_way(sizes):
        import time

        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        found = []
        for turn, size in enumerate(sizes):
            buffer = numpy.zeros(size, "b")
            time.sleep(turn + 1 - MPI.Wtime())
            begin = MPI.Wtime()
            comm.Send(buffer, 1) if comm.rank == 0 else comm.Recv(buffer, 0)
            found.append(MPI.Wtime() - begin)
        return found

    path = tmp_path / "two.yaml"
    path.write_text(MACHINE + f"preset: {preset}\n")
    sizes = (1, eager - 1, eager, 1000000)
    sent, received = pysmpi.run(
        one_way, 2, args=(sizes,), platform=path, compute="none", map_by="node",
        cfg={"smpi/wtime": "0"},
    ).returns  # fmt: skip
    times = [(1, 3)[size >= eager] * LATENCY + (size + 16) / (payload * 1e9) for size in sizes]
    assert received == pytest.approx(times, rel=1e-6)
    # The sender goes on at once, or once the message has arrived.
    assert sent[:2] == [0.0, 0.0] and sent[2:] == pytest.approx(times[2:], rel=1e-6)


def test_factors_are_kept_for_a_limited_number_of_sizes():
    machine = load("graphene")
    model, settings = choose(machine, {}, "hybrid")
    transport = model.build(machine, machine.hosts, settings)

    def figures(nbytes):
        plan = transport.plan(0, 1, nbytes)
        return plan.latency, plan.volume, plan.factor, plan.send_cost, plan.eager

    first = figures(0)
    assert len(transport.sizes) == 1
    for nbytes in range(SIZES):
        transport.plan(0, 1, nbytes)
        transport.plan(0, 1, nbytes)
    assert len(transport.sizes) == SIZES
    last = figures(10 * SIZES)
    assert len(transport.sizes) == 1
    assert figures(0) == first != last == figures(10 * SIZES)
