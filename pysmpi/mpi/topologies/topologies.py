"""Communicators with a topology (MPI 4.1, chapter 8)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from pysmpi.mpi.base import errhandlers
from pysmpi.mpi.base.constants import (
    CART,
    DIST_GRAPH,
    ERR_ARG,
    ERR_DIMS,
    ERR_RANK,
    GRAPH,
    PROC_NULL,
)
from pysmpi.mpi.base.exceptions import cint, fail
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.buffers.spellings import is_integral
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.collective.neighborhood import NeighborhoodCollectives
from pysmpi.mpi.communicators.comm import CONTEXT_BYTES, Comm, use_class
from pysmpi.mpi.communicators.intracomm import Intracomm
from pysmpi.mpi.groups.agreement import agree
from pysmpi.mpi.groups.communicator import Communicator, new_communicator
from pysmpi.mpi.topologies.creation import CLASSES, integers
from pysmpi.mpi.topologies.graphs import DistGraph, Graph, Grid, balanced

__all__ = ["Topocomm", "Cartcomm", "Graphcomm", "Distgraphcomm", "Compute_dims"]


class Topocomm(NeighborhoodCollectives, Intracomm):
    """Topology intracommunicator."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Any:
        self = super().__new__(cls, comm)
        if self._impl is not None and not self.is_topo:
            raise TypeError("expecting a topology communicator")
        return self

    @property
    def degrees(self) -> tuple[int, int]:
        """Number of incoming and outgoing neighbors."""
        sources, destinations = self.inoutedges
        return len(sources), len(destinations)

    @property
    def indegree(self) -> int:
        """Number of incoming neighbors."""
        return self.degrees[0]

    @property
    def outdegree(self) -> int:
        """Number of outgoing neighbors."""
        return self.degrees[1]

    @property
    def inoutedges(self) -> tuple[list[int], list[int]]:
        """Incoming and outgoing neighbors."""
        communicator = self._communicator()
        if communicator.topology is None:
            raise TypeError("expecting a topology communicator")
        me = communicator.rank_of(current().pid)
        return communicator.topology.sources(me), communicator.topology.destinations(me)

    @property
    def inedges(self) -> list[int]:
        """Incoming neighbors."""
        return self.inoutedges[0]

    @property
    def outedges(self) -> list[int]:
        """Outgoing neighbors."""
        return self.inoutedges[1]


