"""Process topologies (MPI 4.1, chapter 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.abi.engine import constants
from pysmpi.abi.entry import entry
from pysmpi.abi.values import give, read_integers, write_integer, write_integers

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI


@entry
def Cart_create(
    comm_old: MPI.Intracomm, ndims: int, dims: int, periods: int, reorder: int, comm_cart: int
) -> None:
    made = comm_old.Create_cart(
        read_integers(dims, ndims), list(map(bool, read_integers(periods, ndims))), bool(reorder)
    )
    give(comm_cart, made)


@entry
def Dims_create(nnodes: int, ndims: int, dims: int) -> None:
    write_integers(dims, MPI.Compute_dims(nnodes, read_integers(dims, ndims)))


@entry
def Graph_create(
    comm_old: MPI.Intracomm, nnodes: int, indx: int, edges: int, reorder: int, comm_graph: int
) -> None:
    index = read_integers(indx, nnodes)
    number = index[-1] if index else 0
    give(comm_graph, comm_old.Create_graph(index, read_integers(edges, number), bool(reorder)))


def _weights(address: int, count: int) -> Any:
    if address == _SPECIAL[0]:
        return MPI.UNWEIGHTED
    if address == _SPECIAL[1]:
        return MPI.WEIGHTS_EMPTY
    return read_integers(address, count)


# The addresses of UNWEIGHTED and WEIGHTS_EMPTY.
_SPECIAL = constants()


@entry
def Dist_graph_create_adjacent(
    comm_old: MPI.Intracomm, indegree: int, sources: int, sourceweights: int, outdegree: int,
    destinations: int, destweights: int, info: MPI.Info, reorder: int, comm_dist_graph: int,
) -> None:  # fmt: skip
    made = comm_old.Create_dist_graph_adjacent(
        read_integers(sources, indegree), read_integers(destinations, outdegree),
        _weights(sourceweights, indegree), _weights(destweights, outdegree), info, bool(reorder),
    )  # fmt: skip
    give(comm_dist_graph, made)


@entry
def Dist_graph_create(
    comm_old: MPI.Intracomm, n: int, sources: int, degrees: int, destinations: int, weights: int,
    info: MPI.Info, reorder: int, comm_dist_graph: int,
) -> None:  # fmt: skip
    numbers = read_integers(degrees, n)
    made = comm_old.Create_dist_graph(
        read_integers(sources, n), numbers, read_integers(destinations, sum(numbers)),
        _weights(weights, sum(numbers)), info, bool(reorder),
    )  # fmt: skip
    give(comm_dist_graph, made)


@entry
def Topo_test(comm: MPI.Comm, status: int) -> None:
    write_integer(status, comm.Get_topology())


@entry
def Cartdim_get(comm: MPI.Cartcomm, ndims: int) -> None:
    write_integer(ndims, comm.Get_dim())


@entry
def Cart_get(comm: MPI.Cartcomm, maxdims: int, dims: int, periods: int, coords: int) -> None:
    for address, values in zip((dims, periods, coords), comm.Get_topo()):
        write_integers(address, list(map(int, values))[:maxdims])


@entry
def Cart_rank(comm: MPI.Cartcomm, coords: int, rank: int) -> None:
    write_integer(rank, comm.Get_cart_rank(read_integers(coords, comm.Get_dim())))


@entry
def Cart_coords(comm: MPI.Cartcomm, rank: int, maxdims: int, coords: int) -> None:
    write_integers(coords, comm.Get_coords(rank)[:maxdims])


@entry
def Cart_shift(
    comm: MPI.Cartcomm, direction: int, disp: int, rank_source: int, rank_dest: int
) -> None:
    source, dest = comm.Shift(direction, disp)
    write_integer(rank_source, source)
    write_integer(rank_dest, dest)


@entry
def Cart_sub(comm: MPI.Cartcomm, remain_dims: int, newcomm: int) -> None:
    kept = read_integers(remain_dims, comm.Get_dim())
    give(newcomm, comm.Sub(list(map(bool, kept))))


@entry
def Cart_map(comm: MPI.Intracomm, ndims: int, dims: int, periods: int, newrank: int) -> None:
    place = comm.Cart_map(
        read_integers(dims, ndims), list(map(bool, read_integers(periods, ndims)))
    )
    write_integer(newrank, place)


@entry
def Graphdims_get(comm: MPI.Graphcomm, nnodes: int, nedges: int) -> None:
    nodes, edges = comm.Get_dims()
    write_integer(nnodes, nodes)
    write_integer(nedges, edges)


@entry
def Graph_get(comm: MPI.Graphcomm, maxindex: int, maxedges: int, indx: int, edges: int) -> None:
    index, ends = comm.Get_topo()
    write_integers(indx, index[:maxindex])
    write_integers(edges, ends[:maxedges])


@entry
def Graph_neighbors_count(comm: MPI.Graphcomm, rank: int, nneighbors: int) -> None:
    write_integer(nneighbors, comm.Get_neighbors_count(rank))


@entry
def Graph_neighbors(comm: MPI.Graphcomm, rank: int, maxneighbors: int, neighbors: int) -> None:
    write_integers(neighbors, comm.Get_neighbors(rank)[:maxneighbors])


@entry
def Graph_map(comm: MPI.Intracomm, nnodes: int, indx: int, edges: int, newrank: int) -> None:
    index = read_integers(indx, nnodes)
    number = index[-1] if index else 0
    write_integer(newrank, comm.Graph_map(index, read_integers(edges, number)))


def _counts(comm: Any) -> tuple[int, int, bool]:
    sources, targets, weighted = comm.Get_dist_neighbors_count()
    return sources, targets, weighted


@entry
def Dist_graph_neighbors_count(
    comm: MPI.Distgraphcomm, indegree: int, outdegree: int, weighted: int
) -> None:
    for address, value in zip((indegree, outdegree, weighted), _counts(comm)):
        write_integer(address, value)


@entry
def Dist_graph_neighbors(
    comm: MPI.Distgraphcomm, maxindegree: int, sources: int, sourceweights: int, maxoutdegree: int,
    destinations: int, destweights: int,
) -> None:  # fmt: skip
    before, after, weights = comm.Get_dist_neighbors()
    write_integers(sources, before[:maxindegree])
    write_integers(destinations, after[:maxoutdegree])
    if weights is not None:
        for address, values, most in (
            (sourceweights, weights[0], maxindegree), (destweights, weights[1], maxoutdegree)
        ):  # fmt: skip
            if address not in _SPECIAL:
                write_integers(address, list(values)[:most])
