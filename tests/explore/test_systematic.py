"""Systematic exploration: counts as in theory, reduction loses nothing, failures are found."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pysmpi.explore.executions import Executions
from pysmpi.explore.executor import Executor
from pysmpi.explore.exploration import Explorer, SearchLimits, SearchResult
from pysmpi.explore.systematic import SearchTree
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options


def job(main: Callable[..., Any], ranks: int, args: Sequence[Any] = ()) -> Callable[[], Job]:
    return lambda: Job(FunctionProgram(main, args), Options(nprocs=ranks, compute="none"))


def explore(
    main: Callable[..., Any], ranks: int, args: Sequence[Any] = (), **settings: Any
) -> SearchResult:
    chosen = SearchLimits(**{"sends": "buffered", "shrink": False, "keep_going": True} | settings)
    make = job(main, ranks, args)
    return Explorer(Executor(make, chosen.jobs, chosen.timeout), ranks, chosen).run()


def to_one() -> list[int] | None:
    """All send to rank 0, which receives from any of them."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        comm.send(comm.rank, dest=0)
        return None
    return [comm.recv(source=MPI.ANY_SOURCE) for _ in range(comm.size - 1)]


def pairs() -> None:
    """Each rank of the first half receives from any source; only one rank sends to it."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    half = comm.size // 2
    if comm.rank < half:
        comm.recv(source=MPI.ANY_SOURCE)
    else:
        comm.send(1, dest=comm.rank - half)


def sums() -> None:
    """Ranks add numbers to a window: the order does not matter."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    memory = numpy.zeros(1, "i")
    win = MPI.Win.Create(memory, 4, comm=comm)
    win.Lock_all()
    win.Accumulate(numpy.array([comm.rank], "i"), 0, op=MPI.SUM)
    win.Unlock_all()
    comm.Barrier()
    win.Free()


@pytest.mark.parametrize("senders", [2, 3, 4])
@pytest.mark.parametrize("reduction", ["none", "sleep", "source"])
def test_senders_to_one_receive_have_all_orders(senders: int, reduction: str) -> None:
    found = explore(to_one, senders + 1, reduction=reduction)
    assert found.complete and not found.failures
    assert found.executions == len(found.results) == math.factorial(senders)


def across(size: int) -> list[int] | None:
    """The last ranks send to rank 0 of the first `size`, by an intercommunicator, after a word."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    first = world.rank < size
    side = world.Split(int(first))
    other = side.Create_intercomm(0, world, size if first else 0)
    if first:
        for rank in range(other.remote_size) if side.rank == size - 1 else ():
            other.send("go", dest=rank)
        if side.rank == 0:
            return [other.recv(source=MPI.ANY_SOURCE) for _ in range(other.remote_size)]
    else:
        other.recv(source=MPI.ANY_SOURCE)
        other.send(side.rank, dest=0)
    return None


@pytest.mark.parametrize("sizes", [(1, 3), (2, 3), (3, 2), (3, 3)])
@pytest.mark.parametrize("reduction", ["none", "source"])
def test_messages_between_groups_have_all_orders(sizes: tuple[int, int], reduction: str) -> None:
    result = explore(across, sum(sizes), [sizes[0]], reduction=reduction)
    assert result.complete and not result.failures, result.failures
    assert len(result.results) == math.factorial(sizes[1])
    if reduction == "source":
        assert result.executions <= 2 * math.factorial(sizes[1])


@pytest.mark.parametrize("sends", ["buffered", "waiting", "both"])
def test_messages_between_groups_under_strategies(sends: str) -> None:
    result = explore(across, 5, [2], schedule="random", runs=10, sends=sends)
    assert not result.failures, result.failures


@pytest.mark.parametrize("senders", [2, 3, 4])
def test_independent_receives_have_one_order_with_reduction(senders: int) -> None:
    assert explore(pairs, 2 * senders, reduction="none").executions == math.factorial(senders)
    assert explore(pairs, 2 * senders, reduction="sleep").executions == 1
    found = explore(pairs, 2 * senders, reduction="source")
    assert (found.executions, found.redundant, found.complete) == (1, 0, True)


def test_accumulates_with_one_operator_commute() -> None:
    full = explore(sums, 3, reduction="none")
    reduced = explore(sums, 3, reduction="source")
    assert full.complete and reduced.complete
    assert reduced.executions < full.executions
    assert full.executions % math.factorial(3) == 0


def hidden() -> None:
    """Only after rank 1 has heard of it, rank 2's message competes for the receive of rank 0."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        first = comm.recv(source=MPI.ANY_SOURCE)
        comm.recv(source=MPI.ANY_SOURCE)
        if first == "late":
            raise RuntimeError("the late message came first")
    elif comm.rank == 1:
        comm.send("early", dest=0)
    elif comm.rank == 2:
        comm.recv(source=MPI.ANY_SOURCE)
        comm.send("late", dest=0)
    else:
        comm.send("go", dest=2)


