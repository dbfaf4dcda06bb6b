"""The definition of each collective in MPI: the buffers before the call and after it.

Data is packed: blocks lie one behind another, in the order of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from reference_executor import Memory, execute

from pysmpi.collectives.building import named_schedules
from pysmpi.collectives.call import ROOTED, Call
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.selection import Selection
from pysmpi.kernel.schedule import Schedule

UNTOUCHED = 0x99  # initial bytes of the receive buffer


@dataclass(frozen=True)
class Case:
    """One collective call of all ranks: `counts` are the blocks of the v forms, in elements."""

    op: str
    size: int
    root: int = 0
    count: int = 1
    commutative: bool = True
    in_place: bool = False
    nodes: tuple[int, ...] | None = None
    selection: Selection | None = None
    type_size: int = 16

    @property
    def counts(self) -> tuple[int, ...]:
        """The block of each rank: unequal, some of them empty."""
        return tuple((self.count * (i % 3) + 1) // 2 for i in range(self.size))

    def between(self, one: int, other: int) -> int:
        """The elements that a rank gives another in alltoallv; the same the other way round."""
        return self.count * ((one + other) % 3) // 2

    def calls(self) -> list[Call]:
        """The calls as the ranks make them."""
        op, calls = self.op, []
        for rank in range(self.size):
            count, sends, receives = self.count, None, None
            if op in ("gatherv", "scatterv", "allgatherv"):
                count = self.counts[rank]
            if op in ("allgatherv", "reduce_scatter") or (op == "gatherv" and rank == self.root):
                receives = self.counts
            if op == "scatterv" and rank == self.root:
                sends = self.counts
            if op in ("alltoallv", "alltoallw"):
                row = tuple(self.between(rank, other) for other in range(self.size))
                sends = receives = row
            calls.append(
                Call(
                    op,
                    rank,
                    self.size,
                    self.root,
                    count,
                    self.type_size,
                    sends,
                    receives,
                    self.commutative,
                    self.in_place and (op not in ROOTED or rank == self.root),
                    nodes=None if self.nodes is None else Nodes(self.nodes),
                    selection=self.selection,
                )  # fmt: skip
            )
        return calls


def combine(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Composes linear functions modulo 2^64: associative, and does not commute."""
    x, y = (part.view(np.uint64).reshape(-1, 2) for part in (one, other))
    both = np.stack((x[:, 0] * y[:, 0], x[:, 0] * y[:, 1] + x[:, 1]), axis=1)
    return np.ascontiguousarray(both).reshape(-1).view(np.uint8)


