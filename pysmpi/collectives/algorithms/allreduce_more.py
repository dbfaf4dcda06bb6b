"""Allreduce by other collectives, and in two levels."""

from __future__ import annotations

from collections.abc import Callable

from pysmpi.collectives.algorithms.allreduce import rabenseifner
from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import byte_ends, fold
from pysmpi.collectives.registry import algorithm


@algorithm("allreduce", "rab", "as rab_rdb: Rabenseifner's halving and doubling")
def rab(s: Builder, c: Call) -> None:
    """The reference code of Rabenseifner's allreduce is the same pattern; it fails in SMPI."""
    rabenseifner(s, c)


@algorithm("allreduce", "rab1", "recursive halving, farthest first, then allgather; 2^k ranks",
           elsewhere="rab_rdb")  # fmt: skip
def halving_allgather(s: Builder, c: Call) -> None:
    """The vector is padded to a multiple of P; the allgather is the selection's (STAR-MPI).

    SMPI aborts for other numbers of ranks.
    """
    piece = padded_piece(c)
    own, got = s.scratch(), s.scratch()
    s.move(c.nbytes, c.output, own)
    kept, mask = own, c.size >> 1
    while mask:
        size, peer = piece * mask * c.type_size, c.rank ^ mask
        if peer < c.rank:
            s.sendrecv(peer, size, peer, size, kept, got)
            kept += size
            s.reduce(size, got, kept, kept)
        else:
            s.sendrecv(peer, size, peer, size, kept + size, got)
            s.reduce(size, kept, got, kept)
        mask >>= 1
    s.call("allgather", count=piece, output=own)
    s.move(c.nbytes, own, c.output)


def padded_piece(c: Call) -> int:
    """Elements of a piece: count / P, or one more than that where P does not divide it."""
    piece, rest = divmod(c.count, c.size)
    return piece + 1 if rest else piece


@algorithm("allreduce", "rab2", "alltoall of pieces, local combination, allgather")
def alltoall_allgather(s: Builder, c: Call) -> None:
    """Both are the selection's; vectors shorter than P are padded to P per piece (STAR-MPI)."""
    piece = padded_piece(c)
    if c.count % c.size and c.count < c.size:
        piece = c.size
    size, padded, got = piece * c.type_size, s.scratch(), s.scratch()
    s.move(c.nbytes, c.output, padded)
    own = padded + c.rank * size
    s.move(size, own, got + c.rank * size)
    s.call("alltoall", count=piece, input=padded, output=got)
    s.move(size, got, own)
    for peer in range(1, c.size):
        s.reduce(size, own, got + peer * size, own)
    s.call("allgather", count=piece, output=padded)
    s.move(c.nbytes, padded, c.output)


@algorithm("allreduce", "mvapich2_rs", "rab_rdb; fewer elements than 2^k: recursive doubling")
def mvapich2(s: Builder, c: Call) -> None:
    """MVAPICH2's reduce-scatter and allgather."""
    if c.count == 0:
        return
    inner = fold(c.rank, c.size)[1]
    s.call("allreduce", "rdb" if c.count < inner else "rab_rdb")


@algorithm("allreduce", "mvapich2_two_level", "inside nodes, among leaders, bcast in nodes")
def two_level(s: Builder, c: Call) -> None:
    """MVAPICH2. The leaders use `rdb`, or `mvapich2_rs` if another name was chosen.

    Inside nodes `mpich`'s allreduce, or the selection's reduce if `reduce` was chosen.
    """
    s.prepare_nodes()
    if c.count == 0:
        return
    if c.part(1, None) == "reduce":
        s.on_node("reduce")
    else:
        s.on_node("allreduce", c.part(1, "mpich"))
    s.on_leaders("allreduce", "rdb" if c.part(0, "rdb") == "rdb" else "mvapich2_rs")
    s.on_node("bcast")


def between_binomials(s: Builder, c: Call, *leaders: tuple[str, str]) -> None:
    """Binomial reduction in nodes, the given (operation, algorithm) of leaders, binomial bcast."""
    s.prepare_nodes()
    s.on_node("reduce", "binomial", commutative=True)
    for op, name in leaders:
        s.on_leaders(op, name, commutative=True)
    s.on_node("bcast", "binomial_tree")


