"""The systems of the TOP500: their files are whole, and small runs work on them."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.network.presets import HYBRID
from pysmpi.platform import load, shipped
from pysmpi.platform.loader import read, systems

# Network cards of a node, by the public documents, where they are several.
PORTS = {"frontier": 4, "aurora": 8, "alps": 4, "archer2": 2}


def pingpong():
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    begin = MPI.Wtime()
    for turn in range(2):
        if comm.rank == turn:
            comm.Send(bytearray(1), 1 - turn)
        else:
            comm.Recv(bytearray(1), turn)
    return (MPI.Wtime() - begin) / 2


def test_there_are_twelve_that_are_not_machines_of_another_name():
    assert len(systems()) == 12
    assert not set(systems()) & set(shipped())


@pytest.mark.parametrize("name", systems())
def test_a_system_states_its_source_and_has_a_measured_preset(name):
    definition = read(name)
    assert definition.name == name
    ports = "All ports of the network of a node" if name in PORTS else "One port of the network"
    assert definition.sources and ports in definition.description
    (cluster,) = definition.root.members
    assert (cluster.rails.count if cluster.rails else 1) == PORTS.get(name, 1)
    assert HYBRID[definition.preset].measured


@pytest.mark.parametrize("name", ["piz-daint", "stampede2-skx"])
def test_a_byte_takes_the_latency_of_the_file(name):
    platform = load(name)
    route = platform.route(platform.hosts[0], platform.hosts[1])
    result = pysmpi.run(
        pingpong, 2, platform=name, map_by="node", compute="none", cfg={"smpi/wtime": "0"}
    )
    assert result.returns[0] == pytest.approx(route.latency, rel=0.01)


def exchange(nbytes):
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    half = comm.size // 2
    comm.Barrier()
    begin = MPI.Wtime()
    if comm.rank < half:
        comm.Send(bytearray(nbytes), comm.rank + half)
    else:
        comm.Recv(bytearray(nbytes), comm.rank - half)
    return MPI.Wtime() - begin


@pytest.mark.parametrize("name", sorted(PORTS))
def test_ranks_of_a_node_use_all_of_its_ports(name):
    """As many pairs of ranks as ports take as long as one; as many again take twice as long."""

    def seconds(pairs):
        result = pysmpi.run(
            exchange, 2 * pairs, args=(1 << 24,), platform=name, map_by=f"ppr:{pairs}:node",
            compute="none", cfg={"smpi/wtime": "0"},
        )  # fmt: skip
        return max(result.returns)

    one = seconds(1)
    assert seconds(PORTS[name]) == pytest.approx(one, rel=0.01)
    assert seconds(2 * PORTS[name]) == pytest.approx(2 * one, rel=0.02)
