"""The ranks of a node share its memory: their messages, and their compute that is bound by it."""

from __future__ import annotations

from pathlib import Path

import pytest

import pysmpi
from pysmpi.machine import Machine
from pysmpi.memory.bandwidth import IN_CACHE, INSIDE, OF_A_CORE, SMALL

MIB = 1 << 20
SIX_LINES = """\
name: lab
clusters:
  - name: lab
    hosts: node-[0-3]
    cores: 32
    network: {bandwidth: 100Gbps, latency: 1.5us}
"""
# The loopback of each machine and the memory of a node (bytes/s).
MACHINES = {
    "cluster": (8e9, 200e9),
    "six lines": (10e9, 32 * OF_A_CORE),
    "fat-tree": (8e9, 64 * OF_A_CORE),
    "dragonfly": (8e9, 64 * OF_A_CORE),
    "infiniband-edr": (10e9, 32 * OF_A_CORE),
}


@pytest.fixture
def machine(tmp_path: Path):
    """The machine of a name, or a file with the preset of this name."""

    def choose(name: str, more: str = "") -> str:
        if name in ("cluster", "fat-tree", "dragonfly", "laptop"):
            return name
        path = tmp_path / "machine.yaml"
        preset = "" if name == "six lines" else f"preset: {name}\n"
        path.write_text(SIX_LINES.replace("clusters:", f"{preset}{more}clusters:"))
        return str(path)

    return choose


def run(program, ranks, *arguments, **options):
    options = {"compute": "none", "data": "none", "map_by": "core", **options}
    return pysmpi.run(program, ranks, args=arguments, **options).returns


