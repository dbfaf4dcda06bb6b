"""Collectives tuned to the costs of a node's cache lines; `mpich4` among the leaders of nodes.

Inside a node ranks work through shared lines, along trees whose shape minimises the line-cost model
(`pysmpi.memory.lines`) for the number of ranks. `coherence_tuned:NAME` names the algorithm of the
leaders. Source: Ramos and Hoefler (HPDC 2013), sections 4.1 to 4.3.
"""

from __future__ import annotations

from functools import lru_cache

from pysmpi.collectives.algorithms.bcast_nodes import to_leaders
from pysmpi.collectives.algorithms.reduce_more import from_leaders
from pysmpi.collectives.building import NOTHING, Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import algorithm
from pysmpi.collectives.shared_lines import Shared
from pysmpi.memory.lines import broadcast, reduction
from pysmpi.memory.lines.barrier import best_partners
from pysmpi.memory.lines.costs import LineCosts
from pysmpi.memory.lines.trees import Fanouts, family

TUNED, BETWEEN = "coherence_tuned", "mpich4"


def on_one_node(c: Call) -> bool:
    """Whether all ranks share a node."""
    return len(c.layout.leaders) == 1


# The barrier.


@algorithm("barrier", TUNED, "tuned dissemination in nodes, leaders, release in nodes")
def barrier(s: Builder, c: Call) -> None:
    """Dissemination with m partners a round; inside nodes a broadcast of one byte releases."""
    if on_one_node(c):
        dissemination(Shared(s, c))
        return
    s.on_node("barrier", TUNED)
    s.on_leaders("barrier", c.part(0, BETWEEN))
    s.on_node("bcast", TUNED, count=1, type_size=1, output=s.scratch())


def dissemination(shared: Shared) -> None:
    """Equation 15: each round a rank sets its flag, reads those of m others, and reads its own."""
    c, costs = shared.c, shared.costs
    m, rounds = _partners(costs, c.size)
    step = 1
    for _ in range(rounds):
        hops = [i * step for i in range(1, m + 1) if i * step < c.size]
        to = [(c.rank + hop) % c.size for hop in hops]
        back = [(c.rank - hop) % c.size for hop in hops]
        shared.passes(costs.R_L)
        shared.show(to, 0, NOTHING)
        for peer in back:
            shared.take(peer, 0, NOTHING)
        shared.passes(len(back) * costs.R_R)
        shared.notify(back)
        shared.notified(to)
        shared.passes(costs.R_R)
        step *= m + 1
    shared.end()


# The broadcast.


@algorithm("bcast", TUNED, "root to leader, leaders, tuned tree, pipeline or flat tree in nodes")
def bcast(s: Builder, c: Call) -> None:
    """A tree, a pipeline or a flat tree: the fastest one for the size in the model."""
    if not on_one_node(c):
        to_leaders(s, c, BETWEEN)
        s.on_node("bcast", TUNED)
        return
    shared = Shared(s, c)
    lines = shared.costs.lines(c.nbytes)
    shape = _broadcast(shared.costs, c.size, lines) if shared.timed else "tree"
    if shape == "tree":
        down_tree(shared, lines)
    elif shape == "flat":
        down_flat(shared, lines)
    else:
        pipeline(shared, lines)


def down_tree(shared: Shared, lines: int) -> None:
    """Equation 11: copy from the parent, show to the children, wait until all below have it."""
    c, costs = shared.c, shared.costs
    tree = _small_tree(costs, c.size)
    parent, children, _ = family(tree, c.size, c.relative)
    if parent < 0:
        shared.passes(costs.R_I)
    else:
        shared.take(c.actual(parent), c.nbytes, c.output)
        siblings = len(family(tree, c.size, parent)[1])
        shared.passes(costs.contended(siblings) + (lines - 1) * costs.per_line())
    below = [c.actual(child) for child in children]
    if below:
        shared.passes(costs.R_I + 2 * costs.R_L)
        shared.show(below, c.nbytes, c.output)
        shared.notified(below)
        shared.passes(broadcast.notify_back(costs, len(below) + 1))
    if parent >= 0:
        shared.notify([c.actual(parent)])
    shared.end()


def down_flat(shared: Shared, lines: int) -> None:
    """Equation 14: all ranks copy the whole message from the root."""
    c, costs = shared.c, shared.costs
    n = c.size
    others = [rank for rank in range(n) if rank != c.root]
    if c.rank == c.root:
        shared.passes(costs.R_I + 2 * costs.R_L)
        shared.show(others, c.nbytes, c.output)
        shared.notified(others)
        shared.passes(n * costs.R_R + costs.R_L)
        return
    shared.take(c.root, c.nbytes, c.output)
    copy = costs.contended(0) + costs.contention * (n - 2) + costs.per_line() * lines
    shared.passes(costs.contended(n - 1) + copy)
    shared.notify([c.root])


