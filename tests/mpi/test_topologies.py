"""Grids, graphs and distributed graphs, against the definitions of MPI."""

from __future__ import annotations

from math import prod
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import simulate

from pysmpi.mpi import MPI
from pysmpi.mpi.topologies.graphs import Grid, balanced

dims_of_grids = st.lists(st.integers(1, 4), min_size=0, max_size=4)


@st.composite
def grids(draw: Any) -> Grid:
    """Small grids, periodic in some dimensions."""
    dims = draw(dims_of_grids)
    periods = draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))
    return Grid(dims, periods)


@given(grids())
def test_ranks_and_coordinates_are_inverse_and_row_major(grid: Grid) -> None:
    everywhere = [grid.coords(rank) for rank in range(grid.size)]
    assert everywhere == sorted(everywhere)
    assert [grid.rank(coords) for coords in everywhere] == list(range(grid.size))


@given(grids())
def test_neighbours_of_grids_are_those_of_a_graph(grid: Grid) -> None:
    graph = nx.grid_graph(dim=grid.dims[::-1], periodic=grid.periods[::-1]) if grid.dims else None
    for rank in range(grid.size):
        found = {peer for peer in grid.sources(rank) if peer >= 0 and peer != rank}
        if graph is None:
            assert found == set()
            continue
        here = tuple(grid.coords(rank))
        node = here if len(here) > 1 else here[0]
        known = {other if isinstance(other, tuple) else (other,) for other in graph[node]}
        assert found == {grid.rank(coords) for coords in known} - {rank}


@given(grids(), st.data())
def test_a_shift_is_undone_by_the_opposite_one(grid: Grid, data: Any) -> None:
    if not grid.dims:
        return
    rank = data.draw(st.integers(0, grid.size - 1))
    direction = data.draw(st.integers(0, len(grid.dims) - 1))
    disp = data.draw(st.integers(-5, 5))
    source, destination = grid.shift(rank, direction, disp)
    assert grid.shift(rank, direction, -disp) == (destination, source)
    if destination >= 0:
        assert grid.shift(destination, direction, disp)[0] == rank


@given(st.integers(1, 5000), st.integers(1, 5))
def test_balanced_factors(total: int, count: int) -> None:
    found = balanced(total, count)
    assert prod(found) == total
    assert list(found) == sorted(found, reverse=True)
    if count == 2:
        assert found[1] == max(d for d in range(1, int(total**0.5) + 1) if total % d == 0)


@pytest.mark.parametrize(
    "nodes, dims, expected",
    [
        (12, 2, [4, 3]),
        (24, 3, [4, 3, 2]),
        (6, [3, 0], [3, 2]),
        (60, [0, 5, 0], [4, 5, 3]),
        (7, 3, [7, 1, 1]),
        (6, [3, 2], [3, 2]),
        (1024, 40, [2] * 10 + [1] * 30),
        (5, [], []),
    ],
)
def test_compute_dims(nodes: int, dims: Any, expected: list[int]) -> None:
    assert MPI.Compute_dims(nodes, dims) == expected


@pytest.mark.parametrize("nodes, dims", [(6, [4, 0]), (6, [-1, 0]), (6, [3, 3])])
def test_compute_dims_refuses(nodes: int, dims: Any) -> None:
    with pytest.raises(MPI.Exception) as caught:
        MPI.Compute_dims(nodes, dims)
    assert caught.value.Get_error_class() == MPI.ERR_DIMS


def test_a_grid_smaller_than_its_communicator_leaves_ranks_out() -> None:
    def main(rank: Any) -> Any:
        cart = MPI.COMM_WORLD.Create_cart([2, 2], [True, False])
        if not cart:
            return cart == MPI.COMM_NULL, type(cart) is MPI.Cartcomm
        return cart.topo, cart.Shift(0, 1), cart.Shift(1, 1), cart.inoutedges[0]

    null = MPI.PROC_NULL
    assert simulate(5, main) == [
        (([2, 2], [1, 0], [0, 0]), (2, 2), (null, 1), [2, 2, null, 1]),
        (([2, 2], [1, 0], [0, 1]), (3, 3), (0, null), [3, 3, 0, null]),
        (([2, 2], [1, 0], [1, 0]), (0, 0), (null, 3), [0, 0, null, 3]),
        (([2, 2], [1, 0], [1, 1]), (1, 1), (2, null), [1, 1, 2, null]),
        (True, True),
    ]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.data())