@pytest.mark.parametrize("reduction", ["none", "sleep", "source"])
def test_messages_that_another_wildcard_releases_are_candidates(reduction: str) -> None:
    found = explore(hidden, 4, reduction=reduction)
    assert found.complete
    assert [failure.cause.partition(":")[0] for failure in found.failures] == [
        "PSM102 exception in a rank"
    ]


def two_wildcards() -> None:
    """A receive from any source may take the message that a later one needs."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        comm.recv(source=MPI.ANY_SOURCE)
        comm.recv(source=1)
    else:
        comm.send(comm.rank, dest=0)


def test_the_deadlock_of_two_wildcards_is_found_and_explained() -> None:
    found = explore(two_wildcards, 3, shrink=True)
    assert found.complete and found.executions == 2
    (failure,) = found.failures
    assert failure.cause.startswith("PSM101 deadlock at ")
    assert failure.inevitable == 1
    assert "rank 0 recv" in failure.sites[0] and "takes the message of rank 1" in failure.sites[0]


def head_to_head() -> None:
    """Both ranks send first."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.send(1, dest=1 - comm.rank)
    comm.recv(source=1 - comm.rank)


def test_sends_that_rely_on_buffers_are_found() -> None:
    assert not explore(head_to_head, 2).failures
    found = explore(head_to_head, 2, sends="both")
    assert [failure.schedule.partition(":")[0] for failure in found.failures] == ["s"]


def test_a_correct_program_is_proved_clean() -> None:
    found = explore(ordered, 3, sends="both")
    assert found.complete and not found.failures and len(found.results) == 1


def ordered() -> int:
    """Rank 0 sorts the messages that it receives."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    parts = {comm.rank: comm.rank}
    if comm.rank == 0:
        for _ in range(comm.size - 1):
            status = MPI.Status()
            value = comm.recv(source=MPI.ANY_SOURCE, status=status)
            parts[status.source] = value
    else:
        comm.send(comm.rank, dest=0)
    total: int = comm.bcast(sum(value * (1 + rank) for rank, value in sorted(parts.items())))
    return total


def program(seed: int, ranks: int, length: int) -> list[Any]:
    """A random program of sends, receives from any source, probes and Waitany."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rng = random.Random(seed)
    kinds = ["any", "any", "any tag", "named", "irecv", "probe", "iprobe"]
    steps: list[list[tuple[str, int, int, int]]] = [[] for _ in range(ranks)]
    for number in range(length):
        source, target = rng.sample(range(ranks), 2)
        tag = rng.randrange(2)
        steps[source].append(("send", target, tag, number))
        steps[target].append((rng.choice(kinds), source, tag, number))
    mine = steps[comm.rank]
    if rng.random() < 0.5:
        random.Random(f"{seed}/{comm.rank}").shuffle(mine)
    got: list[Any] = []
    open_requests: list[Any] = []

    def take() -> None:
        i, value = MPI.Request.waitany(open_requests)
        open_requests.pop(i)
        got.append(value)

    try:
        for kind, peer, tag, number in mine:
            if kind == "send":
                comm.send((comm.rank, number), peer, tag)
            elif kind == "any":
                got.append(comm.recv(source=MPI.ANY_SOURCE, tag=tag))
            elif kind == "any tag":
                got.append(comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG))
            elif kind == "named":
                got.append(comm.recv(source=peer, tag=MPI.ANY_TAG))
            elif kind == "irecv":
                open_requests.append(comm.irecv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG))
            elif kind == "probe":
                status = MPI.Status()
                comm.probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
                got.append(comm.recv(source=status.source, tag=status.tag))
            elif comm.iprobe(MPI.ANY_SOURCE, tag):
                got.append("seen")
            if open_requests and rng.random() < 0.3:
                take()
        while open_requests:
            take()
    finally:
        print("rank", comm.rank, got, flush=True)
    return got