def pipeline(shared: Shared, lines: int) -> None:
    """Equation 12: each rank copies one slice from the root, the others from its neighbour."""
    c, costs = shared.c, shared.costs
    slices = c.size - 1
    width = broadcast.slice_lines(lines, c.size)
    per = width * costs.line

    def nbytes(piece: int) -> int:
        return max(0, min(per, c.nbytes - piece % slices * per))

    def place(piece: int) -> int:
        return c.output + piece % slices * per

    shared.passes(costs.R_I + 2 * costs.R_L)
    if c.rank == c.root:
        shared.passes(costs.R_L)
        ranks = [c.actual(i + 1) for i in range(slices)]
        for i, rank in enumerate(ranks):
            shared.show([rank], nbytes(i), place(i))
        shared.notified(ranks)
    else:
        i = c.relative - 1
        before, after = c.actual((i - 1) % slices + 1), c.actual((i + 1) % slices + 1)
        shared.take(c.root, nbytes(i), place(i))
        shared.passes(costs.R_L + costs.contended(slices) + costs.transfer(width))
        for stage in range(1, slices):
            shared.show([after], nbytes(i - stage + 1), place(i - stage + 1))
            shared.take(before, nbytes(i - stage), place(i - stage))
            shared.passes(costs.R_R + costs.R_L + costs.transfer(width))
        shared.notify([c.root])
    shared.passes(2 * costs.R_R + costs.R_L)


# Reductions.


@algorithm("reduce", TUNED, "tuned tree in nodes, leaders, leader to root")
def reduce(s: Builder, c: Call) -> None:
    """Up a tree inside nodes; for commutative operators."""
    if on_one_node(c):
        up_tree(Shared(s, c))
        return
    s.on_node("reduce", TUNED)
    from_leaders(s, c, BETWEEN)


@algorithm("allreduce", TUNED, "tuned reduction in nodes, leaders, tuned broadcast in nodes")
def allreduce(s: Builder, c: Call) -> None:
    """A reduction to the leader of each node and a broadcast; for commutative operators."""
    if on_one_node(c):
        s.call("reduce", TUNED, root=0)
        s.call("bcast", TUNED, root=0)
        return
    s.on_node("reduce", TUNED)
    s.on_leaders("allreduce", c.part(0, BETWEEN))
    s.on_node("bcast", TUNED)


def up_tree(shared: Shared) -> None:
    """Equation 17: children write to their parent's buffers, which it reads and combines."""
    s, c, costs = shared.s, shared.c, shared.costs
    lines = costs.lines(c.nbytes)
    tree = _reduction_tree(costs, c.size, lines)
    parent, children, _ = family(tree, c.size, c.relative)
    below = [c.actual(child) for child in children]
    if below:
        got = s.scratch()
        shared.passes(costs.R_I)
        shared.notify(below)
        for child in below:
            shared.take(child, c.nbytes, got)
            s.reduce(c.nbytes, c.output, got, c.output)
        shared.passes(len(below) * costs.R_R + reduction.combine(costs, len(below) * lines))
    if parent < 0:
        shared.passes(costs.R_R)
        return
    above = c.actual(parent)
    shared.notified([above])
    siblings = len(family(tree, c.size, parent)[1])
    write = costs.R_R + costs.R_L + (lines - 1) * costs.per_line()
    shared.passes(costs.contended(siblings) + write)
    shared.show([above], c.nbytes, c.output)
    shared.end()


# Every rank needs the same shapes.


@lru_cache(maxsize=1024)
def _partners(costs: LineCosts, ranks: int) -> tuple[int, int]:
    return best_partners(costs, ranks)


@lru_cache(maxsize=1024)
def _small_tree(costs: LineCosts, ranks: int) -> Fanouts:
    return broadcast.best_small(costs, ranks)


@lru_cache(maxsize=1024)
def _reduction_tree(costs: LineCosts, ranks: int, lines: int) -> Fanouts:
    return reduction.best_reduction(costs, ranks, lines=lines)


@lru_cache(maxsize=1024)
def _broadcast(costs: LineCosts, ranks: int, lines: int) -> str:
    return broadcast.best_shape(costs, ranks, lines)
