"""Ranks that differ only by their numbers: one order stands for all that exchange them."""

from __future__ import annotations

import json
import os
import random
from ast import literal_eval
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from every_order import ANY, DEADLOCK, Program, outcomes

from pysmpi.cli.main import status_of
from pysmpi.explore.alike import alike
from pysmpi.explore.executions import Executions
from pysmpi.explore.executor import Executor
from pysmpi.explore.states import MEETS
from pysmpi.explore.systematic import SearchTree
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options

meets = pytest.mark.skipif(
    not MEETS, reason="states are not compared without a C compiler, nor in Python 3.14"
)


def gather(kind: str) -> object:
    """Rank 0 receives from all others."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        value = {"ranks": comm.rank, "objects": ("one", {"rank": comm.rank}), "squares": 100}
        comm.send(comm.rank**2 + 100 if kind == "squares" else value[kind], dest=0)
        return None
    return [comm.recv() for _ in range(comm.size - 1)]


def searched(main: Any, args: Any, ranks: int, symmetric: bool) -> tuple[SearchTree, set[Any]]:
    """The tree of all orders, and what rank 0 returns in them, or the causes of failures."""

    def work(executor: Executions) -> tuple[SearchTree, set[Any]]:
        tree = SearchTree(symmetric=symmetric)
        found: set[Any] = set()
        while (task := tree.next()) is not None:
            executor.submit(tree.observer(task), task)
            done, trial = executor.next()
            tree.learn(done, trial.trace)
            if not trial.trace.redundant and trial.trace.met is None:
                found.add(trial.cause or repr(literal_eval(trial.returns)[0]))
        return tree, found

    options = Options(nprocs=ranks, compute="none")
    return Executor(lambda: Job(FunctionProgram(main, args), options)).serve(work)


@meets
@pytest.mark.parametrize("kind", ["ranks", "objects"])
def test_messages_of_ranks_that_differ_by_number_count_once(kind: str) -> None:
    tree, _ = searched(gather, (kind,), 6, True)
    assert tree.executions + tree.redundant + tree.meetings == 1
    assert tree.alike == {1, 2, 3, 4, 5}


@meets
def test_ranks_with_other_values_are_not_alike() -> None:
    tree, found = searched(gather, ("squares",), 4, True)
    assert (tree.executions, len(found), tree.alike) == (6, 6, set())


def workers(seed: int) -> object:
    """A random program in which all ranks but 0 do the same."""
    from mpi4py import MPI

    draw = random.Random(seed)
    comm, status = MPI.COMM_WORLD, MPI.Status()
    count = draw.choice((1, 2))
    sends = [(draw.choice(("send", "ssend")), draw.randrange(2)) for _ in range(count)]
    replies = draw.random() < 0.5
    kinds = [draw.choice(("recv", "probe", "irecv")) for _ in sends * (comm.size - 1)]
    any_tag = draw.random() < 0.6
    if comm.rank:
        for step, (kind, tag) in enumerate(sends):
            getattr(comm, kind)((comm.rank, step), dest=0, tag=tag)
        if replies:
            comm.recv(source=0)
        return None
    tags = [tag for _, tag in sends for _ in range(comm.size - 1)]
    log, first = [], []
    for kind, tag in zip(kinds, tags):
        wanted = MPI.ANY_TAG if any_tag else tag
        if kind == "probe":
            comm.probe(tag=wanted, status=status)
            log.append(comm.recv(source=status.source, tag=status.tag))
        elif kind == "irecv":
            log.append(MPI.Request.waitany([comm.irecv(tag=wanted)])[1])
        else:
            log.append(comm.recv(tag=wanted))
        if log[-1][0] not in first:
            first.append(log[-1][0])
            if replies:
                comm.send(len(first), dest=first[-1])
    return log


def renamed(outcome: str, ranks: int) -> set[str]:
    """An outcome with all exchanges of the ranks from 1 on."""
    if not outcome.startswith("["):
        return {outcome}
    log = literal_eval(outcome)
    return {
        repr([(order[rank - 1], step) for rank, step in log])
        for order in permutations(range(1, ranks))
    }


CASES = int(os.environ.get("PYSMPI_CASES", "5"))


@meets
@pytest.mark.parametrize("seed", range(CASES))
def test_outcomes_are_all_but_for_the_numbers_of_ranks(seed: int) -> None:
    full, outcomes = searched(workers, (seed,), 4, False)
    tree, fewer = searched(workers, (seed,), 4, True)
    assert set().union(*(renamed(one, 4) for one in fewer)) == outcomes
    assert tree.executions < full.executions
    again = SearchTree.load(json.loads(json.dumps(tree.dump())))
    assert (again.symmetric, again.alike) == (True, tree.alike)


def sums(count: int) -> object:
    """Each rank sends some numbers to rank 0, which adds them up."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        for _ in range(count):
            comm.send(1, dest=0)
        return None
    total = 0
    for _ in range(count * (comm.size - 1)):
        total += comm.recv()
    return total