def window(count, nbytes, pairs=1):
    """Seconds until messages in flight from each even rank to the next one have arrived."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = numpy.zeros(nbytes, "b")
    comm.Barrier()
    begin = MPI.Wtime()
    if comm.rank % 2 == 0:
        MPI.Request.Waitall([comm.Isend(data, comm.rank + 1) for _ in range(count)])
    else:
        MPI.Request.Waitall([comm.Irecv(data, comm.rank - 1) for _ in range(count)])
    comm.Barrier()
    return MPI.Wtime() - begin


def alltoall(nbytes):
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    send, receive = numpy.zeros((2, nbytes * comm.size), "b")
    comm.Barrier()
    begin = MPI.Wtime()
    comm.Alltoall(send, receive)
    return MPI.Wtime() - begin


@pytest.mark.parametrize("name", MACHINES)
def test_messages_in_flight_reach_the_bandwidth_in_the_file(name, machine):
    copy, memory = MACHINES[name]
    file = machine(name)
    taken = max(run(window, 2, 64, MIB, platform=file))
    assert 64 * MIB / taken == pytest.approx(copy, rel=0.05)
    # Each core copies what it sends and what it receives, unless memory is slower.
    taken = max(run(alltoall, 32, MIB, platform=file))
    cores = Machine(32, platform=file).slots[0].host.cores
    used = memory * (1 if cores == 32 else 0.5)  # of two sockets, 32 ranks fill the first
    expected = max(2 * 31 * MIB / copy, 32 * 31 * MIB * 2 / used)
    assert taken == pytest.approx(expected, rel=0.05)


def test_pairs_of_ranks_share_the_memory_of_their_sockets(machine):
    file = machine("six lines", "config: {memory/bandwidth: 60GBps}\n")
    for pairs in (1, 2, 4, 8, 16):
        taken = max(run(window, 2 * pairs, 16, MIB, platform=file))
        expected = min(pairs * 10e9, 60e9 / 2)
        assert pairs * 16 * MIB / taken == pytest.approx(expected, rel=0.05), pairs


def test_the_file_can_say_that_memory_is_not_shared(machine):
    for cfg in ({"memory/bandwidth": "none"}, {"memory/model": "loopback"}):
        taken = max(run(window, 2, 64, MIB, platform=machine("six lines"), cfg=cfg))
        assert 64 * MIB / taken > 400e9


def test_a_single_message_takes_what_the_loopback_says(machine):
    """The node's memory delays no message that is alone, whatever its size.

    A measured preset adds what osu_latency printed for a message beyond latency and bandwidth.
    """
    smallest, largest = INSIDE.values[0], INSIDE.values[-1]
    bandwidth = MIB / 2 / (largest - INSIDE.values[-2])
    for name in ("six lines", "infiniband-edr"):
        file = machine(name)
        for nbytes in (1, SMALL - 1, SMALL, 1 << 15, IN_CACHE - 1, IN_CACHE, MIB):
            shared, alone = (
                max(run(window, 2, 1, nbytes, platform=file, cfg=cfg))
                for cfg in ({}, {"memory/bandwidth": "500GBps"})
            )
            assert shared == pytest.approx(alone, rel=1e-9)
            barrier = max(run(window, 2, 0, 1, platform=file))
            expected = 300e-9 + (nbytes + 16) / 10e9
            if name != "six lines":
                expected += max(0.0, INSIDE.at(nbytes) - smallest - nbytes / bandwidth)
            assert shared - barrier == pytest.approx(expected, rel=0.35), nbytes


def test_the_preset_of_smpi_shares_nothing(machine):
    """Its times are those of SMPI, whatever the memory of the nodes."""
    for cfg in ({}, {"memory/bandwidth": "1GBps"}, {"memory/bandwidth": "none"}):
        cfg = {**cfg, "network/preset": "smpi"}
        times = run(alltoall, 8, MIB, platform=machine("six lines"), cfg=cfg)
        assert times == run(
            alltoall, 8, MIB, platform=machine("six lines"),
            cfg={"network/preset": "smpi", "memory/model": "loopback"},
        )  # fmt: skip


def test_messages_between_nodes_are_as_before(machine):
    options = {"platform": machine("six lines"), "map_by": "node"}
    for nbytes in (1, 10_000, MIB):
        assert run(window, 2, 8, nbytes, **options) == run(
            window, 2, 8, nbytes, cfg={"memory/bandwidth": "none"}, **options
        )


def triad():
    """The seconds of a block of compute on each rank, measured with both clocks of a program."""
    import time

    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    begin = MPI.Wtime()
    time.sleep(0)
    MPI.COMM_WORLD.Barrier()
    return MPI.Wtime() - begin


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_compute_that_is_bound_by_memory_follows_the_curve_of_stream(machine, share):
    """P ranks reach P times the bandwidth of one core, and at most that of the node."""
    config = "config: {memory/bandwidth: 100GBps, memory/core-bandwidth: 12.5GBps}\n"
    file = machine("six lines", config)
    options = {"platform": file, "compute": 0.01, "data": "all", "cfg": {"smpi/wtime": "0"}}
    alone = max(run(triad, 1, **options))
    for ranks in (1, 2, 4, 8, 16, 32):
        times = run(triad, ranks, memory_bound=share, **options)
        demand = ranks * share * 12.5e9
        assert max(times) == pytest.approx(alone * max(1.0, demand / 100e9), rel=0.05), ranks


def test_compute_and_messages_share_memory(machine):
    """Messages of two ranks slow the compute of the others, and it slows them."""
    file = machine(
        "six lines", "config: {memory/bandwidth: 40GBps, memory/core-bandwidth: 12.5GBps}\n"
    )
    free = run(both, 4, platform=file, compute=0.01)
    bound = run(both, 4, platform=file, compute=0.01, memory_bound=1.0)
    # Two cores and a stream of messages want 25 and 20 GB/s of 40.
    assert max(bound) > 1.05 * max(free)


def both():
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = numpy.zeros(100 * MIB if comm.rank < 2 else 0, "b")
    comm.Barrier()
    begin = MPI.Wtime()
    if comm.rank == 0:
        comm.Send(data, 1)
    elif comm.rank == 1:
        comm.Recv(data, 0)
    comm.Barrier()
    return MPI.Wtime() - begin


@pytest.mark.parametrize("value", ["1.5", "-1", "much", "nan"])
def test_wrong_shares_are_refused(value):
    with pytest.raises(pysmpi.UsageError, match="memory/bound: expected a number from 0 to 1"):
        run(window, 2, 1, 1, memory_bound=value)


def test_a_link_that_changes_leaves_messages_inside_nodes_their_share(machine, tmp_path):
    """The loopback becomes half as fast while 16 messages of two ranks are on their way."""
    file = tmp_path / "profile.yaml"
    file.write_text(
        SIX_LINES.replace(
            "    cores", "    loopback: {bandwidth: 10GBps, latency: 300ns}\n    cores"
        )
        + "profiles:\n  - link: lab_link_0_loopback\n    bandwidth: {0.5ms: 5GBps}\n"
    )
    taken = max(run(window, 2, 16, MIB, platform=str(file)))
    plain = max(run(window, 2, 16, MIB, platform=machine("six lines")))
    assert 0.95 * plain < taken < 2.1 * plain
