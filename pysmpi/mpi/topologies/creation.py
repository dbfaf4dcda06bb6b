"""Creation of topologies of communicators (MPI 4.1, section 8.5), as a mixin of `Intracomm`.

The agreement on a topology is that of any new communicator. If a program allows it, the ranks are
reordered for the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pysmpi.kernel.schedule import Schedule
from pysmpi.mpi.base import errhandlers
from pysmpi.mpi.base.constants import (
    ERR_ARG,
    ERR_DIMS,
    ERR_RANK,
    UNDEFINED,
    UNWEIGHTED,
    WEIGHTS_EMPTY,
)
from pysmpi.mpi.base.exceptions import cint, fail, integer, named, sequence, truth
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.groups.agreement import agree, tag_of
from pysmpi.mpi.groups.communicator import Communicator, new_communicator
from pysmpi.mpi.groups.handle_types import CartcommHandle as Cartcomm
from pysmpi.mpi.groups.handle_types import DistgraphcommHandle as Distgraphcomm
from pysmpi.mpi.groups.handle_types import GraphcommHandle as Graphcomm
from pysmpi.mpi.topologies.graphs import DistGraph, Edges, Graph, Grid
from pysmpi.mpi.topologies.reordering import order_for

CONTEXT_BYTES = 8  # bytes of messages to agree on a new communicator
EDGE_BYTES = 12  # source, destination and weight of an edge

# The classes of handles by the kind of their topology; the chapter of topologies adds them.
CLASSES: dict[int, Any] = {}


class TopologyCreation:
    """The calls that give a communicator a topology."""

    __slots__ = ()

    _usable: Callable[[], Communicator]
    _communicator: Callable[[], Communicator]

    @mpi.collective("8.5.1")
    def Create_cart(
        self,
        dims: Sequence[int],
        periods: Sequence[bool] | None = None,
        reorder: bool = False,
    ) -> Cartcomm:
        """Create cartesian communicator."""
        communicator = self._usable()
        grid = _grid(dims, periods)
        _check_grid(self, communicator, grid, ERR_ARG)
        result: Cartcomm = _create(self, communicator, "cart_create", grid, reorder)
        return result

    @mpi.collective("8.5.3")
    def Create_graph(
        self, index: Sequence[int], edges: Sequence[int], reorder: bool = False
    ) -> Graphcomm:
        """Create graph communicator."""
        communicator = self._usable()
        graph = _graph(index, edges)
        _check_graph(self, communicator, graph)
        result: Graphcomm = _create(self, communicator, "graph_create", graph, reorder)
        return result

    @mpi.collective("8.5.4")
    def Create_dist_graph_adjacent(
        self,
        sources: Sequence[int],
        destinations: Sequence[int],
        sourceweights: Sequence[int] | None = None,
        destweights: Sequence[int] | None = None,
        info: Info = INFO_NULL,
        reorder: bool = False,
    ) -> Distgraphcomm:
        """Create distributed graph communicator."""
        rank = current()
        communicator = self._usable()
        edges = Edges()
        edges.sources = [] if sources is None else integers(sources)
        weights = _weights(sourceweights, len(edges.sources))
        edges.source_weights = weights or []
        edges.destinations = [] if destinations is None else integers(destinations)
        other = _weights(destweights, len(edges.destinations))
        edges.destination_weights = other or []
        check_info(info)
        _check_ranks(self, communicator, "sources", edges.sources)
        _check_ranks(self, communicator, "destinations", edges.destinations)
        weighted = weights is not None or other is not None
        if weighted:
            # Weights on one side only: the other side's edges count once.
            edges.source_weights = weights or [1] * len(edges.sources)
            edges.destination_weights = other or [1] * len(edges.destinations)

        def make(values: dict[int, tuple[Edges, bool]]) -> Communicator:
            known = [values[i] for i in range(communicator.size)]
            graph = DistGraph([edges for edges, _ in known], any(w for _, w in known))
            return _equip(communicator, graph, truth(reorder))

        new = agree(rank, communicator, "dist_graph", (edges, weighted), CONTEXT_BYTES, make, self)
        result: Distgraphcomm = _handle(self, new, rank)
        return result

    @mpi.collective("8.5.4")
    def Create_dist_graph(
        self,
        sources: Sequence[int],
        degrees: Sequence[int],
        destinations: Sequence[int],
        weights: Sequence[int] | None = None,
        info: Info = INFO_NULL,
        reorder: bool = False,
    ) -> Distgraphcomm:
        """Create distributed graph communicator."""
        rank = current()
        communicator = self._usable()
        nodes = integers(sources)
        counts = integers(degrees, len(nodes))
        peers = integers(destinations, sum(counts))
        known = _weights(weights, len(peers))
        check_info(info)
        if any(count < 0 for count in counts):
            fail(ERR_ARG, f"degrees {counts}: a degree is negative", self)
        _check_ranks(self, communicator, "sources", nodes)
        _check_ranks(self, communicator, "destinations", peers)
        tails = [node for node, count in zip(nodes, counts) for _ in range(count)]
        declared = (list(zip(tails, peers, known or [1] * len(peers))), known is not None)

        def make(values: dict[int, object]) -> tuple[Communicator, Traffic]:
            graph, traffic = _gathered(communicator.size, values)
            return _equip(communicator, graph, truth(reorder)), traffic

        new, traffic = agree(rank, communicator, "dist_graph", declared, CONTEXT_BYTES, make, self)
        _exchange(rank, communicator, traffic)
        result: Distgraphcomm = _handle(self, new, rank)
        return result

    @mpi.collective("8.5.8")
    def Cart_map(self, dims: Sequence[int], periods: Sequence[bool] | None = None) -> int:
        """Determine optimal process placement on a Cartesian topology."""
        communicator = self._communicator()
        grid = _grid(dims, periods)
        _check_grid(self, communicator, grid, ERR_DIMS)
        return _mapped(communicator, grid)

    @mpi.collective("8.5.8")
    def Graph_map(self, index: Sequence[int], edges: Sequence[int]) -> int:
        """Determine optimal process placement on a graph topology."""
        communicator = self._communicator()
        graph = _graph(index, edges)
        _check_graph(self, communicator, graph)
        return _mapped(communicator, graph)


# From each rank to each other one: the number of edges in its message.
Traffic = dict[int, dict[int, int]]


def integers(values: Sequence[int], count: int | None = None) -> list[int]:
    """A list of C integers, of a given length if there is one."""
    numbers = [cint(integer(value)) for value in sequence(values)]
    if count is not None and len(numbers) != count:
        raise ValueError(f"{named(values)}expecting {count} items, got {len(numbers)}")
    return numbers


def _grid(dims: Sequence[int], periods: Any) -> Grid:
    sides = integers(dims)
    if periods is None or isinstance(periods, bool):
        periods = [truth(periods)] * len(sides)
    return Grid(sides, [bool(period) for period in integers(periods, len(sides))])


def _check_grid(comm: object, communicator: Communicator, grid: Grid, code: int) -> None:
    if any(dim < 0 for dim in grid.dims):
        fail(ERR_DIMS, f"dims {list(grid.dims)}: a dimension is negative", comm)
    if grid.size > communicator.size:
        fail(
            code,
            f"dims {list(grid.dims)} make a grid of {grid.size} processes, the communicator has "
            f"{communicator.size}",
            comm,
        )


def _graph(index: Sequence[int], edges: Sequence[int]) -> Graph:
    sums, ends = integers(index), integers(edges)
    # mpi4py also takes an index that begins with zero.
    if len(sums) > 1 and sums[0] == 0 and sums[-1] == len(ends):
        del sums[0]
    return Graph(sums, ends)


def _check_graph(comm: object, communicator: Communicator, graph: Graph) -> None:
    size, index, edges = graph.size, graph.index, graph.edges
    if size > communicator.size:
        fail(
            ERR_ARG,
            f"index: {size} nodes, the communicator has {communicator.size} processes",
            comm,
        )
    before = 0
    for node, end in enumerate(index):
        if end < before:
            fail(ERR_ARG, f"index: {end} of node {node} is less than {before} before it", comm)
        before = end
    if before > len(edges):
        fail(ERR_ARG, f"index asks for {before} edges, there are {len(edges)}", comm)
    for edge in edges:
        if not 0 <= edge < size:
            fail(ERR_ARG, f"edges: {edge} is no node, there are {size}", comm)


def _check_ranks(comm: object, communicator: Communicator, argument: str, ranks: list[int]) -> None:
    for rank in ranks:
        if not 0 <= rank < communicator.size:
            fail(ERR_RANK, f"{argument}: {rank}, expected 0 to {communicator.size - 1}", comm)


def _weights(weights: Any, count: int) -> list[int] | None:
    """The weights of edges; None if the graph has none."""
    if weights is None or (type(weights) is int and weights == UNWEIGHTED):
        return None
    if type(weights) is int and weights == WEIGHTS_EMPTY:
        if count > 0:
            raise ValueError("empty weights but nonzero degree")
        return []
    return integers(weights, count)


def _create(
    comm: object, communicator: Communicator, operation: str, topology: object, reorder: object
) -> Any:
    rank = current()
    new = agree(
        rank,
        communicator,
        operation,
        None,
        CONTEXT_BYTES,
        lambda values: _equip(communicator, topology, truth(reorder)),
        comm,
    )
    return _handle(comm, new, rank)


def _equip(communicator: Communicator, topology: Any, reorder: bool) -> Communicator:
    """A new communicator with a topology."""
    if reorder:
        members = communicator.group.take(_order(communicator, topology))
    elif topology.size == communicator.size:
        members = communicator.group
    else:
        members = communicator.group.take(range(topology.size))
    new = new_communicator(communicator.universe, members)
    new.topology = topology
    return new


# The reorderings that the ranks of a communicator have found, by topology.
ORDERS: StateSlot[Communicator, dict[object, list[int]]] = StateSlot(Communicator, dict)


def _order(communicator: Communicator, topology: object) -> list[int]:
    """The reordering of a topology's ranks, the same in every call."""
    orders = ORDERS.of(communicator)
    if isinstance(topology, Grid):
        key: object = (topology.kind, topology.dims, topology.periods)
    elif isinstance(topology, Graph):
        key = (topology.kind, topology.index, topology.edges)
    else:
        return order_for(communicator, topology)
    order = orders.get(key)
    if order is None:
        order = orders[key] = order_for(communicator, topology)
    return order