def test_sub_grids_keep_the_coordinates_that_remain(dims: list[int], data: Any) -> None:
    remain = data.draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))

    def main(rank: Any) -> None:
        cart = MPI.COMM_WORLD.Create_cart(dims, True)
        sub = cart.Sub(remain)
        assert sub.dims == [dim for dim, keep in zip(dims, remain) if keep]
        assert sub.coords == [x for x, keep in zip(cart.coords, remain) if keep]
        fixed = tuple(x for x, keep in zip(cart.coords, remain) if not keep)
        assert set(sub.allgather(fixed)) == {fixed}
        sub.Free()
        cart.Free()

    simulate(prod(dims), main)


def test_graph() -> None:
    index, edges = [2, 3, 4, 6], [1, 3, 0, 3, 0, 2]

    def main(rank: Any) -> Any:
        graph = MPI.COMM_WORLD.Create_graph(index, edges)
        again = MPI.COMM_WORLD.Create_graph([0, *index], edges)
        assert graph.topo == again.topo == (index, edges)
        assert graph.dims == (4, 6)
        copy = graph.Dup()
        assert type(copy) is MPI.Graphcomm and copy.neighbors == graph.neighbors
        return graph.neighbors

    assert simulate(4, main) == [[1, 3], [0], [3], [0, 2]]


def test_a_distributed_graph_gathers_edges_that_others_declare() -> None:
    """Rank 0 declares all edges of a ring, with the sum of their ends as weights."""
    size = 4

    def main(rank: Any) -> Any:
        world = MPI.COMM_WORLD
        if world.rank == 0:
            nodes = list(range(size))
            ring = [(i + 1) % size for i in nodes]
            weights = [a + b for a, b in zip(nodes, ring)]
            graph = world.Create_dist_graph(nodes, [1] * size, ring, weights)
        else:
            graph = world.Create_dist_graph([], [], [], MPI.WEIGHTS_EMPTY)
        begun = MPI.Wtime()
        graph.neighbor_allgather(world.rank)
        assert MPI.Wtime() > begun
        return graph.Get_dist_neighbors()

    assert simulate(size, main) == [
        ([(i - 1) % size], [(i + 1) % size], ([i + (i - 1) % size], [i + (i + 1) % size]))
        for i in range(size)
    ]


@pytest.mark.parametrize(
    "call, code",
    [
        (lambda w: w.Create_cart([3]), MPI.ERR_ARG),
        (lambda w: w.Create_cart([-1]), MPI.ERR_DIMS),
        (lambda w: w.Cart_map([3]), MPI.ERR_DIMS),
        (lambda w: w.Create_graph([1, 2, 3], [0, 0, 0]), MPI.ERR_ARG),
        (lambda w: w.Create_graph([1, 0], [0]), MPI.ERR_ARG),
        (lambda w: w.Create_graph([1, 2], [5, 5]), MPI.ERR_ARG),
        (lambda w: w.Create_dist_graph([0], [1], [7]), MPI.ERR_RANK),
        (lambda w: w.Create_dist_graph_adjacent([7], []), MPI.ERR_RANK),
        (lambda w: w.Create_cart([2]).Get_coords(7), MPI.ERR_RANK),
        (lambda w: w.Create_cart([2]).Get_cart_rank([7]), MPI.ERR_ARG),
        (lambda w: w.Create_cart([2]).Shift(1, 1), MPI.ERR_ARG),
        (lambda w: w.Create_graph([1, 2], [1, 0]).Get_neighbors(2), MPI.ERR_RANK),
    ],
)
def test_wrong_arguments(call: Any, code: int) -> None:
    def main(rank: Any) -> int:
        with pytest.raises(MPI.Exception) as caught:
            call(MPI.COMM_WORLD)
        return int(caught.value.Get_error_class())

    assert simulate(2, main) == [code, code]


@pytest.mark.parametrize(
    "call",
    [
        lambda w: w.Create_cart([2], [True, True]),
        lambda w: w.Create_cart([2]).Sub([True, True]),
        lambda w: w.Create_dist_graph([0], [2], [0]),
        lambda w: w.Create_dist_graph_adjacent([0], [], MPI.WEIGHTS_EMPTY),
    ],
)
def test_wrong_lengths(call: Any) -> None:
    def main(rank: Any) -> None:
        with pytest.raises(ValueError):
            call(MPI.COMM_WORLD)

    simulate(2, main)


def test_handles_of_one_topology_are_not_taken_for_another() -> None:
    cart = MPI.COMM_SELF.Create_cart([1])
    assert MPI.Cartcomm(cart) == MPI.Topocomm(cart) == cart
    assert type(MPI.Comm.fromhandle(cart.handle)) is MPI.Cartcomm
    for wrong in (MPI.Graphcomm, MPI.Distgraphcomm):
        with pytest.raises(TypeError):
            wrong(cart)
    with pytest.raises(TypeError):
        MPI.Topocomm(MPI.COMM_SELF)
    cart.Free()
