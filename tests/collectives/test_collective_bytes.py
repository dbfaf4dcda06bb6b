"""Every algorithm moves and combines the right bytes, plug-ins included, on numpy data.

All numbers of ranks from 1 to 33 are tried, those up to 9 with every root. The other parameters of
a call take turns; with PYSMPI_RANKS=all in the environment, every combination is tried.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from definition import Case, violations

from pysmpi.collectives import registry
from pysmpi.collectives.algorithms.bcast_pipelined import to_rank_zero
from pysmpi.collectives.building import Builder, build, named_schedules
from pysmpi.collectives.call import REDUCING, ROOTED, Call
from pysmpi.collectives.patterns import around
from pysmpi.kernel.schedule import MOVE, Schedule

ALL = [
    (op, name)
    for op in registry.COLLECTIVES.names()
    if not op.startswith("neighbor")
    for name in sorted(registry.algorithms_of(op))
]
ORDERED = [(op, name) for op, name in ALL if registry.find(op, name).ordered]


def layout(size: int, kind: int) -> tuple[int, ...] | None:
    """The nodes of ranks: none, consecutive ranks, every third one, nodes of unequal sizes."""
    if kind == 1:
        return tuple(rank // 4 for rank in range(size))
    if kind == 2:
        return tuple(rank % 3 for rank in range(size))
    if kind == 3:
        return tuple(int((rank / 2) ** 0.5) for rank in range(size))
    return None


EVERYTHING = os.environ.get("PYSMPI_RANKS") == "all"
MANY = 9  # ranks; of a larger number, only some roots are tried
LONG = 3001  # elements: more than the segments of pipelines and the shortest of long messages


def roots_of(op: str, size: int) -> list[int]:
    if op not in ROOTED:
        return [0]
    if size <= MANY or EVERYTHING:
        return list(range(size))
    return [(0, 1, size // 2, size - 1)[size % 4]]


def cases_of(op: str, commutative: bool = True) -> list[Case]:
    found = []
    for size in range(1, 34):
        for root in roots_of(op, size):
            turn = size + root
            # Nothing, one, fewer than ranks, more than ranks.
            counts = (0, 1, 5, 40) if size <= 5 or EVERYTHING else (1, (5, 40)[turn % 2])
            if size > (5 if op in ROOTED else MANY) and not EVERYTHING:
                counts = ((1, 5, 40)[turn % 3],)
            for i, count in enumerate(counts):
                in_places = [False, True]
                if op in ("barrier", "bcast"):
                    in_places = [False]
                elif not EVERYTHING and (op in ROOTED or size > MANY):
                    in_places = [(turn + i) % 2 == 0]
                for in_place in in_places:
                    nodes = layout(size, (turn + count) % 4)
                    found.append(Case(op, size, root, count, commutative, in_place, nodes))
    for i, size in enumerate((2, 3, 5, 8, 13)):
        for kind in range(4):
            if EVERYTHING or kind % 2 == i % 2:
                found.append(Case(op, size, 0, LONG, commutative, False, layout(size, kind)))
        found.append(Case(op, size, size - 1 if op in ROOTED else 0, LONG, commutative))
    if op == "allreduce":
        found.append(Case(op, 3, 0, 220_000, commutative))  # segments of 1 MiB
    return found


@pytest.mark.parametrize(("op", "name"), ALL, ids=[f"{op}-{name}" for op, name in ALL])
def test_every_byte_is_where_it_belongs(op: str, name: str) -> None:
    found = []
    for i, case in enumerate(cases_of(op)):
        found += violations(case, name, early=i % 2 == 0)
    assert not found, f"{len(found)} violations:\n" + "\n".join(found[:10])


@pytest.mark.parametrize(("op", "name"), ORDERED, ids=[f"{op}-{name}" for op, name in ORDERED])
def test_the_order_of_ranks_is_kept(op: str, name: str) -> None:
    """By all algorithms that are marked so; the operator is associative and does not commute."""
    found = []
    for i, case in enumerate(cases_of(op, commutative=False)):
        found += violations(case, name, early=i % 2 == 0)
    assert not found, f"{len(found)} violations:\n" + "\n".join(found[:10])


def test_default_reductions_keep_the_order() -> None:
    """The algorithms that the default selection uses for operators that do not commute."""
    found = []
    for op in sorted(REDUCING):
        for case in cases_of(op, commutative=False):
            if case.size < 12:
                found += violations(case, None)
    assert not found, f"{len(found)} violations:\n" + "\n".join(found[:10])


@pytest.mark.parametrize(("op", "name"), ALL, ids=[f"{op}-{name}" for op, name in ALL])
def test_naming_bytes_changes_no_step(op: str, name: str) -> None:
    """A schedule that is executed has the steps of the one whose bytes are followed."""
    for size, count, kind in ((2, 1, 0), (5, 40, 1), (8, 3001, 2), (12, 7, 3), (13, 1000, 1)):
        case = Case(
            op, size, size - 1 if op in ROOTED else 0, count, True, False, layout(size, kind)
        )
        named = named_schedules(case.calls(), name)
        for call, schedule in zip(case.calls(), named, strict=True):
            plain = Schedule()
            build(plain, call, name)
            assert plain.places is None
            assert rows(plain) == rows(schedule)
            assert (plain.amounts, plain.slots) == (schedule.amounts, schedule.slots)


def rows(s: Schedule) -> list[tuple[int, int, int, int]]:
    steps = zip(s.codes, s.peers, s.sizes, s.tags, strict=True)
    return [step for step in steps if step[0] != MOVE]


# Broken algorithms, each in its own way.


def shifted_block(s: Builder, c: Call) -> None:
    n, own = c.nbytes, c.output + c.rank * c.nbytes
    for i in range(1, c.size):
        source = (c.rank - i) % c.size
        into = c.output + (source + 1) % c.size * n
        s.sendrecv((c.rank + i) % c.size, n, source, n, own, into)


def missing_block(s: Builder, c: Call) -> None:
    for peer in range(c.size):
        if c.rank != c.root and peer == c.rank:
            s.send(c.root, c.nbytes, c.input)
        elif c.rank == c.root and peer != c.root:
            last = peer == c.size - 1
            s.recv(peer, c.nbytes, s.scratch() if last else c.output + peer * c.nbytes)


def wrong_root(s: Builder, c: Call) -> None:
    # The tree begins at rank 0, which does not have the message.
    me, mask = c.rank, 1
    while mask < c.size and not me & mask:
        mask <<= 1
    if me:
        s.recv(me - mask, c.nbytes, c.output)
    mask >>= 1
    while mask:
        if me + mask < c.size:
            s.send(me + mask, c.nbytes, c.output)
        mask >>= 1


def swapped_operand(s: Builder, c: Call) -> None:
    got = s.scratch()
    if c.rank:
        s.recv(c.rank - 1, c.nbytes, got)
        s.reduce(c.nbytes, c.output, got, c.output)
    if c.rank + 1 < c.size:
        s.send(c.rank + 1, c.nbytes, c.output)


def read_before_wait(s: Builder, c: Call) -> None:
    # The rank passes on data for which it has not waited.
    if c.rank:
        slot = s.irecv(c.rank - 1, c.nbytes, c.output)
    else:
        to_rank_zero(s, c)
    if c.rank + 1 < c.size:
        sent = s.isend(c.rank + 1, c.nbytes, c.output)
        if c.rank:
            s.wait(slot)
        s.wait(sent)
    elif c.rank:
        s.wait(slot)
    if c.root and c.rank == c.root:
        s.send(0, 0)


def counted_twice(s: Builder, c: Call) -> None:
    if c.rank != c.root:
        s.send(c.root, c.nbytes, c.output)
        return
    got = s.scratch()
    for peer in range(c.size):
        if peer != c.rank:
            s.recv(peer, c.nbytes, got)
            s.reduce(c.nbytes, got, c.output, c.output)
    s.reduce(c.nbytes, got, c.output, c.output)


def send_buffer_changed(s: Builder, c: Call) -> None:
    if c.rank == c.root:
        for peer in range(c.size):
            if peer != c.rank:
                s.send(peer, c.nbytes, c.input + peer * c.nbytes)
        s.move(c.nbytes, c.input + c.root * c.nbytes, c.input)
    else:
        s.recv(c.root, c.nbytes, c.output)


def result_left_behind(s: Builder, c: Call) -> None:
    got = s.scratch()
    if c.rank:
        s.recv(c.rank - 1, c.nbytes, got)
    if c.rank + 1 < c.size:
        if c.rank:
            s.reduce(c.nbytes, got, c.output, c.output)
        s.send(c.rank + 1, c.nbytes, c.output)


def transposed(s: Builder, c: Call) -> None:
    n = c.nbytes
    for i in range(1, c.size):
        to, source = (c.rank + i) % c.size, (c.rank - i) % c.size
        s.sendrecv(to, n, source, n, c.input + c.rank * n, c.output + source * n)


def equal_blocks_only(s: Builder, c: Call) -> None:
    counts = c.recv_counts or ()
    begin = [c.output + i * counts[0] * c.type_size for i in range(c.size)]
    sizes = [n * c.type_size for n in counts]
    for i in range(1, c.size):
        to, source = (c.rank + i) % c.size, (c.rank - i) % c.size
        s.sendrecv(to, sizes[c.rank], source, sizes[source], begin[c.rank], begin[source])


def remainder_forgotten(s: Builder, c: Call) -> None:
    half = c.nbytes // 32 * 16
    got = s.scratch()
    if c.rank:
        s.recv(c.rank - 1, c.nbytes, got)
        s.reduce(half, got, c.output, c.output)
    if c.rank + 1 < c.size:
        s.send(c.rank + 1, c.nbytes, c.output)


def no_way_round(s: Builder, c: Call) -> None:
    # Blocks of ranks beyond the last belong to the first ranks.
    n = c.nbytes
    if c.rank == c.root:
        for i in range(1, c.size):
            s.recv((c.rank + i) % c.size, n, around(c.output, c.root + i, 1, 2 * c.size, n))
    else:
        s.send(c.root, n, c.input)


def never_named(s: Builder, c: Call) -> None:
    if c.rank == c.root:
        for peer in range(c.size):
            if peer != c.rank:
                s.send(peer, c.nbytes)
    else:
        s.recv(c.root, c.nbytes)


BROKEN = [
    ("allgather", shifted_block, "wrong from byte"),
    ("gather", missing_block, "wrong from byte"),
    ("bcast", wrong_root, "wrong from byte"),
    ("scan", swapped_operand, "wrong from byte"),
    ("bcast", read_before_wait, "wrong from byte"),
    ("reduce", counted_twice, "wrong from byte"),
    ("scatter", send_buffer_changed, "the send buffer is changed"),
    ("exscan", result_left_behind, "wrong from byte"),
    ("alltoall", transposed, "wrong from byte"),
    ("allgatherv", equal_blocks_only, "wrong from byte"),
    ("scan", remainder_forgotten, "wrong from byte"),
    ("gather", no_way_round, "beyond the end"),
    ("bcast", never_named, "does not say where"),
]


@pytest.mark.parametrize(
    ("op", "broken", "why"), BROKEN, ids=[broken.__name__ for _, broken, _ in BROKEN]
)
def test_what_is_broken_is_found(op: str, broken: Callable[..., None], why: str) -> None:
    registry.algorithm(op, "test_broken", "broken on purpose")(broken)
    try:
        found = []
        for i, case in enumerate(cases_of(op, commutative=broken is not swapped_operand)):
            if case.size < 7 and (broken is not read_before_wait or case.root == 0):
                found += violations(case, "test_broken", early=i % 2 == 0)
    finally:
        registry.COLLECTIVES.find(op).algorithms.discard("test_broken")
    assert any(why in line for line in found), found[:5]
    assert not any("Stuck" in line or "never matched" in line for line in found), found[:5]