def _mapped(communicator: Communicator, topology: object) -> int:
    """The rank that the calling process would get in a topology."""
    me = communicator.rank_of(current().pid)
    order = _order(communicator, topology)
    return order.index(me) if me in order else UNDEFINED


def _handle(comm: Any, new: Communicator, rank: Rank) -> Any:
    """The handle of a new communicator; null for ranks that are not in it."""
    inside = rank.pid in new.group
    handle = CLASSES[new.topology.kind]._of(new if inside else None)
    if inside:
        errhandlers.inherit(comm, handle)
    return handle


def _gathered(size: int, values: dict[int, Any]) -> tuple[DistGraph, Traffic]:
    """The graph with the edges that the ranks have declared, and the necessary messages."""
    table = [Edges() for _ in range(size)]
    traffic: Traffic = {}
    for teller in range(size):
        for source, destination, weight in values[teller][0]:
            table[source].destinations.append(destination)
            table[source].destination_weights.append(weight)
            table[destination].sources.append(source)
            table[destination].source_weights.append(weight)
            for end in (source, destination):
                if end != teller:
                    told = traffic.setdefault(teller, {})
                    told[end] = told.get(end, 0) + 1
    return DistGraph(table, any(values[i][1] for i in range(size))), traffic


def _exchange(rank: Rank, communicator: Communicator, traffic: Traffic) -> None:
    """Let the time pass in which ranks exchange their declared edges."""
    me = communicator.rank_of(rank.pid)
    communicator.continue_call(me)
    number = communicator.next_call(me)
    schedule = Schedule()
    for teller, told in traffic.items():
        if me in told:
            schedule.irecv(teller, told[me] * EDGE_BYTES)
    for peer, count in traffic.get(me, {}).items():
        schedule.isend(peer, count * EDGE_BYTES)
    schedule.waitall()
    rank.process.execute(schedule, communicator.coll, me, tag_of(number, "dist_graph_edges"))
