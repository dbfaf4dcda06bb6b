"""Machines written as SimGrid's XML are the same machines."""

from __future__ import annotations

from pathlib import Path

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.network import presets
from pysmpi.platform import load, shipped
from pysmpi.platform.construct import LOOPBACK_LATENCY
from pysmpi.platform.loader import read
from pysmpi.platform.xml_dump import dump_xml, leaves_out

PLATFORMS = sorted((Path(__file__).parent.parent / "data" / "platforms").glob("*.xml"))


@pytest.fixture
def written(tmp_path):
    """The path of a machine's XML."""

    def write(name):
        path = tmp_path / "written.xml"
        definition = read(name)
        options = presets.options(presets.find(definition.preset), LOOPBACK_LATENCY)
        path.write_text(dump_xml(definition, options), encoding="utf-8")
        return path

    return write


def ways(platform):
    """Links of routes between some pairs of hosts, without their names."""
    hosts = platform.hosts[:: max(1, len(platform.hosts) // 16)]
    return {
        (a.name, b.name): [(k.bandwidth, k.latency, k.sharing) for k in platform.route(a, b).links]
        for a in hosts
        for b in hosts
    }


@pytest.mark.parametrize("name", [*shipped(), *PLATFORMS], ids=lambda name: Path(name).stem)
def test_routes_and_cores_survive(name, written):
    try:
        path = written(name)
    except UsageError as error:
        pytest.fail(f"{name}: {error}")
    before, after = load(name), load(path)
    assert [(h.name, h.cores) for h in before.hosts] == [(h.name, h.cores) for h in after.hosts]
    assert ways(before) == ways(after)
    assert [h.disks and h.disks[0].read for h in before.hosts] == [
        h.disks and h.disks[0].read for h in after.hosts
    ]


def times():
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = []
    for size in (1, 2000, 100000, 1000000):
        mine, theirs = numpy.zeros(size, "b"), numpy.zeros(size, "b")
        comm.Barrier()
        begin = MPI.Wtime()
        comm.Sendrecv(mine, comm.size - 1 - comm.rank, recvbuf=theirs)
        comm.Allreduce(mine, theirs)
        found.append(MPI.Wtime() - begin)
    return found


@pytest.mark.parametrize("name", ["graphene", "cluster", "laptop", "tibidabo", "fat-tree"])
def test_predicted_times_survive(name, written):
    options = {"compute": "none", "map_by": "node", "memory_model": "loopback"}
    before = pysmpi.run(times, 8, platform=name, selector="ompi", **options).returns
    after = pysmpi.run(times, 8, platform=written(name), selector="ompi", **options).returns
    assert before == [pytest.approx(row, rel=1e-12) for row in after]


def test_compute_takes_as_long(written):
    """Without speeds, compute takes as long as on the computer that simulates."""
    after = load(written("cluster"))
    assert {host.speed for host in after.hosts} == {1e9}
    assert after.config["smpi/host-speed"] == "1Gf"


def test_hosts_beside_zones_get_zones_of_their_own(tmp_path):
    """A zone of SimGrid holds hosts or zones."""
    path = tmp_path / "mixed.yaml"
    path.write_text(
        "name: mixed\n"
        "hosts: [{name: front, speed: 1Gf}]\n"
        "clusters: [{name: c, hosts: 'n[0-1]', speed: 1Gf, link: {bandwidth: 1GBps}}]\n"
        "links: [{name: uplink, bandwidth: 2GBps, latency: 3us}]\n"
        "routes: [{from: front, to: c, via: [uplink]}]\n"
    )
    again = tmp_path / "mixed.xml"
    again.write_text(dump_xml(read(path)))
    assert '<zone id="front__zone" routing="Full">' in again.read_text()
    assert ways(load(path)) == ways(load(again))


def test_what_has_no_form_is_said(tmp_path):
    models = "options of the models fluid, loggps, loggp, logp, plogp"
    assert leaves_out(read("graphene")) == [models]
    assert "the inside of nodes (caches, memory)" in leaves_out(read("xeon-e5-2650"))
    assert leaves_out(read("laptop")) == []
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: p\nhosts: [{name: a, speed: 1Gf}, {name: b}]\n"
        "links: [{name: l, bandwidth: 1GBps}]\nroutes: [{from: a, to: b, via: [l]}]\n"
    )
    with pytest.raises(UsageError, match="SimGrid needs the speed of every host"):
        dump_xml(read(path))
