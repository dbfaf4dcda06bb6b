"""Reductions to a root: binomial, Rabenseifner's, pipelined chains, k-nomial, two-level."""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.patterns import byte_ends, floor_power_of_two
from pysmpi.collectives.registry import algorithm
from pysmpi.kernel.schedule import Schedule


@algorithm("reduce", "binomial", "binomial tree, whole vector; ceil(log2 P) steps of m")
def binomial(s: Schedule, c: Call) -> None:
    """MPICH's short-vector reduction.

    Operators that do not commute are combined at rank 0, which hands the result to the root.
    """
    if c.count == 0:
        return
    top = c.root if c.commutative else 0
    me = (c.rank - top) % c.size
    mask = 1
    while mask < c.size:
        if me & mask:
            s.send(((me & ~mask) + top) % c.size, c.nbytes)
            break
        if me | mask < c.size:
            s.recv(((me | mask) + top) % c.size, c.nbytes)
            s.reduce(c.nbytes)
        mask <<= 1
    if top != c.root:
        if c.rank == top:
            s.send(c.root, c.nbytes)
        elif c.rank == c.root:
            s.recv(top, c.nbytes)


SEGMENT = 8192  # bytes of a segment in STAR-MPI's algorithms


@algorithm("reduce", "NTSL", "chain root-1, root-2 ... root in 8 KiB segments")
def chain(s: Schedule, c: Call) -> None:
    """A pipeline along the ranks (STAR-MPI); the remainder goes through `default`."""
    per_segment = max(1, SEGMENT // c.type_size) if c.type_size else 1
    first, last = c.rank == (c.root - 1) % c.size, c.rank == c.root
    to, source = (c.rank - 1) % c.size, (c.rank + 1) % c.size
    if c.count <= per_segment:
        if not first:
            s.recv(source, c.nbytes)
            s.reduce(c.nbytes)
        if not last:
            s.send(to, c.nbytes)
        return
    full, rest = divmod(c.count, per_segment)
    size = per_segment * c.type_size
    received = s.slots
    if not first:
        for i in range(full):
            c.carries(s, 0, i * size)
            s.irecv(source, size)
    sent = s.slots
    for i in range(full):
        c.carries(s, i * size)
        if not first:
            s.wait(received + i)
            s.reduce(size)
        if not last:
            s.isend(to, size)
    s.waitall(sent, s.slots)
    if rest:
        c.call(s, "reduce", "default", count=rest, start=c.start + full * size)


@algorithm(
    "reduce",
    "scatter_gather",
    "recursive-halving reduce-scatter, binomial gather; 2 log2 P (+) steps, 2 m (P-1)/P",
)
def scatter_gather(s: Schedule, c: Call) -> None:
    """MPICH's long-vector reduction (Rabenseifner 2004; Thakur et al. 2005).

    Odd ranks of the first 2 (P - 2^k) hand over; a root among them takes the place of rank 0
    for the gather. Vectors shorter than P elements are padded to P.
    """
    if c.count == 0:
        return
    size, inner = c.size, floor_power_of_two(c.size)
    rem = size - inner
    count = max(c.count, size)
    total = count * c.type_size
    if c.rank >= 2 * rem:
        me = c.rank - rem
    elif c.rank % 2:
        s.send(c.rank - 1, total)
        me = -1
    else:
        s.recv(c.rank + 1, total)
        s.reduce(total)
        me = c.rank // 2
    ends = byte_ends([count // inner] * (inner - 1), c.type_size) + [total]

    def unfold(new: int) -> int:
        return new * 2 if new < rem else new + rem

    history: list[tuple[int, int, int]] = []
    if me >= 0:
        first, last, mask = 0, inner, 1
        while mask < inner:
            middle = first + inner // (mask * 2)
            kept, given = (first, middle), (middle, last)
            if me & mask:
                kept, given = given, kept
            sent, got = ends[given[1]] - ends[given[0]], ends[kept[1]] - ends[kept[0]]
            peer = unfold(me ^ mask)
            s.sendrecv(peer, sent, peer, got)
            s.reduce(got)
            history.append((mask, sent, got))
            first, last = kept
            mask <<= 1
    # A root that handed over replaces rank 0, whose piece it takes.
    replaced = c.root < 2 * rem and c.root % 2 == 1
    if replaced:
        target = 0
        if c.rank == c.root:
            s.recv(0, ends[1])
            me = 0
            first, last, mask = 0, inner, 1
            while mask < inner:
                middle = first + inner // (mask * 2)
                history.append((mask, ends[last] - ends[middle], ends[middle] - ends[first]))
                last = middle
                mask <<= 1
        elif me == 0:
            s.send(c.root, ends[1])
            me = -1
    else:
        target = c.root // 2 if c.root < 2 * rem else c.root - rem
    if me < 0:
        return
    for mask, sent, got in reversed(history):
        other = me ^ mask
        peer = c.root if replaced and other == 0 else unfold(other)
        # In the order of halving, the nearest partner's bit is the highest digit of a piece.
        if (me ^ target) & mask:
            s.send(peer, got)
            return
        s.recv(peer, sent)


@algorithm("reduce", "rab", "as scatter_gather: Rabenseifner's halving and gather")
def rabenseifner(s: Schedule, c: Call) -> None:
    """The reference code of Rabenseifner's reduction is the same pattern; it fails in SMPI."""
    scatter_gather(s, c)


@algorithm("reduce", "mvapich2_knomial", "4-nomial tree, children at once; ceil(log4 P) steps of m")
def knomial(s: Schedule, c: Call) -> None:
    """A parent posts all receives, nearest children first, and combines as they come.

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
    first = s.slots
    for child in reversed(children):
        s.irecv(c.actual(child), c.nbytes)
    s.waitall(first, s.slots)
    for _ in children:
        s.reduce(c.nbytes)
    if parent >= 0:
        s.wait(s.isend(parent, c.nbytes))


SHARED_MEMORY = 131072  # bytes a rank of a node's shared segment in MVAPICH2


@algorithm("reduce", "mvapich2_two_level", "reduce in nodes, among leaders, leader to root")
def two_level(s: Schedule, c: Call) -> None:
    """MVAPICH2. `mpich` at both levels unless chosen otherwise; commutative operators.

    A flat reduction inside a node stands for one through shared memory: it holds up to 128 KiB
    times the ranks of the node, beyond which the 4-nomial tree serves.
    """
    c.prepare_nodes(s)
    layout = c.layout
    local = layout.local[c.rank]
    fits = c.nbytes < len(local) * SHARED_MEMORY
    if len(layout.leaders) == 1:
        if c.nbytes <= 2048 and c.commutative:
            c.on_node(s, "reduce", "ompi_basic_linear" if fits else "mvapich2_knomial")
            hand_to_root(s, c)
        else:
            c.call(s, "reduce", "mvapich2_knomial")
        return
    inside = c.part(1, "mpich")
    if inside == "ompi_basic_linear" and not (fits and c.commutative):
        inside = "mvapich2_knomial"
    c.on_node(s, "reduce", inside)
    from_leaders(s, c, "mpich")


def from_leaders(s: Schedule, c: Call, otherwise: str | None) -> None:
    """Combine what the leaders have, by the chosen algorithm or `otherwise`, for the root."""
    c.on_leaders(s, "reduce", c.part(0, otherwise), root=c.layout.leader_index[c.root])
    hand_to_root(s, c)


def hand_to_root(s: Schedule, c: Call) -> None:
    """Give the result from the leader of the root's node to the root."""
    leader = c.layout.local[c.root][0]
    if leader != c.root:
        if c.rank == leader:
            s.send(c.root, c.nbytes)
        elif c.rank == c.root:
            s.recv(leader, c.nbytes)
