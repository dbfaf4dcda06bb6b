"""The topologies of communicators as data: grids, graphs, and distributed graphs.

MPI 4.1, chapter 8. A topology belongs to all ranks of a communicator. `sources(rank)` and
`destinations(rank)` are its neighbours in the order of the neighbourhood collectives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

from pysmpi.mpi.base.constants import CART, DIST_GRAPH, GRAPH, PROC_NULL


class Grid:
    """A Cartesian grid; ranks are in row-major order of their coordinates."""

    __slots__ = ("dims", "periods", "size", "strides")

    kind = CART

    def __init__(self, dims: Sequence[int], periods: Sequence[bool]) -> None:
        self.dims = tuple(dims)
        self.periods = tuple(map(bool, periods))
        self.size = prod(self.dims)
        strides = []
        stride = 1
        for dim in reversed(self.dims):
            strides.append(stride)
            stride *= dim
        self.strides = tuple(reversed(strides))

    def coords(self, rank: int) -> list[int]:
        """The coordinates of a rank."""
        return [rank // stride % dim for stride, dim in zip(self.strides, self.dims)]

    def rank(self, coords: Sequence[int]) -> int:
        """The rank at some coordinates, wrapped around in periodic dimensions.

        PROC_NULL if they are outside.
        """
        rank = 0
        for coord, dim, periodic, stride in zip(coords, self.dims, self.periods, self.strides):
            if not 0 <= coord < dim:
                if not periodic:
                    return PROC_NULL
                coord %= dim
            rank += coord * stride
        return rank

    def shift(self, rank: int, direction: int, disp: int) -> tuple[int, int]:
        """(source, destination) for moving data by `disp` along a dimension."""
        coords = self.coords(rank)
        here = coords[direction]
        coords[direction] = here - disp
        source = self.rank(coords)
        coords[direction] = here + disp
        return source, self.rank(coords)

    def sources(self, rank: int) -> list[int]:
        """The neighbours before and behind, a dimension after the other; PROC_NULL at edges."""
        return [peer for i in range(len(self.dims)) for peer in self.shift(rank, i, 1)]

    def destinations(self, rank: int) -> list[int]:
        """The same as the sources."""
        return self.sources(rank)

    def weights(self, rank: int) -> Iterator[tuple[int, int]]:
        """(neighbour, weight) of the messages that a rank sends."""
        for peer in self.sources(rank):
            if peer >= 0:
                yield peer, 1

    def keep(self, remain: Sequence[bool]) -> Grid:
        """The grid of the dimensions that are to remain."""
        kept = [i for i, keep in enumerate(remain) if keep]
        return Grid([self.dims[i] for i in kept], [self.periods[i] for i in kept])

    def slice_of(self, rank: int, remain: Sequence[bool]) -> tuple[int, ...]:
        """The common coordinates of the ranks of one lower-dimensional grid."""
        return tuple(coord for coord, keep in zip(self.coords(rank), remain) if not keep)


class Graph:
    """A graph that every rank knows: `index` are the running sums of degrees."""

    __slots__ = ("index", "edges", "size")

    kind = GRAPH

    def __init__(self, index: Sequence[int], edges: Sequence[int]) -> None:
        self.index = tuple(index)
        self.edges = tuple(edges)
        self.size = len(self.index)

    def sources(self, rank: int) -> list[int]:
        """The neighbours of a rank."""
        first = self.index[rank - 1] if rank else 0
        return list(self.edges[first : self.index[rank]])

    def destinations(self, rank: int) -> list[int]:
        """The same as the sources."""
        return self.sources(rank)

    def weights(self, rank: int) -> Iterator[tuple[int, int]]:
        """(neighbour, weight) of the messages that a rank sends."""
        for peer in self.sources(rank):
            yield peer, 1


class Edges:
    """The edges of one rank in a distributed graph, with their weights."""

    __slots__ = ("sources", "source_weights", "destinations", "destination_weights")

    def __init__(self) -> None:
        self.sources: list[int] = []
        self.source_weights: list[int] = []
        self.destinations: list[int] = []
        self.destination_weights: list[int] = []


class DistGraph:
    """A graph in which each rank knows its own edges only."""

    __slots__ = ("edges", "weighted", "size")

    kind = DIST_GRAPH

    def __init__(self, edges: Sequence[Edges], weighted: bool) -> None:
        self.edges = edges
        self.weighted = weighted
        self.size = len(edges)

    def sources(self, rank: int) -> list[int]:
        """The ranks from which a rank receives."""
        return list(self.edges[rank].sources)

    def destinations(self, rank: int) -> list[int]:
        """The ranks to which a rank sends."""
        return list(self.edges[rank].destinations)

    def weights(self, rank: int) -> Iterator[tuple[int, int]]:
        """(neighbour, weight) of the messages that a rank sends."""
        edges = self.edges[rank]
        if self.weighted:
            yield from zip(edges.destinations, edges.destination_weights)
        else:
            for peer in edges.destinations:
                yield peer, 1


@lru_cache(maxsize=64)  # all ranks ask for the same
def balanced(total: int, count: int) -> tuple[int, ...]:
    """`count` factors of `total`, as close to each other as possible, the largest first.

    Among all lists of factors, this one has the smallest largest factor, then the smallest second
    one, and so on.
    """
    divisors = _divisors(total)

    def split(rest: int, count: int, most: int) -> tuple[int, ...] | None:
        if rest == 1:
            return (1,) * count
        for first in divisors:
            if first > most:
                break
            if first > 1 and rest % first == 0 and first**count >= rest:
                others = split(rest // first, count - 1, first)
                if others is not None:
                    return (first, *others)
        return None

    result = split(total, count, total)
    assert result is not None
    return result


def _divisors(total: int) -> list[int]:
    """The divisors of a number, in order."""
    primes: list[tuple[int, int]] = []
    rest, factor = total, 2
    while factor * factor <= rest:
        power = 0
        while rest % factor == 0:
            rest //= factor
            power += 1
        if power:
            primes.append((factor, power))
        factor += 1
    if rest > 1:
        primes.append((rest, 1))
    divisors = [1]
    for prime, power in primes:
        divisors = [d * prime**k for d in divisors for k in range(power + 1)]
    return sorted(divisors)
