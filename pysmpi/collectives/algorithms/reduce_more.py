"""Reductions to a root: binomial, Rabenseifner's, pipelined chains, k-nomial, two-level."""

from __future__ import annotations

from pysmpi.collectives.building import Builder
from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import byte_ends, floor_power_of_two
from pysmpi.collectives.registry import algorithm


@algorithm(
    "reduce", "binomial", "binomial tree, whole vector; ceil(log2 P) steps of m", ordered=True
)
def binomial(s: Builder, c: Call) -> None:
    """MPICH's short-vector reduction.

    Operators that do not commute are combined at rank 0, which sends the result to the root.
    """
    if c.count == 0:
        return
    top = c.root if c.commutative else 0
    me, got = (c.rank - top) % c.size, s.scratch()
    mask = 1
    while mask < c.size:
        if me & mask:
            s.send(((me & ~mask) + top) % c.size, c.nbytes, c.output)
            break
        if me | mask < c.size:
            s.recv(((me | mask) + top) % c.size, c.nbytes, got)
            s.reduce(c.nbytes, c.output, got, c.output)
        mask <<= 1
    if top != c.root:
        if c.rank == top:
            s.send(c.root, c.nbytes, c.output)
        elif c.rank == c.root:
            s.recv(top, c.nbytes, c.output)


SEGMENT = 8192  # bytes of a segment in STAR-MPI's algorithms


