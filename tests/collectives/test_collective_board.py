"""The fast way of moving data gives exactly the bytes that the steps give."""

from __future__ import annotations

import random

import numpy as np
import pytest
from definition import Case, add_bytes, buffers, contribution, violations
from reference_executor import Memory, execute

import pysmpi
from pysmpi.collectives import registry
from pysmpi.collectives.building import named_schedules
from pysmpi.collectives.call import ROOTED, Call
from pysmpi.collectives.selection import Selection
from pysmpi.kernel.schedule import SHARE

WORDS = 2  # 64-bit integers in an element of a case

ALL = [
    (op, name)
    for op in registry.COLLECTIVES.names()
    if not op.startswith("neighbor")
    for name in sorted(registry.algorithms_of(op))
]


def program(
    case: Case, table: list[list[int]], sends: list[bytes], before: list[bytes]
) -> tuple[bytes, bytes]:
    """One collective call of mpi4py; the receive and the send buffer after it."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    me, op, root = comm.rank, case.op, case.root
    send = np.frombuffer(sends[me], np.uint64).copy()
    receive = np.frombuffer(before[me], np.uint64).copy()
    here = case.in_place and (op not in ROOTED or me == root)
    given = MPI.IN_PLACE if here else send
    counts = [n * WORDS for n in case.counts]
    row = [n * WORDS for n in table[me]]
    call = getattr(comm, op.capitalize(), None)
    if op == "barrier":
        comm.Barrier()
    elif op == "bcast":
        comm.Bcast(receive, root)
    elif op in ("scan", "exscan", "allreduce"):
        call(given, receive)
    elif op == "reduce":
        comm.Reduce(given, receive if me == root else None, root=root)
    elif op == "reduce_scatter":
        comm.Reduce_scatter(given, receive, counts)
    elif op in ("allgather", "alltoall", "reduce_scatter_block"):
        call(given, receive)
    elif op == "gather":
        comm.Gather(given, receive if me == root else None, root)
    elif op == "gatherv":
        comm.Gatherv(given, [receive, counts] if me == root else None, root)
    elif op == "allgatherv":
        comm.Allgatherv(given, [receive, counts])
    elif op == "scatter":
        comm.Scatter(send if me == root else None, MPI.IN_PLACE if here else receive, root)
    elif op == "scatterv":
        whole = [send, counts] if me == root else None
        comm.Scatterv(whole, MPI.IN_PLACE if here else receive, root)
    elif op == "alltoallv":
        comm.Alltoallv(MPI.IN_PLACE if here else [send, row], [receive, row])
    else:
        starts = [8 * sum(row[:i]) for i in range(comm.size)]
        blocks = (row, starts, [MPI.UINT64_T] * comm.size)
        comm.Alltoallw(MPI.IN_PLACE if here else [send, *blocks], [receive, *blocks])
    return receive.tobytes(), send.tobytes()


@pytest.mark.parametrize(("op", "name"), ALL, ids=[f"{op}-{name}" for op, name in ALL])
def test_the_board_gives_what_the_steps_give(op: str, name: str) -> None:
    draw = random.Random(f"{op} {name}")
    size = draw.randint(2, 12)
    root = draw.randrange(size) if op in ROOTED else 0
    cases = [
        Case(op, size, root, count, True, in_place)
        for in_place in ((False, True) if op not in ("barrier", "bcast") else (False,))
        for count in (1, draw.randint(2, 99))
    ]
    calls = []
    for case in cases:
        sends, before, _ = buffers(case)
        table = [[case.between(one, other) for other in range(size)] for one in range(size)]
        calls.append((case, table, sends, before))
    result = pysmpi.run(
        lambda: [program(*call) for call in calls], size, coll={op: name},
        compute="none", selector="default",
    )  # fmt: skip
    for i, (case, _, sends, before) in enumerate(calls):
        memories = [Memory(send, receive) for send, receive in zip(sends, before)]
        execute(named_schedules(case.calls(), name, setup=False), memories, add_bytes)
        for rank, memory in enumerate(memories):
            if op == "exscan" and rank == 0:
                continue  # its contents are undefined
            assert result.returns[rank][i] == (memory.receive, memory.send), (case, rank)


def neighbours(size: int) -> tuple[list[list[int]], list[list[int]]]:
    """Sources and destinations of a graph in which some ranks are neighbours twice."""
    destinations = [[(rank + 1) % size, (rank + 2) % size][: 1 + rank % 2] for rank in range(size)]
    sources: list[list[int]] = [[] for _ in range(size)]
    for rank, told in enumerate(destinations):
        for peer in told:
            sources[peer].append(rank)
    return sources, destinations


NEIGHBOURS = [op for op in registry.COLLECTIVES.names() if op.startswith("neighbor")]


@pytest.mark.parametrize("op", NEIGHBOURS)
def test_neighbours_get_their_blocks(op: str) -> None:
    one_block, by_pair = op.startswith("neighbor_allgather"), op[-1] in "vw"
    for name in registry.algorithms_of(op):
        for size in range(1, 34):
            sources, destinations = neighbours(size)

            def elements(source: int, dest: int) -> int:
                if not by_pair:
                    return 3
                return 1 + source % 4 if one_block else (source + 2 * dest) % 5  # noqa: B023

            calls, memories, wanted = [], [], []
            for rank in range(size):
                out = [elements(rank, dest) for dest in destinations[rank]]
                into = [elements(source, rank) for source in sources[rank]]
                mine = out[:1] or [elements(rank, rank)]
                send = contribution(rank, sum(mine if one_block else out))
                parts = []
                for k, source in enumerate(sources[rank]):
                    told = [elements(source, dest) for dest in destinations[source]]
                    whole = contribution(source, max(told) if one_block else sum(told))
                    # The k-th message between two ranks is their k-th edge.
                    edge = sources[rank][:k].count(source)
                    edges = [i for i, dest in enumerate(destinations[source]) if dest == rank]
                    first = 0 if one_block else sum(told[: edges[edge]])
                    parts.append(whole[first * 16 : (first + into[k]) * 16].tobytes())
                calls.append(
                    Call(op, rank, size, 0, 3, 16, sources=tuple(sources[rank]),
                         destinations=tuple(destinations[rank]),
                         send_counts=tuple(out) if by_pair else None,
                         recv_counts=tuple(into) if by_pair else None)
                )  # fmt: skip
                memories.append(Memory(send.tobytes(), bytes(16 * sum(into))))
                wanted.append(b"".join(parts))
            execute(named_schedules(calls, name), memories)
            assert [memory.receive for memory in memories] == wanted, (op, size)


@pytest.mark.parametrize("op", ["barrier", "bcast", "reduce", "allreduce"])
def test_through_the_lines_of_a_node(op: str) -> None:
    """`coherence_tuned` on a machine whose line costs are known."""
    from pysmpi.memory.lines.machine import HostLines
    from pysmpi.platform.loader import load
    from pysmpi.platform.placement import place

    found = []
    for size in (2, 3, 5, 16, 31, 60):
        slots = place(load("xeon-phi-5110p"), size, None, "core")
        selection = Selection("coherence_tuned").on_lines(HostLines(slots))
        nodes = tuple(slot.host.index for slot in slots)
        for root in {0, size // 2} if op in ROOTED else {0}:
            for count in (0, 1, 100, 4000):
                case = Case(op, size, root, count, True, False, nodes, selection)
                schedules = named_schedules(case.calls(), "coherence_tuned", setup=False)
                assert any(SHARE in s.codes for s in schedules)
                found += violations(case, None, schedules)
    assert not found, found[:5]
