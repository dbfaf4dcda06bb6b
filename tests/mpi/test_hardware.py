"""Hardware resources come from the platform, and splits along them fit."""

from __future__ import annotations

import pytest

import pysmpi

MACHINE = """
name: two
clusters:
  - name: nodes
    hosts: node-[0-1]
    speed: 1Gf
    cores: 8
    sockets: 2
    link: {bandwidth: 1GBps, latency: 1us}
"""


def run(main, nprocs, **options):
    return pysmpi.run(main, nprocs, compute="none", **options).returns


def kinds():
    from mpi4py import MPI

    info = MPI.Get_hw_resource_info()
    assert set(info.values()) == {"true"}
    return info.keys()


def split_by_all():
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = {}
    for kind in [*MPI.Get_hw_resource_info().keys(), "mpi_shared_memory", "nonsense"]:
        for way in (MPI.COMM_TYPE_HW_GUIDED, MPI.COMM_TYPE_RESOURCE_GUIDED):
            info = MPI.Info.Create({"mpi_hw_resource_type": kind})
            part = comm.Split_type(way, 0, info)
            members = part.allgather(comm.rank) if part else None
            assert found.setdefault(kind, members) == members
    return found


def split_downwards():
    from mpi4py import MPI

    comm, levels = MPI.COMM_WORLD, []
    while True:
        info = MPI.Info.Create()
        comm = comm.Split_type(MPI.COMM_TYPE_HW_UNGUIDED, 0, info)
        if comm == MPI.COMM_NULL:
            return levels
        levels.append((info.Get("mpi_hw_resource_type"), comm.size))


@pytest.fixture
def machine(tmp_path):
    path = tmp_path / "machine.yaml"
    path.write_text(MACHINE)
    return str(path)


def test_a_plain_host_has_sockets_and_cores(machine):
    expected = ["hwloc://Machine", "hwloc://Package", "hwloc://Core"]
    assert run(kinds, 1, platform=machine) == [expected]


def test_a_described_node_has_numa_nodes_and_caches():
    (found,) = run(kinds, 1, platform="opteron-6272")
    assert found[0] == "hwloc://Machine" and found[-1] == "hwloc://Core"
    assert {"hwloc://Package", "hwloc://NUMANode"} < set(found)
    assert any(kind.endswith("Cache") for kind in found)


def test_ranks_that_share_a_resource_are_together(machine):
    seen = run(split_by_all, 12, platform=machine, map_by="core")
    for rank, found in enumerate(seen):
        node = range(8) if rank < 8 else range(8, 12)
        socket = rank // 4 * 4
        assert found == {
            "hwloc://Machine": list(node),
            "mpi_shared_memory": list(node),
            "hwloc://Package": list(range(socket, socket + 4)),
            "hwloc://Core": [rank],
            "nonsense": None,
        }


def test_ranks_go_down_the_levels_of_the_hardware(machine):
    seen = run(split_downwards, 12, platform=machine, map_by="core")
    above = [("hwloc://Machine", 8), ("hwloc://Package", 4), ("hwloc://Core", 1)]
    assert seen == [above] * 8 + [[("hwloc://Machine", 4), ("hwloc://Core", 1)]] * 4


def test_process_sets_are_resources():
    def main():
        from mpi4py import MPI

        sizes = []
        for name in ("mpi://WORLD", "mpi://SELF", "mpi://NOBODY"):
            info = MPI.Info.Create({"mpi_pset_name": name})
            part = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_RESOURCE_GUIDED, 0, info)
            sizes.append(part.size if part else 0)
        return sizes

    assert run(main, 3) == [[3, 1, 0]] * 3