def add_bytes(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Sums of 64-bit integers."""
    return (one.view(np.uint64) + other.view(np.uint64)).view(np.uint8)


def contribution(rank: int, elements: int, type_size: int = 16) -> np.ndarray:
    """The data of a rank: bytes that differ from those of all other ranks and places."""
    words = np.arange(elements * type_size // 8, dtype=np.uint64)
    mixed = (words * np.uint64(2) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ np.uint64(rank * 0x10001 + 7)).view(np.uint8)


def buffers(case: Case) -> tuple[list[bytes], list[bytes], list[bytes | None]]:
    """The send buffers, the receive buffers, and what these are at the end (None: anything)."""
    op, size, count, unit = case.op, case.size, case.count, case.type_size
    ranks = range(size)

    def blocks(data: np.ndarray, counts: list[int]) -> list[np.ndarray]:
        ends = np.cumsum([0, *counts]) * unit
        return [data[a:b] for a, b in zip(ends, ends[1:])]

    if op == "barrier":
        return [b""] * size, [b""] * size, [b""] * size
    if op == "bcast":
        message = contribution(case.root, count).tobytes()
        before = [message if r == case.root else _garbage(len(message)) for r in ranks]
        return [b""] * size, before, [message] * size
    counts = list(case.counts if op in ("gatherv", "scatterv", "allgatherv", "reduce_scatter")
                  else [count] * size)  # fmt: skip
    everybody = [True] * size
    at_root = [r == case.root for r in ranks]
    if op in ("gather", "gatherv", "allgather", "allgatherv"):
        sends = [contribution(r, counts[r]) for r in ranks]
        whole = np.concatenate(sends)
        where = at_root if op.startswith("gather") else everybody
        results = [whole if where[r] else None for r in ranks]
        own = {r: sum(counts[:r]) * unit for r in ranks}
        return _placed(case, sends, results, own, where)
    if op in ("scatter", "scatterv"):
        whole = contribution(case.root, sum(counts))
        parts = blocks(whole, counts)
        sends = [whole.tobytes() if at_root[r] else b"" for r in ranks]
        kept = [case.in_place and at_root[r] for r in ranks]
        before = [_garbage(0 if kept[r] else len(parts[r])) for r in ranks]
        return sends, before, [b"" if kept[r] else parts[r].tobytes() for r in ranks]
    if op in ("alltoall", "alltoallv", "alltoallw"):
        table = [[count if op == "alltoall" else case.between(a, b) for b in ranks] for a in ranks]
        sends = [contribution(r, sum(table[r])) for r in ranks]
        split = [blocks(sends[r], table[r]) for r in ranks]
        results = [np.concatenate([split[other][r] for other in ranks]) for r in ranks]
        return _placed(case, sends, results, dict.fromkeys(ranks, 0), everybody)
    # Reductions.
    length = {"reduce_scatter": sum(counts), "reduce_scatter_block": count * size}.get(op, count)
    sends = [contribution(r, length) for r in ranks]
    operator = add_bytes if case.commutative else combine

    def total(of: range) -> np.ndarray:
        return reduce(operator, [sends[r] for r in of])

    if op == "scan":
        results = [total(range(r + 1)) for r in ranks]
    elif op == "exscan":
        results = [total(range(r)) if r else None for r in ranks]
    elif op in ("reduce_scatter", "reduce_scatter_block"):
        results = list(blocks(total(ranks), counts))
        if case.in_place:
            # The rest of the buffer is unchanged.
            results = [
                np.concatenate((block, sends[r][len(block) :])) for r, block in enumerate(results)
            ]
    else:
        where = at_root if op == "reduce" else everybody
        results = [total(ranks) if where[r] else None for r in ranks]
    where = at_root if op == "reduce" else everybody
    placed = _placed(case, sends, results, dict.fromkeys(ranks, 0), where)
    if op == "exscan":
        before = placed[1]
        before[0] = before[0] or _garbage(len(sends[0]))
        placed[2][0] = None
    return placed


def _garbage(n: int) -> bytes:
    return bytes([UNTOUCHED]) * n


def _placed(
    case: Case,
    sends: list[np.ndarray],
    results: list[np.ndarray | None],
    own: dict[int, int],
    receives: list[bool],
) -> tuple[list[bytes], list[bytes], list[bytes | None]]:
    """The buffers where results are as long as receive buffers; `own` is the data in place."""
    before, after = [], []
    given = [part.tobytes() for part in sends]
    for rank, result in enumerate(results):
        data = b"" if result is None else result.tobytes()
        buffer = bytearray(_garbage(len(data)))
        if case.in_place and receives[rank]:
            buffer[own[rank] : own[rank] + len(given[rank])] = given[rank]
            given[rank] = b""
        before.append(bytes(buffer))
        after.append(data)
    return given, before, after


def violations(
    case: Case, name: str | None, schedules: list[Schedule] | None = None, early: bool = True
) -> list[str]:
    """The errors in the buffers after an algorithm has run, one line each."""
    sends, before, after = buffers(case)
    memories = [Memory(send, receive) for send, receive in zip(sends, before, strict=True)]
    if schedules is None:
        # Messages of ranks about nodes are no data of the call.
        schedules = named_schedules(case.calls(), name, setup=False)
    try:
        execute(schedules, memories, add_bytes if case.commutative else combine, early)
    except AssertionError as error:
        return [f"{case}: {type(error).__name__}: {error}"]
    found = []
    for rank, memory in enumerate(memories):
        if memory.send != sends[rank]:
            found.append(f"{case}: rank {rank}: the send buffer is changed")
        wanted = after[rank]
        if wanted is not None and memory.receive != wanted:
            got = np.frombuffer(memory.receive, np.uint8)
            wrong = np.flatnonzero(got != np.frombuffer(wanted, np.uint8))
            found.append(f"{case}: rank {rank}: wrong from byte {wrong[0]} of {len(got)} on")
    return found
