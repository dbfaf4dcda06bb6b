"""Every algorithm of every operation, in one body: the ranks' schedules fit together."""

from __future__ import annotations

import pytest
from reference_executor import execute

from pysmpi.collectives import registry
from pysmpi.collectives.building import build
from pysmpi.collectives.call import REDUCING, ROOTED, Call
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.selection import Selection
from pysmpi.kernel.schedule import MOST_TAGS, WAIT, WAITALL, Schedule

ALL = [
    (op, name)
    for op in registry.COLLECTIVES.names()
    if not op.startswith("neighbor")
    for name in registry.algorithms_of(op)
]
SIZES = (*range(1, 9), *range(9, 34, 2), 12, 16, 32)
# (elements, bytes of one): odd, beyond each protocol's segments
VECTORS = [(1000, 3), (70001, 1), (300000, 8)]


def calls(op: str, size: int, count: int, type_size: int, root: int = 0, **more) -> list[Call]:
    """The calls of all ranks; v forms get blocks of unequal sizes."""
    counts = tuple((count * (i % 3)) // 2 + i % 2 for i in range(size))
    result = []
    for rank in range(size):
        fields = {"count": count, **more}
        if op in ("gatherv", "scatterv", "allgatherv"):
            fields["count"] = counts[rank]
        if op in ("allgatherv", "reduce_scatter") or (op == "gatherv" and rank == root):
            fields["recv_counts"] = counts
        if op == "scatterv" and rank == root:
            fields["send_counts"] = counts
        if op in ("alltoallv", "alltoallw"):
            fields["send_counts"] = tuple(count * ((rank + j) % 4) for j in range(size))
            fields["recv_counts"] = tuple(count * ((rank + j) % 4) for j in range(size))
        result.append(Call(op, rank, size, root=root, type_size=type_size, **fields))
    return result


def layout(size: int, kind: int) -> Nodes | None:
    """The nodes of ranks: none, consecutive ranks, every third one, nodes of unequal sizes."""
    if kind == 0:
        return None
    return Nodes(
        r // 4 if kind == 1 else r % 3 if kind == 2 else int((r / 2) ** 0.5) for r in range(size)
    )


def schedules(group: list[Call], name: str | None = None) -> list[Schedule]:
    result = []
    for call in group:
        s = Schedule()
        build(s, call, name)
        result.append(s)
    return result


def information(op: str, group: list[Call], rank: int) -> int:
    """The bytes that a rank must receive at least."""
    call = group[rank]
    size, m = call.size, call.nbytes
    if size == 1:
        return 0
    if op == "bcast":
        return 0 if rank == call.root else m
    if op == "reduce":
        return m if rank == call.root else 0
    if op == "allreduce":
        return m
    if op == "gather":
        return m * (size - 1) if rank == call.root else 0
    if op == "scatter":
        return 0 if rank == call.root else m
    if op in ("allgather", "alltoall"):
        return m * (size - 1)
    if op in ("allgatherv", "alltoallv", "alltoallw"):
        counts = call.recv_counts or ()
        return (sum(counts) - counts[rank]) * call.type_size
    if op == "reduce_scatter":
        return (call.recv_counts or ())[rank] * call.type_size
    if op == "scan":
        return m if rank else 0
    return 0


@pytest.mark.parametrize(("op", "name"), ALL, ids=[f"{op}-{name}" for op, name in ALL])
def test_ranks_fit_together(op: str, name: str) -> None:
    """Also with messages that are too long to follow each byte, as test_collective_bytes does."""
    for size in SIZES:
        roots = sorted({0, size - 1, size // 2}) if op in ROOTED and size < 8 else [size // 3]
        for root in roots:
            # Small groups meet every vector; each larger one meets one of them in turn.
            for count, type_size in VECTORS if size < 8 else [VECTORS[size % len(VECTORS)]]:
                nodes = layout(size, (size + root) % 4)
                group = calls(op, size, count, type_size, root, nodes=nodes)
                outcome = execute(schedules(group, name))
                for rank in range(size):
                    least = information(op, group, rank)
                    assert outcome.received_by(rank) >= least, (size, root, count, rank)


@pytest.mark.parametrize("selector", registry.SELECTORS.names())
def test_selectors_choose_what_exists(selector: str) -> None:
    selection = Selection(selector)
    for op in registry.COLLECTIVES.names():
        if op.startswith("neighbor"):
            continue
        for size in (*range(1, 18), 32, 63, 100, 128, 200, 300, 512, 700, 2000, 5000):
            for count in (0, 1, 7, 100, 1000, 5000, 20000, 70000, 300000, 1 << 20, 1 << 22):
                for commutative in (True, False) if op in REDUCING else (True,):
                    group = calls(op, min(size, 4), count, 1, commutative=commutative)
                    fields = {
                        name: (count,) * size
                        for name in ("send_counts", "recv_counts")
                        if getattr(group[0], name) is not None
                    }
                    call = group[0]._replace(size=size, **fields)
                    name = selection.choose(call)
                    found = registry.find(op, name.partition(":")[0])
                    assert not found.elsewhere or size & (size - 1) == 0


@pytest.mark.parametrize("selector", registry.SELECTORS.names())
def test_selected_schedules_fit_together(selector: str) -> None:
    selection = Selection(selector)
    for op in registry.COLLECTIVES.names():
        if op.startswith("neighbor"):
            continue
        for size in (2, 5, 8, 12):
            nodes = Nodes(r // 2 for r in range(size))
            for count in (0, 1, 5000, 70000, 1 << 20):
                for commutative in (True, False) if op in REDUCING else (True,):
                    for nonblocking in (False, True):
                        more = {"selection": selection, "commutative": commutative,
                                "nonblocking": nonblocking}  # fmt: skip
                        execute(schedules(calls(op, size, count, 1, **more)))
                        execute(schedules(calls(op, size, count, 1, nodes=nodes, **more)))


@pytest.mark.parametrize("selector", ["ompi5", "mpich", "mvapich2", "impi", "default"])
def test_a_gathering_has_the_messages_of_a_gather_and_a_broadcast(selector: str) -> None:
    """Ranks that agree on a communicator take the cached schedule in the place of these two."""
    selection = Selection(selector)
    for size in (1, 2, 7, 16, 48):
        for nbytes in (8, 24, 65536):
            for rank in range(size):
                call = Call("allgather", rank, size, count=nbytes, selection=selection)
                both = Schedule()
                ready = build(both, call._replace(op="gather"))
                build(both, call._replace(op="bcast", count=nbytes * size, ready=ready))
                one = Schedule()
                build(one, call, "GB")
                for column in ("codes", "peers", "sizes", "tags", "amounts", "slots"):
                    assert getattr(one, column) == getattr(both, column), (call, column)


def test_every_request_is_waited_for() -> None:
    for op, name in ALL:
        for call in calls(op, 6, 20000, 1):
            s = Schedule()
            build(s, call, name)
            waited = set()
            for code, first, last in zip(s.codes, s.peers, s.sizes, strict=True):
                if code in (WAIT, WAITALL):
                    waited.update(range(first, last))
            assert waited == set(range(s.slots)), (op, name)


@pytest.mark.parametrize("kind", ["send", "recv", "isend", "irecv", "share"])
def test_tags_that_would_meet_messages_of_other_calls_are_refused(kind: str) -> None:
    step = getattr(Schedule(), kind)
    step(1, 8, tag=MOST_TAGS - 1)
    for tag in (MOST_TAGS, -1):
        with pytest.raises(AssertionError):
            step(1, 8, tag=tag)


@pytest.mark.parametrize("name", registry.algorithms_of("barrier"))
def test_nobody_leaves_a_barrier_before_all_have_entered(name: str) -> None:
    for size in range(2, 34):
        ranks = schedules(calls("barrier", size, 0, 1), name)
        for absent in range(size):
            assert execute(ranks, absent=absent).ended == [], (size, absent)


@pytest.mark.parametrize(
    ("ranks", "kib"),
    [(2, 128), (8, 128), (9, 64), (10, 64), (11, 16), (21, 16), (22, 128), (40, 128)],
)
def test_segments_of_a_pipeline_depend_on_the_ranks(ranks: int, kib: int) -> None:
    """For 4 MB, by the three lines of Open MPI's `coll_tuned_decision_fixed.c`."""
    schedule = Schedule()
    build(schedule, Call("bcast", 0, ranks, count=4_000_000, type_size=1), "ompi_pipeline")
    assert max(schedule.sizes) == kib << 10