@algorithm("allreduce", "smp_binomial", "binomial reduce and bcast, in nodes and among leaders")
def smp_binomial(s: Builder, c: Call) -> None:
    """STAR-MPI's SMP algorithms, on the nodes where ranks really are."""
    between_binomials(s, c, ("reduce", "binomial"), ("bcast", "binomial_tree"))


@algorithm("allreduce", "smp_rdb", "binomial in nodes, recursive doubling among leaders")
def smp_doubling(s: Builder, c: Call) -> None:
    """As `smp_binomial` inside nodes (STAR-MPI)."""
    between_binomials(s, c, ("allreduce", "rdb"))


@algorithm("allreduce", "smp_rsag_rab", "binomial in nodes, halving and doubling among leaders")
def smp_rabenseifner(s: Builder, c: Call) -> None:
    """As `smp_binomial` inside nodes (STAR-MPI).

    SMPI's takes powers of two only and halves with the remainder lost.
    """
    between_binomials(s, c, ("allreduce", "rab_rdb"))


@algorithm("allreduce", "smp_rsag_lr", "binomial in nodes, ring among leaders, any count")
def smp_ring(s: Builder, c: Call) -> None:
    """The last piece takes the remainder of count / leaders (STAR-MPI)."""
    s.prepare_nodes()
    s.on_node("reduce", "binomial", commutative=True)
    leaders = c.layout.leaders
    if c.leads and len(leaders) > 1:
        ring_of(s, c, leaders)
    s.on_node("bcast", "binomial_tree")


@algorithm("allreduce", "smp_rsag", "binomial in nodes, ring among leaders")
def smp_ring_cut(s: Builder, c: Call) -> None:
    """SMPI's loses the remainder of count / leaders; here it is `smp_rsag_lr`."""
    smp_ring(s, c)


def ring_of(s: Builder, c: Call, ranks: tuple[int, ...]) -> None:
    """Reduce-scatter and allgather around a ring of `ranks`; the last piece is the longest."""
    n = len(ranks)
    me = ranks.index(c.rank)
    right, left = ranks[(me + 1) % n], ranks[(me - 1) % n]
    pieces = [c.count // n] * (n - 1)
    ends = [c.output + end for end in (*byte_ends(pieces, c.type_size), c.nbytes)]
    got = s.scratch()
    sizes = [ends[i + 1] - ends[i] for i in range(n)]
    for i in range(n - 1):
        sent, mine = (me - 1 - i) % n, (me - 2 - i) % n
        s.sendrecv(right, sizes[sent], left, sizes[mine], ends[sent], got)
        s.reduce(sizes[mine], got, ends[mine], ends[mine])
    for i in range(n - 1):
        sent, mine = (me - i) % n, (me - 1 - i) % n
        s.sendrecv(right, sizes[sent], left, sizes[mine], ends[sent], ends[mine])


PIPELINE = 4096  # elements of a piece


@algorithm(
    "allreduce", "smp_binomial_pipeline", "smp_binomial pipelined in pieces of 4096 elements"
)
def smp_binomial_pipeline(s: Builder, c: Call) -> None:
    """The four phases of `smp_binomial` overlap, one piece behind each other (STAR-MPI).

    SMPI loses the last, shorter piece.
    """
    s.prepare_nodes()
    full, rest = divmod(c.count, PIPELINE)
    pieces = [PIPELINE] * full + ([rest] if rest else [])
    begin = byte_ends(pieces, c.type_size)
    phases: tuple[tuple[Callable[..., None], str, str], ...] = (
        (s.on_node, "reduce", "binomial"),
        (s.on_leaders, "reduce", "binomial"),
        (s.on_leaders, "bcast", "binomial_tree"),
        (s.on_node, "bcast", "binomial_tree"),
    )
    for step in range(len(pieces) + 3):
        for behind, (on_level, op, name) in enumerate(phases):
            i = step - behind
            if 0 <= i < len(pieces):
                place = c.output + begin[i]
                on_level(op, name, commutative=True, count=pieces[i], output=place)