def differing(count: int) -> object:
    """Rank 0 remembers who came first, until the end."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        for _ in range(count):
            comm.send(comm.rank, dest=0)
        return None
    first = comm.recv()
    total = 0
    for _ in range(count * (comm.size - 1) - 1):
        total += comm.recv()
    return first, total


@meets
def test_ranks_that_have_taken_part_are_alike_if_their_order_made_no_difference() -> None:
    costs = []
    for ranks in (4, 5):
        tree, found = searched(sums, (2,), ranks, True)
        assert found == {str(2 * (ranks - 1))} and not tree.left
        costs.append(tree.executions + tree.redundant + tree.meetings)
    assert costs[0] <= 25 and costs[1] <= 45, costs
    full, _ = searched(sums, (2,), 5, False)
    assert costs[1] < (full.executions + full.redundant + full.meetings) / 3


@meets
def test_an_order_that_the_program_remembers_is_explored() -> None:
    full, outcomes = searched(differing, (2,), 4, False)
    tree, found = searched(differing, (2,), 4, True)
    assert len(outcomes) == 3 and {literal_eval(one)[1] for one in found} < {9, 10, 11}
    assert tree.executions < full.executions


Alike = tuple[Program, frozenset[int]]


def alike_program(seed: int) -> Alike:
    """A program of the reference whose ranks do the same, but for rank 0, which receives.

    Also the receives whose order it remembers.
    """
    draw = random.Random(seed)
    sends = [
        (draw.choice(("send", "ssend")), 0, draw.randrange(2))
        for _ in range(draw.choice((1, 2, 2)))
    ]
    receives = [
        (draw.choice(("recv", "recv", "probe")), ANY, ANY if draw.random() < 0.6 else tag)
        for _, _, tag in sends * 3
    ]
    draw.shuffle(receives)
    kept = frozenset(i for i in range(len(receives)) if draw.random() < 0.3)
    return (tuple(receives), *(tuple(sends) for _ in range(3))), kept


def alike_run(program: Program, kept: frozenset[int]) -> object:
    """The same for mpi4py."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        for step, (kind, _, tag) in enumerate(program[comm.rank]):
            getattr(comm, kind)((comm.rank, step), dest=0, tag=tag)
        return None
    sorted_ones: list[Any] = []
    in_order: list[Any] = []
    for i, (kind, _, tag) in enumerate(program[0]):
        if kind == "probe":
            comm.probe(tag=MPI.ANY_TAG if tag == ANY else tag)
        log = in_order if i in kept else sorted_ones
        log.append(comm.recv(tag=MPI.ANY_TAG if tag == ANY else tag))
        sorted_ones.sort()
    return sorted_ones, in_order


def of_reference(outcome: Any, kept: frozenset[int], order: Sequence[int]) -> str:
    """An outcome of the reference as `alike_run` returns it, with other numbers of ranks."""
    if outcome == DEADLOCK:
        return DEADLOCK
    # Smaller ones are the sources that probes have seen.
    values = [value for value in outcome[0] if value >= 100]
    taken = [(order[value // 100 - 1], value % 100) for value in values]
    rest = sorted(one for i, one in enumerate(taken) if i not in kept)
    return repr((rest, [one for i, one in enumerate(taken) if i in kept]))


@meets
@pytest.mark.parametrize("seed", range(3 * CASES))
def test_outcomes_are_those_of_the_reference_but_for_the_numbers(seed: int) -> None:
    program, kept = alike_program(seed)
    results = outcomes(program)
    wanted = {of_reference(one, kept, (1, 2, 3)) for one in results}
    # The reference has every renaming of its outcomes, too: its program treats ranks alike.
    assert wanted == {
        of_reference(one, kept, order) for one in results for order in permutations((1, 2, 3))
    }
    _, found = searched(alike_run, (program, kept), 4, True)
    renamings: set[str] = set()
    for one in found:
        if one.startswith("PSM101"):
            renamings.add(DEADLOCK)
            continue
        logs = literal_eval(one)
        for order in permutations((1, 2, 3)):
            rest, taken = ([(order[rank - 1], step) for rank, step in log] for log in logs)
            renamings.add(repr((sorted(rest), taken)))
    assert renamings == wanted


def test_descriptions_differ_by_numbers_only_at_the_same_parts() -> None:
    assert alike([5, 1, "a", (2, 1)], [5, 2, "a", (2, 2)], 1, 2)
    assert not alike([1, 2], [2, 1], 1, 2)
    assert not alike(["1"], ["2"], 1, 2)
    assert not alike([1.0], [2.0], 1, 2)
    assert not alike([1], [2, 2], 1, 2)
    assert alike([b"\1\0\0\0"], [b"\2\0\0\0"], 1, 2)
    assert not alike([b"\1\1\0\0"], [b"\2\1\0\0"], 1, 2)


@meets
def test_the_verdict_says_what_is_assumed(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text(
        "from mpi4py import MPI\n"
        "comm = MPI.COMM_WORLD\n"
        "if comm.rank:\n    comm.send(1, dest=0)\n"
        "else:\n    print(sum(comm.recv() for _ in range(comm.size - 1)))\n"
    )
    words = ["explore", "-n", "4", "-j", "1", "--database", "none", "--symmetric", "--json", "f"]
    assert status_of([*words, "prog.py"]) == 0
    assert "assumed (--symmetric): ranks 1, 2, 3 differ only by their numbers" in (
        capfd.readouterr().err
    )
    found = json.loads((tmp_path / "f").read_text())
    assert (found["executions"], found["complete"], found["alike"]) == (2, True, [1, 2, 3])