class Cartcomm(Topocomm):
    """Cartesian topology intracommunicator."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Any:
        self = super().__new__(cls, comm)
        return _checked(self, CART, "a Cartesian")

    def _grid(self) -> Grid:
        grid: Grid = self._communicator().topology
        return grid

    @mpi.local("8.5.5")
    def Get_dim(self) -> int:
        """Return number of dimensions."""
        return len(self._grid().dims)

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.Get_dim()

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.Get_dim()

    @mpi.local("8.5.5")
    def Get_topo(self) -> tuple[list[int], list[int], list[int]]:
        """Return information on the cartesian topology."""
        communicator = self._communicator()
        grid: Grid = communicator.topology
        coords = grid.coords(communicator.rank_of(current().pid))
        return list(grid.dims), [int(period) for period in grid.periods], coords

    @property
    def topo(self) -> tuple[list[int], list[int], list[int]]:
        """Topology information."""
        return self.Get_topo()

    @property
    def dims(self) -> list[int]:
        """Dimensions."""
        return self.Get_topo()[0]

    @property
    def periods(self) -> list[int]:
        """Periodicity."""
        return self.Get_topo()[1]

    @property
    def coords(self) -> list[int]:
        """Coordinates."""
        return self.Get_topo()[2]

    @mpi.local("8.5.5")
    def Get_cart_rank(self, coords: Sequence[int]) -> int:
        """Translate logical coordinates to ranks."""
        grid = self._grid()
        numbers = integers(coords, len(grid.dims))
        rank = grid.rank(numbers)
        if rank == PROC_NULL:
            fail(ERR_ARG, f"coords {numbers} are outside a grid of {list(grid.dims)}", self)
        return rank

    @mpi.local("8.5.5")
    def Get_coords(self, rank: int) -> list[int]:
        """Translate ranks to logical coordinates."""
        grid = self._grid()
        number = cint(rank)
        if not 0 <= number < grid.size:
            fail(ERR_RANK, f"rank is {number}, expected 0 to {grid.size - 1}", self)
        return grid.coords(number)

    @mpi.local("8.5.6")
    def Shift(self, direction: int, disp: int) -> tuple[int, int]:
        """Return a process ranks for data shifting with `Sendrecv`."""
        communicator = self._communicator()
        grid: Grid = communicator.topology
        dimension, distance = cint(direction), cint(disp)
        if not 0 <= dimension < len(grid.dims):
            fail(
                ERR_ARG,
                f"direction is {dimension}, the grid has {len(grid.dims)} dimensions",
                self,
            )
        return grid.shift(communicator.rank_of(current().pid), dimension, distance)

    @mpi.collective("8.5.7")
    def Sub(self, remain_dims: Sequence[bool]) -> Cartcomm:
        """Return a lower-dimensional Cartesian topology."""
        rank = current()
        communicator = self._usable()
        grid: Grid = communicator.topology
        remain = [bool(keep) for keep in integers(remain_dims, len(grid.dims))]
        agreement = agree(
            rank,
            communicator,
            "cart_sub",
            remain,
            CONTEXT_BYTES,
            lambda _: _slices(communicator, remain),
            self,
        )
        new = agreement[grid.slice_of(communicator.rank_of(rank.pid), remain)]
        handle = Cartcomm._of(new)
        errhandlers.inherit(self, handle)
        return handle


def _slices(
    communicator: Communicator, remain: Sequence[bool]
) -> dict[tuple[int, ...], Communicator]:
    """The lower-dimensional grids, by the coordinates that are constant in them."""
    grid: Grid = communicator.topology
    members: dict[tuple[int, ...], list[int]] = {}
    for rank in range(grid.size):
        members.setdefault(grid.slice_of(rank, remain), []).append(communicator.group[rank])
    lower = grid.keep(remain)
    result = {}
    for where, pids in members.items():
        new = result[where] = new_communicator(communicator.universe, pids)
        new.topology = lower
    return result


@mpi.local("8.5.2")
def Compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """Return a balanced distribution of processes per coordinate direction."""
    total = cint(nnodes)
    if is_integral(dims) and cint(dims) < 0:
        raise ValueError(f"dims: expecting a number of dimensions, got {dims}")
    sides = [0] * cint(dims) if is_integral(dims) else integers(dims)  # type: ignore[arg-type]
    if total < 0:
        fail(ERR_ARG, f"nnodes is {total}, expected a number that is not negative")
    if any(side < 0 for side in sides):
        fail(ERR_DIMS, f"dims {sides}: a dimension is negative")
    if not sides:
        return []
    fixed = prod(side for side in sides if side)
    open_sides = sides.count(0)
    if total % fixed or (open_sides == 0 and total != fixed):
        fail(ERR_DIMS, f"dims {sides} cannot be completed to a grid of nnodes, {total}, processes")
    if open_sides:
        factors = balanced(total // fixed, open_sides) if total else (0,) * open_sides
        found = iter(factors)
        sides = [side or next(found) for side in sides]
    return sides


class Graphcomm(Topocomm):
    """General graph topology intracommunicator."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Any:
        self = super().__new__(cls, comm)
        return _checked(self, GRAPH, "a general graph")

    def _graph(self) -> Graph:
        graph: Graph = self._communicator().topology
        return graph

    @mpi.local("8.5.5")
    def Get_dims(self) -> tuple[int, int]:
        """Return the number of nodes and edges."""
        graph = self._graph()
        return graph.size, len(graph.edges)

    @property
    def dims(self) -> tuple[int, int]:
        """Number of nodes and edges."""
        return self.Get_dims()

    @property
    def nnodes(self) -> int:
        """Number of nodes."""
        return self.Get_dims()[0]

    @property
    def nedges(self) -> int:
        """Number of edges."""
        return self.Get_dims()[1]

    @mpi.local("8.5.5")
    def Get_topo(self) -> tuple[list[int], list[int]]:
        """Return index and edges."""
        graph = self._graph()
        return list(graph.index), list(graph.edges)

    @property
    def topo(self) -> tuple[list[int], list[int]]:
        """Topology information."""
        return self.Get_topo()

    @property
    def index(self) -> list[int]:
        """Index."""
        return self.Get_topo()[0]

    @property
    def edges(self) -> list[int]:
        """Edges."""
        return self.Get_topo()[1]

    @mpi.local("8.5.5")
    def Get_neighbors_count(self, rank: int) -> int:
        """Return number of neighbors of a process."""
        return len(self.Get_neighbors(rank))

    @property
    def nneighbors(self) -> int:
        """Number of neighbors."""
        return self.Get_neighbors_count(self.Get_rank())

    @mpi.local("8.5.5")
    def Get_neighbors(self, rank: int) -> list[int]:
        """Return list of neighbors of a process."""
        graph = self._graph()
        number = cint(rank)
        if not 0 <= number < graph.size:
            fail(ERR_RANK, f"rank is {number}, expected 0 to {graph.size - 1}", self)
        return graph.sources(number)

    @property
    def neighbors(self) -> list[int]:
        """Neighbors."""
        return self.Get_neighbors(self.Get_rank())


class Distgraphcomm(Topocomm):
    """Distributed graph topology intracommunicator."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Any:
        self = super().__new__(cls, comm)
        return _checked(self, DIST_GRAPH, "a distributed graph")

    @mpi.local("8.5.5")
    def Get_dist_neighbors_count(self) -> tuple[int, int, bool]:
        """Return adjacency information for a distributed graph topology."""
        communicator = self._communicator()
        graph: DistGraph = communicator.topology
        edges = graph.edges[communicator.rank_of(current().pid)]
        return len(edges.sources), len(edges.destinations), graph.weighted

    @mpi.local("8.5.5")
    def Get_dist_neighbors(
        self,
    ) -> tuple[list[int], list[int], tuple[list[int], list[int]] | None]:
        """Return adjacency information for a distributed graph topology."""
        communicator = self._communicator()
        graph: DistGraph = communicator.topology
        edges = graph.edges[communicator.rank_of(current().pid)]
        weights = None
        if graph.weighted:
            weights = list(edges.source_weights), list(edges.destination_weights)
        return list(edges.sources), list(edges.destinations), weights


def _checked(comm: Comm, kind: int, expected: str) -> Any:
    """Refuse a communicator with another topology."""
    if comm._impl is not None and comm.Get_topology() != kind:
        raise TypeError(f"expecting {expected} communicator")
    return comm


for _kind, _class in ((CART, Cartcomm), (GRAPH, Graphcomm), (DIST_GRAPH, Distgraphcomm)):
    CLASSES[_kind] = _class
    use_class(
        lambda impl, kind=_kind: (
            isinstance(impl, Communicator)
            and impl.topology is not None
            and impl.topology.kind == kind
        ),
        _class,
    )
del _kind, _class
