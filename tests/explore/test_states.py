"""States that orders meet: whatever could change the future of a program is a part of them."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from pysmpi import run
from pysmpi.explore.executor import Executor
from pysmpi.explore.exploration import Explorer, SearchLimits, SearchResult
from pysmpi.explore.liveness import unused_after
from pysmpi.explore.states import MEETS
from pysmpi.explore.systematic import SearchTree
from pysmpi.explore.values import Opaque, Values
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options

meets = pytest.mark.skipif(
    not MEETS, reason="orders do not meet without a C compiler, nor in Python 3.14"
)


class Own:
    """A class whose attributes may change."""

    shared: list[int] = []

    def __init__(self, value: Any) -> None:
        self.value = value


class Slots:
    """A class without a dictionary."""

    __slots__ = ("one",)

    def __init__(self, one: int) -> None:
        self.one = one


@dataclasses.dataclass
class Data:
    """A class whose description is in a view of a dictionary."""

    one: int
    more: list[int | None] = dataclasses.field(default_factory=list)


class Pair(NamedTuple):
    """A tuple with names."""

    first: Any
    second: Any


class Cached:
    """A class with an attribute that is computed once."""

    number = 1

    @functools.cached_property
    def one(self) -> int:
        return self.number


class Derived(dict[str, int]):
    """A dictionary with attributes."""

    number = 0


def parts(value: Any) -> str:
    """The description of a value."""
    values = Values([__name__], lambda handle: None)
    values.value(value)
    return repr(values.parts)


def derived(number: int) -> Derived:
    """A dictionary with an attribute."""
    found = Derived(one=1)
    found.number = number
    return found


def computed(again: bool) -> Cached:
    """An instance whose attribute may have been computed."""
    found = Cached()
    assert not again or found.one
    return found


def advanced(iterator: Any, steps: int) -> Any:
    """An iterator after some steps."""
    for _ in range(steps):
        next(iterator)
    return iterator


def closure(number: int) -> Callable[[], int]:
    """A function with a variable of another one."""
    return lambda: number


def view(first: int) -> list[Any]:
    """An array, and a part of it."""
    array = np.zeros(4)
    return [array, array[first : first + 2]]


SAME, TWICE = [1], np.zeros(2)
DIFFERENT: dict[str, tuple[Any, Any]] = {
    "numbers": (1, 2),
    "types": (1, 1.0),
    "truth": (1, True),
    "order of a dictionary": ({1: 2, 3: 4}, {3: 4, 1: 2}),
    "shared lists": ([SAME, SAME], [[1], [1]]),
    "empty lists": ([SAME[1:]] * 2, [[], []]),
    "instances": (Own(1), Own(2)),
    "slots": (Slots(1), Slots(2)),
    "fields": (Data(1), Data(2)),
    "lists in fields": (Data(1), Data(1, [None])),
    "tuples with names": (Pair(1, SAME), Pair(1, [2])),
    "shared lists in tuples": (Pair(SAME, SAME), Pair([1], [1])),
    "attributes that are computed once": (computed(False), computed(True)),
    "patterns": (re.compile("a"), re.compile("b")),
    "kinds of lists": (list[int], list[str]),
    "one of two kinds": (int | None, str | None),
    "views of dictionaries": (MappingProxyType({1: SAME}), MappingProxyType({1: [2]})),
    "attributes of a dictionary": (derived(1), derived(2)),
    "iterators of lists": (iter([1, 2]), advanced(iter([1, 2]), 1)),
    "iterators of ranges": (iter(range(3)), advanced(iter(range(3)), 1)),
    "enumerations": (enumerate("ab"), advanced(enumerate("ab"), 1)),
    "closures": (closure(1), closure(2)),
    "arrays": (np.zeros(2), np.ones(2)),
    "types of arrays": (np.zeros(2), np.zeros(2, "i8")),
    "shapes of arrays": (np.zeros((2, 3)), np.zeros((3, 2))),
    "parts of arrays": (view(0), view(1)),
    "shared arrays": ([TWICE, TWICE], [np.zeros(2), np.zeros(2)]),
    "objects in arrays": (np.array([None, 1], object), np.array([None, 2], object)),
    "random numbers": (random.Random(1), random.Random(2)),
    "generators of numpy": (np.random.default_rng(1), np.random.default_rng(2)),
    "counters": (collections.Counter("ab"), collections.Counter("abb")),
    "queues": (collections.deque([1]), collections.deque([2])),
    "bytes": (bytearray(b"a"), bytearray(b"b")),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_values_that_differ_have_other_parts(name: str) -> None:
    one, other = DIFFERENT[name]
    assert parts(one) != parts(other)
    assert parts(one) == parts(one)


def test_attributes_of_classes_count() -> None:
    before = parts(Own(1))
    Own.shared.append(1)
    try:
        assert parts(Own(1)) != before
    finally:
        Own.shared.clear()
    assert parts(Own(1)) == before


@pytest.mark.parametrize(
    "value",
    [(one for one in "ab"), threading.Lock(), memoryview(b"a")],
    ids=["generator", "lock", "view"],
)
def test_what_python_does_not_show_has_no_parts(value: Any) -> None:
    with pytest.raises(Opaque):
        parts([value])


def total(count: int) -> int:
    """A loop whose variable is set anew in each turn."""
    found = 0
    for _ in range(count):
        value = count - found
        found += value
    return found


def reader(count: int) -> int:
    """Its code may read any variable."""
    value = count
    return len(locals()) + value


def test_variables_that_are_set_before_they_are_read_do_not_count() -> None:
    table = unused_after(total.__code__)
    assert table is not None
    assert any({"value", "_"} <= names and "found" not in names for names in table.values())
    assert all("count" in names for offset, names in table.items() if offset > max(table) - 2)
    assert unused_after(reader.__code__) is None


def gather(kind: str) -> object:
    """Rank 0 adds numbers up, and keeps something about their order or not."""
    import os

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        waiting = (comm.recv(source=0) for _ in range(1)) if kind == "bystanders" else None
        comm.send(comm.rank, dest=0)
        return waiting and list(waiting)
    total = 0
    first = 0
    made = (one for one in range(10)) if kind == "generator" else None
    room: list[Any] = []
    for i in range(comm.size - 1):
        value = comm.recv()
        total += value
        if kind == "prints" and not i:
            print(value, flush=True)
        elif kind == "keeps" and not i:
            first = value
        elif kind == "generator":
            next(made)  # type: ignore[call-overload]
        elif kind == "environment" and not i:
            os.environ["FIRST"] = str(value)
        elif kind == "empty":
            del room[:]
            for size in (30, 300, 3000):
                np.full(size, value)
                room += [np.empty(size), np.empty(size, "i1"), np.ndarray(size)]
                room.append(np.add(value, np.ones(size), where=np.zeros(size, bool)))
    if kind == "bystanders":
        for other in range(1, comm.size):
            comm.send(total, dest=other)
    return total, first, os.environ.get("FIRST")


def searched(ranks: int, kind: str) -> SearchResult:
    """The search of all orders of a gather."""
    limits = SearchLimits(sends="buffered", shrink=False, keep_going=True)
    options = Options(nprocs=ranks, compute="none")
    make = lambda: Job(FunctionProgram(gather, (kind,)), options)  # noqa: E731
    return Explorer(Executor(make), ranks, limits).run()


# The executions without and with meetings are those of permutations and of subsets.
SUMS = {6: 60, 8: 350, 12: 10_000} if os.environ.get("PYSMPI_ALL_ORDERS") else {6: 60}


@meets
@pytest.mark.parametrize("ranks", SUMS)
def test_a_sum_of_numbers_costs_subsets(ranks: int) -> None:
    found = searched(ranks, "adds")
    assert found.complete and not found.failures
    assert len(found.results) == 1
    assert found.executions <= SUMS[ranks]


@meets
def test_what_memory_held_before_an_array_is_no_part_of_the_state() -> None:
    found = searched(5, "empty")
    assert found.complete and len(found.results) == 1
    assert found.executions == searched(5, "adds").executions
    again = run(lambda: np.empty(3).tolist(), 2, schedule="random")
    assert again.returns == [[0.0] * 3] * 2


@pytest.mark.parametrize("kind", ["prints", "keeps", "generator", "environment"])
def test_what_is_left_of_an_order_keeps_orders_apart(kind: str) -> None:
    found = searched(4, kind)
    assert found.complete
    assert len(found.results) == (1 if kind == "generator" else 3)
    if kind == "generator":
        assert found.executions == 6 and found.meetings == 0


@meets
def test_ranks_whose_values_python_does_not_show_are_told_by_their_past() -> None:
    """They hold a generator: the order of the messages, which they do not see, is no part of it."""
    found = searched(5, "bystanders")
    assert found.complete and len(found.results) == 1
    assert found.meetings > 0
    assert found.executions < 24  # the orders of four messages


@meets
def test_a_search_continues_with_the_states_that_it_has_met() -> None:
    options = Options(nprocs=5, compute="none")

    def job() -> Job:
        return Job(FunctionProgram(gather, ("adds",)), options)

    first = Explorer(Executor(job), 5, SearchLimits(sends="buffered", shrink=False, runs=7))
    assert not first.run().complete
    trees = [SearchTree.load(json.loads(json.dumps(tree.dump()))) for tree in first.trees]
    for tree, before in zip(trees, first.trees, strict=True):
        assert tree.memory.states.keys() == before.memory.states.keys()
        assert (tree.left, tree.meetings) == (before.left, before.meetings)
    rest = Explorer(Executor(job), 5, SearchLimits(sends="buffered", shrink=False), trees=trees)
    found = rest.run()
    assert found.complete
    assert 7 + found.executions == searched(5, "adds").executions


def test_polls_are_searched_where_stacks_cannot_be_read(tmp_path):
    program = Path(__file__).parent / "programs" / "polling.py"
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "explore", "-n", "3", "--json", "found.json", program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]),
             "PYSMPI_WITHOUT": "frame-stacks"},
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "internal error" not in done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert len(found["failures"]) == 1 and "PSM101" in done.stdout + done.stderr