def outcomes(
    seed: int, ranks: int, length: int, reduction: str, buffered: bool, most: int
) -> tuple[set[Any], int] | None:
    """All results and failures of a random program, and the executions; None if these are many."""

    def work(executor: Executions) -> tuple[set[Any], int] | None:
        tree = SearchTree(reduction, buffered)
        seen = set()
        while True:
            while not executor.busy:
                task = tree.next()
                if task is None:
                    break
                executor.submit(tree.observer(task), task)
            if executor.idle:
                return seen, tree.executions
            task, execution = executor.next()
            assert execution.trace is not None and execution.trace.diverged is None
            tree.learn(task, execution.trace)
            if not execution.trace.redundant and execution.trace.met is None:
                seen.add((execution.result, execution.cause))
            if tree.executions > most:
                executor.stop()
                return None

    return Executor(job(program, ranks, (seed, ranks, length)), 2).serve(work)


@pytest.mark.parametrize("seed", range(12))
def test_reduction_loses_no_outcome(seed: int) -> None:
    rng = random.Random(seed)
    ranks, length, buffered = rng.choice([3, 3, 4]), rng.choice([3, 4, 5]), rng.random() < 0.6
    full = outcomes(seed, ranks, length, "none", buffered, 150)
    if full is None:
        return  # too many to compare
    for reduction in ("sleep", "source"):
        reduced = outcomes(seed, ranks, length, reduction, buffered, 150)
        assert reduced is not None
        assert reduced[0] == full[0]
        assert reduced[1] <= full[1]


def test_an_exploration_continues_where_it_stopped() -> None:
    make = job(to_one, 4)
    settings = SearchLimits(runs=2, sends="buffered", shrink=False)
    first = Explorer(Executor(make), 4, settings)
    found = first.run()
    assert (found.executions, found.complete) == (2, False) and found.left > 0
    trees = [SearchTree.load(json.loads(json.dumps(tree.dump()))) for tree in first.trees]
    settings = SearchLimits(sends="buffered", shrink=False)
    rest = Explorer(Executor(make), 4, settings, trees=trees).run()
    assert rest.complete and rest.executions == 4
    schedules = {schedule for schedule, _ in [*found.results, *rest.results]}
    assert len(schedules) == 6


def test_one_execution_predicts_other_orders() -> None:
    found = explore(two_wildcards, 3, runs=1)
    assert len(found.predictions) == 1
    assert found.predictions[0].startswith("step 0: match ")


def test_failures_are_shrunk_to_few_deviations() -> None:
    found = explore(third, 5, schedule="random", runs=60, keep_going=False, shrink=True, seed=3)
    (failure,) = found.failures
    assert failure.deviations <= 2
    assert failure.schedule.count("=") <= 2


def third() -> None:
    """Fails if the message of rank 3 comes second."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        comm.send(comm.rank, dest=0)
        return
    order = [comm.recv(source=MPI.ANY_SOURCE) for _ in range(comm.size - 1)]
    assert order[1] != 3
