"""The ranks of processes in a topology, if the program lets MPI choose (`reorder`).

Processes do not move; reordering gives neighbouring ranks to processes that are near each other.
The distance is the time of a message of `PROBE` bytes in the network model. Three orders are
compared, by the sum of these times over all edges, times their weights:

- the current order of the processes;
- for grids on hosts with the same number of processes, a block of the grid for each host, with the
  smallest surface (W. Gropp, Using node information to implement MPI Cartesian topologies, EuroMPI
  2018);
- a region for each host, grown vertex by vertex along the heaviest edges, next to existing regions
  (after T. Hoefler and M. Snir, Generic topology mapping strategies for large-scale parallel
  architectures, ICS 2011).

The first of the best orders is used. The same ranks on the same machine therefore always get the
same order, and reordering never increases the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.topologies.graphs import Grid

PROBE = 4096  # bytes of the message for the distance of two hosts
MANY_HOSTS = 256  # beyond this, hosts are taken in their order instead of by distance


class Places:
    """The hosts of the first ranks of a communicator, and their distances."""

    def __init__(self, communicator: Communicator, size: int) -> None:
        ranks = communicator.universe.ranks
        self.engine = communicator.universe.engine
        self.host: list[int] = []  # of each rank, numbered in order
        self.ranks: list[list[int]] = []  # of each host
        numbers: dict[object, int] = {}
        for rank in range(size):
            place = ranks[communicator.group[rank]].host
            number = numbers.setdefault(place, len(numbers))
            self.host.append(number)
            if number == len(self.ranks):
                self.ranks.append([])
            self.ranks[number].append(rank)
        self.slots = [communicator.p2p.members[members[0]].slot for members in self.ranks]
        self._distances: dict[int, float] = {}

    def distance(self, one: int, other: int) -> float:
        """The seconds of a message between two hosts."""
        key = one * len(self.slots) + other
        result = self._distances.get(key)
        if result is None:
            plan = self.engine.book.plan(self.slots[one], self.slots[other], PROBE)
            rate: float = min([plan.bound, *(link.capacity for link in plan.constraints)])
            result = plan.latency + (plan.volume / (rate * plan.factor) if rate > 0.0 else 0.0)
            self._distances[key] = result
        return result

    def cost(self, topology: Any, order: Sequence[int]) -> float:
        """The seconds of a message over every edge, if rank i is process `order[i]`."""
        host = [self.host[process] for process in order]
        distance = self.distance
        total = 0.0
        for rank in range(topology.size):
            for peer, weight in topology.weights(rank):
                total += weight * distance(host[rank], host[peer])
        return total


def order_for(communicator: Communicator, topology: Any) -> list[int]:
    """The rank in the old communicator of each rank of a topology."""
    size = topology.size
    places = Places(communicator, size)
    best = list(range(size))
    if len(places.ranks) < 2:
        return best
    least = places.cost(topology, best)
    for propose in (in_blocks, grown):
        order = propose(places, topology)
        if order is not None:
            cost = places.cost(topology, order)
            # Sums of the same distances in another order differ in their last digits.
            if cost < least * (1.0 - 1e-9):
                best, least = order, cost
    return best


def in_blocks(places: Places, topology: object) -> list[int] | None:
    """A block of a grid for each host; None where hosts differ or no block fits."""
    each = len(places.ranks[0])
    if not isinstance(topology, Grid) or any(len(ranks) != each for ranks in places.ranks):
        return None
    dims = topology.dims
    block = _best_block(topology, each)
    if block is None or each == 1:
        return None
    inner = Grid(block, [False] * len(dims))
    outer = Grid([dim // side for dim, side in zip(dims, block)], [False] * len(dims))
    order = []
    for rank in range(topology.size):
        coords = topology.coords(rank)
        host = outer.rank([x // side for x, side in zip(coords, block)])
        place = inner.rank([x % side for x, side in zip(coords, block)])
        order.append(places.ranks[host][place])
    return order


def _best_block(grid: Grid, volume: int) -> tuple[int, ...] | None:
    """The block of a given volume that divides a grid, with the fewest edges between copies."""
    dims = grid.dims
    best: tuple[int, ...] | None = None
    least = grid.size * len(dims) + 1

    def cut(block: tuple[int, ...]) -> int:
        edges = 0
        for dim, side, periodic in zip(dims, block, grid.periods):
            blocks = dim // side
            planes = blocks if periodic and blocks > 1 else blocks - 1
            edges += planes * (grid.size // dim)
        return edges

    def extend(block: tuple[int, ...], rest: int) -> None:
        nonlocal best, least
        if len(block) == len(dims):
            if rest == 1 and cut(block) < least:
                best, least = block, cut(block)
            return
        dim = dims[len(block)]
        for side in range(min(dim, rest), 0, -1):
            if dim % side == 0 and rest % side == 0:
                extend((*block, side), rest // side)

    extend((), volume)
    return best


class Region:
    """The vertices of a graph without a process, and their edges to vertices with one."""

    def __init__(self, neighbors: list[dict[int, int]]) -> None:
        self.neighbors = neighbors
        self.free = [True] * len(neighbors)
        self.pull = [0] * len(neighbors)  # weight of the edges to vertices that are placed
        self.heap = [(0, -sum(edges.values()), v) for v, edges in enumerate(neighbors)]
        self.heap.sort()

    def seed(self) -> int:
        """The free vertex with the heaviest edges to placed ones; if it has none, the heaviest."""
        while True:
            pull, _, vertex = heappop(self.heap)
            if self.free[vertex] and -pull == self.pull[vertex]:
                return vertex

    def place(self, vertex: int) -> None:
        """A vertex has got its process."""
        self.free[vertex] = False
        for other, weight in self.neighbors[vertex].items():
            if self.free[other]:
                self.pull[other] += weight
                heappush(self.heap, (-self.pull[other], 0, other))

    def grow(self, seed: int, count: int) -> list[int]:
        """Place `count` vertices, each hanging as much as possible on those before it."""
        result: list[int] = []
        pull: dict[int, int] = {}
        heap: list[tuple[int, int, int]] = []
        vertex = seed
        while True:
            result.append(vertex)
            self.place(vertex)
            if len(result) == count:
                return result
            for other, weight in self.neighbors[vertex].items():
                if self.free[other]:
                    pull[other] = pull.get(other, 0) + weight
                    heappush(heap, (-pull[other], -self.pull[other], other))
            while heap and not (self.free[heap[0][2]] and -heap[0][0] == pull[heap[0][2]]):
                heappop(heap)
            vertex = heappop(heap)[2] if heap else self.seed()


def grown(places: Places, topology: Any) -> list[int] | None:
    """A connected region of the graph for each host, close to the regions of its neighbours."""
    neighbors: list[dict[int, int]] = [{} for _ in range(topology.size)]
    for rank in range(topology.size):
        for peer, weight in topology.weights(rank):
            if peer != rank:
                neighbors[rank][peer] = neighbors[rank].get(peer, 0) + weight
                neighbors[peer][rank] = neighbors[peer].get(rank, 0) + weight
    region = Region(neighbors)
    order = [-1] * topology.size
    unused = list(range(len(places.ranks)))
    while unused:
        seed = region.seed()
        around = [
            (places.host[order[other]], weight)
            for other, weight in neighbors[seed].items()
            if order[other] >= 0
        ]
        host = unused[0]
        if around and len(places.ranks) <= MANY_HOSTS:
            host = min(
                unused, key=lambda h: sum(w * places.distance(h, near) for near, w in around)
            )
        unused.remove(host)
        ranks = places.ranks[host]
        for vertex, rank in zip(region.grow(seed, len(ranks)), ranks):
            order[vertex] = rank
    return order