@algorithm("reduce", "NTSL", "chain root-1, root-2 ... root in 8 KiB segments")
def chain(s: Builder, c: Call) -> None:
    """A pipeline along the ranks (STAR-MPI); the remainder goes through `default`."""
    per_segment = max(1, SEGMENT // c.type_size) if c.type_size else 1
    first, last = c.rank == (c.root - 1) % c.size, c.rank == c.root
    to, source = (c.rank - 1) % c.size, (c.rank + 1) % c.size
    got, own = s.scratch(), c.output
    if c.count <= per_segment:
        if not first:
            s.recv(source, c.nbytes, got)
            s.reduce(c.nbytes, own, got, own)
        if not last:
            s.send(to, c.nbytes, own)
        return
    full, rest = divmod(c.count, per_segment)
    size = per_segment * c.type_size
    received = s.slots
    if not first:
        for i in range(full):
            s.irecv(source, size, got + i * size)
    sent = s.slots
    for i in range(full):
        at = i * size
        if not first:
            s.wait(received + i)
            s.reduce(size, own + at, got + at, own + at)
        if not last:
            s.isend(to, size, own + at)
    s.waitall(sent, s.slots)
    if rest:
        s.call("reduce", "default", count=rest, output=own + full * size)


@algorithm(
    "reduce",
    "scatter_gather",
    "recursive-halving reduce-scatter, binomial gather; 2 log2 P (+) steps, 2 m (P-1)/P",
)
def scatter_gather(s: Builder, c: Call) -> None:
    """MPICH's long-vector reduction (Rabenseifner 2004; Thakur et al. 2005).

    Odd ranks of the first 2 (P - 2^k) send their vectors and do not take part; if the root is one
    of them, it replaces rank 0 for the gather. Vectors shorter than P elements are padded to P.
    """
    if c.count == 0:
        return
    size, inner = c.size, floor_power_of_two(c.size)
    rem = size - inner
    count = max(c.count, size)
    total = count * c.type_size
    got, own = s.scratch(), c.output
    if count > c.count:
        own = s.scratch()
        s.move(c.nbytes, c.output, own)
    if c.rank >= 2 * rem:
        me = c.rank - rem
    elif c.rank % 2:
        s.send(c.rank - 1, total, own)
        me = -1
    else:
        s.recv(c.rank + 1, total, got)
        s.reduce(total, own, got, own)
        me = c.rank // 2
    ends = byte_ends([count // inner] * (inner - 1), c.type_size) + [total]

    def unfold(new: int) -> int:
        return new * 2 if new < rem else new + rem

    def size_of(part: tuple[int, int]) -> int:
        return ends[part[1]] - ends[part[0]]

    # (bit of the partner, its pieces, the own pieces)
    history: list[tuple[int, tuple[int, int], tuple[int, int]]] = []
    if me >= 0:
        first, last, mask = 0, inner, 1
        while mask < inner:
            middle = first + inner // (mask * 2)
            kept, given = (first, middle), (middle, last)
            if me & mask:
                kept, given = given, kept
            peer, begin = unfold(me ^ mask), ends[kept[0]]
            s.sendrecv(peer, size_of(given), peer, size_of(kept), own + ends[given[0]], got + begin)
            left, right = (got, own) if peer < c.rank else (own, got)
            s.reduce(size_of(kept), left + begin, right + begin, own + begin)
            history.append((mask, given, kept))
            first, last = kept
            mask <<= 1
    # A root that does not take part replaces rank 0 and takes its piece.
    replaced = c.root < 2 * rem and c.root % 2 == 1
    if replaced:
        target = 0
        if c.rank == c.root:
            s.recv(0, ends[1], own)
            me = 0
            first, last, mask = 0, inner, 1
            while mask < inner:
                middle = first + inner // (mask * 2)
                history.append((mask, (middle, last), (first, middle)))
                last = middle
                mask <<= 1
        elif me == 0:
            s.send(c.root, ends[1], own)
            me = -1
    else:
        target = c.root // 2 if c.root < 2 * rem else c.root - rem
    if me < 0:
        return
    for mask, given, kept in reversed(history):
        other = me ^ mask
        peer = c.root if replaced and other == 0 else unfold(other)
        # In the order of halving, the nearest partner's bit is the highest digit of a piece.
        if (me ^ target) & mask:
            s.send(peer, size_of(kept), own + ends[kept[0]])
            return
        s.recv(peer, size_of(given), own + ends[given[0]])
    if own != c.output:
        s.move(c.nbytes, own, c.output)


@algorithm("reduce", "rab", "as scatter_gather: Rabenseifner's halving and gather")
def rabenseifner(s: Builder, c: Call) -> None:
    """The reference code of Rabenseifner's reduction is the same pattern; it fails in SMPI."""
    scatter_gather(s, c)


@algorithm("reduce", "mvapich2_knomial", "4-nomial tree, children at once; ceil(log4 P) steps of m")
def knomial(s: Builder, c: Call) -> None:
    """A parent posts all receives, nearest children first, and combines in order of arrival.

    MVAPICH2, for commutative operators.
    """
    if c.count == 0:
        return
    k, me = 4, c.relative
    parent, mask = -1, 1
    while mask < c.size:
        if me % (k * mask):
            parent = c.actual(me // (k * mask) * (k * mask))
            break
        mask *= k
    children: list[int] = []
    mask //= k
    while mask:
        children.extend(me + mask * i for i in range(1, k) if me + mask * i < c.size)
        mask //= k
    first, got = s.slots, s.scratch()
    for i, child in enumerate(reversed(children)):
        s.irecv(c.actual(child), c.nbytes, got + i * c.nbytes)
    s.waitall(first, s.slots)
    for i in range(len(children)):
        s.reduce(c.nbytes, c.output, got + i * c.nbytes, c.output)
    if parent >= 0:
        s.wait(s.isend(parent, c.nbytes, c.output))


SHARED_MEMORY = 131072  # bytes a rank of a node's shared segment in MVAPICH2


@algorithm("reduce", "mvapich2_two_level", "reduce in nodes, among leaders, leader to root")
def two_level(s: Builder, c: Call) -> None:
    """MVAPICH2. `mpich` at both levels unless chosen otherwise; commutative operators.

    A flat reduction inside a node represents one through shared memory. It is used for up to 128
    KiB times the ranks of the node; above that, the 4-nomial tree is used.
    """
    s.prepare_nodes()
    layout = c.layout
    local = layout.local[c.rank]
    fits = c.nbytes < len(local) * SHARED_MEMORY
    if len(layout.leaders) == 1:
        if c.nbytes <= 2048 and c.commutative:
            s.on_node("reduce", "ompi_basic_linear" if fits else "mvapich2_knomial")
            hand_to_root(s, c)
        else:
            s.call("reduce", "mvapich2_knomial")
        return
    inside = c.part(1, "mpich")
    if inside == "ompi_basic_linear" and not (fits and c.commutative):
        inside = "mvapich2_knomial"
    s.on_node("reduce", inside)
    from_leaders(s, c, "mpich")


def from_leaders(s: Builder, c: Call, otherwise: str | None) -> None:
    """Combine the vectors of the leaders, by the chosen algorithm or `otherwise`, for the root."""
    s.on_leaders("reduce", c.part(0, otherwise), root=c.layout.leader_index[c.root])
    hand_to_root(s, c)


def hand_to_root(s: Builder, c: Call) -> None:
    """Give the result from the leader of the root's node to the root."""
    leader = c.layout.local[c.root][0]
    if leader != c.root:
        if c.rank == leader:
            s.send(c.root, c.nbytes, c.output)
        elif c.rank == c.root:
            s.recv(leader, c.nbytes, c.output)
