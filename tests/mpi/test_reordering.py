"""Reordering the ranks of topologies for the machine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pysmpi
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.groups.communicator import world_communicator
from pysmpi.mpi.topologies.graphs import DistGraph, Edges, Grid
from pysmpi.mpi.topologies.reordering import Places, in_blocks, order_for

NODES = """
name: nodes
clusters:
  - name: nodes
    hosts: node-[0-7]
    speed: 10Gf
    cores: {cores}
    sockets: 2
    link: {{bandwidth: 100Gbps, latency: 500ns}}
    loopback: {{bandwidth: 8GBps, latency: 300ns}}
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Clusters by the number of cores of their nodes."""
    folder = tmp_path_factory.mktemp("machines")
    found = {}
    for cores in (4, 16):
        path = folder / f"nodes{cores}.yaml"
        path.write_text(NODES.format(cores=cores))
        found[cores] = str(path)
    return found


def run(main: Any, nprocs: int, platform: str, map_by: str = "core") -> list[Any]:
    """The return values of a function in each rank."""
    result = pysmpi.run(main, nprocs, platform=platform, map_by=map_by, compute="none")
    return result.returns


def places_of(grid: Any) -> Places:
    """The hosts of the first ranks of the world."""
    return Places(world_communicator(current().world), grid.size)


def test_a_reordered_grid_talks_less_to_other_hosts(machines: dict[int, str]) -> None:
    """Rows of a grid on nodes of 16 cores become blocks of the grid."""
    dims = [8, 8]

    def main() -> Any:
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        host = MPI.Get_processor_name()

        def outside(reorder: bool) -> int:
            cart = world.Create_cart(dims, False, reorder)
            hosts = cart.allgather(host)
            edges = [peer for peer in cart.outedges if peer != MPI.PROC_NULL]
            return int(cart.allreduce(sum(hosts[peer] != host for peer in edges)))

        blocks = world.Create_cart(dims, False, True)
        assert sorted(world.allgather(blocks.rank)) == list(range(world.size))
        assert blocks.rank == world.Cart_map(dims)
        kept = world.Create_cart(dims, False)
        assert kept.rank == world.rank
        return outside(False), outside(True)

    before, after = run(main, 64, machines[16])[0]
    assert (before, after) == (2 * 3 * 8, 2 * 2 * 8)


def test_ranks_that_went_round_the_hosts_are_gathered(machines: dict[int, str]) -> None:
    """A ring whose neighbours are all on other hosts becomes one run of neighbours a host."""

    def main() -> Any:
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        ring = world.Create_graph(
            [2 * (i + 1) for i in range(world.size)],
            [peer % world.size for i in range(world.size) for peer in (i - 1, i + 1)],
            reorder=True,
        )
        hosts = ring.allgather(MPI.Get_processor_name())
        return sum(hosts[i] != hosts[i - 1] for i in range(world.size)), len(set(hosts))

    assert run(main, 32, machines[4], "node")[0] == (8, 8)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from([[4, 3], [24], [2, 3, 2], [6, 4], [3, 7]]),
    st.sampled_from(["core", "node", "socket"]),
    st.booleans(),
)
def test_orders_are_permutations_that_cost_no_more(
    machines: dict[int, str], dims: list[int], map_by: str, periodic: bool
) -> None:
    grid = Grid(dims, [periodic] * len(dims))

    def main() -> None:
        order = order_for(world_communicator(current().world), grid)
        places = places_of(grid)
        assert sorted(order) == list(range(grid.size))
        assert places.cost(grid, order) <= places.cost(grid, range(grid.size)) * (1 + 1e-9)
        assert order == order_for(world_communicator(current().world), grid)

    run(main, grid.size, machines[4], map_by)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_weighted_graph_is_reordered(machines: dict[int, str], data: Any) -> None:
    size = 20
    edges = [Edges() for _ in range(size)]
    for _ in range(data.draw(st.integers(0, 60))):
        one, other = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
        edges[one].destinations.append(other)
        edges[one].destination_weights.append(data.draw(st.integers(1, 9)))
    graph = DistGraph(edges, True)

    def main() -> None:
        order = order_for(world_communicator(current().world), graph)
        assert sorted(order) == list(range(size))

    run(main, size, machines[4])


@pytest.mark.parametrize("dims", [[8, 8], [4, 4, 4], [16, 4], [64]])
def test_every_host_has_a_block(machines: dict[int, str], dims: list[int]) -> None:
    grid = Grid(dims, [True] * len(dims))

    def main() -> None:
        places = places_of(grid)
        order = in_blocks(places, grid)
        assert order is not None
        assert sorted(order) == list(range(grid.size))
        for host in range(len(places.ranks)):
            coords = [grid.coords(i) for i in range(grid.size) if places.host[order[i]] == host]
            sides = [len({c[i] for c in coords}) for i in range(len(dims))]
            volume = 1
            for side in sides:
                volume *= side
            assert volume == len(coords) == len(places.ranks[host])

    run(main, grid.size, machines[16])
