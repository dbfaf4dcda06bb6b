"""The systems of the TOP500: their files are whole, and small runs work on them."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.network.presets import HYBRID
from pysmpi.platform import load, shipped
from pysmpi.platform.loader import read, systems


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
    assert definition.sources and "One port of the network" in definition.description
    assert HYBRID[definition.preset].measured


@pytest.mark.parametrize("name", ["piz-daint", "stampede2-skx"])
def test_a_byte_takes_the_latency_of_the_file(name):
    platform = load(name)
    route = platform.route(platform.hosts[0], platform.hosts[1])
    result = pysmpi.run(
        pingpong, 2, platform=name, map_by="node", compute="none", cfg={"smpi/wtime": "0"}
    )
    assert result.returns[0] == pytest.approx(route.latency, rel=0.01)
