"""The search finds the outcomes that a model finds which visits every state.

`PYSMPI_ALL_ORDERS=1` compares 2,000 random programs of messages, and 400 of all calls, in parts
that can run one after another: a part has the numbers of its programs as its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import every_order
import pytest
import wider
from every_order import ANY, DEADLOCK, Program

from pysmpi.explore.executor import Executor
from pysmpi.explore.exploration import Explorer, SearchLimits, SearchResult
from pysmpi.explore.states import MEETS
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options

SEEDS = (2084, 2566, 2893)  # programs in which a cancelled receive competes with tests
ALL = os.environ.get("PYSMPI_ALL_ORDERS") == "1"
COUNT = 2000 if ALL else 25
PART = 25 if ALL else 5
# Of all calls: one program of each theme, and those that have shown errors.
WIDER = range(400) if ALL else (*range(6), 65)


def parts(programs: Sequence[int], size: int) -> list[Any]:
    """Programs in parts, each of which is a test."""
    chunks = [programs[i : i + size] for i in range(0, len(programs), size)]
    return [pytest.param(chunk, id=f"{chunk[0]}-{chunk[-1]}") for chunk in chunks]


def logs(program: Program) -> None:
    """Run a program, and print the logs of all ranks."""
    from mpi4py import MPI

    gathered = MPI.COMM_WORLD.gather(tuple(every_order.run(program)))
    if gathered:
        print(tuple(gathered))


def wider_logs(program: Program) -> None:
    """Run a program of all calls, and print the logs of all ranks."""
    from mpi4py import MPI

    gathered = MPI.COMM_WORLD.gather(tuple(wider.run(program)))
    if gathered:
        print(tuple(gathered))


def numbers(program: Program) -> None:
    """Run a program, and print a number for each rank."""
    from mpi4py import MPI

    print(MPI.COMM_WORLD.rank, every_order.run(program, every_order.Fold()).number, flush=True)


def assert_meets(program: Program) -> SearchResult:
    """The search and the model have the same numbers, where orders lead to one state."""
    expected = every_order.outcomes(program)
    result = search(numbers, len(program), program)
    assert result.complete
    printed = {tuple(sorted(output.split("\n"))) for output in result.outputs}
    assert printed == {
        tuple(sorted(["", *(f"{i} {every_order.folded(log)}" for i, log in enumerate(logs))]))
        for logs in expected
        if logs != DEADLOCK
    }
    assert bool(result.failures) == (DEADLOCK in expected)
    return result


def search(
    main: Callable[..., Any], ranks: int, *args: Any, sends: str = "buffered"
) -> SearchResult:
    limits = SearchLimits(sends=sends, shrink=False, keep_going=True, runs=5000)
    options = Options(nprocs=ranks, compute="none")
    executor = Executor(lambda: Job(FunctionProgram(main, args), options), timeout=600.0)
    return Explorer(executor, ranks, limits).run()


def assert_same(program: Program, main: Any = logs, *, waiting: bool = False) -> SearchResult:
    """The search and the model have the same outcomes."""
    expected = every_order.outcomes(wider.waiting(program) if waiting else program)
    sends = "waiting" if waiting else "buffered"
    result = search(main, len(program), program, sends=sends)
    assert result.complete
    printed = {output.strip() for output in result.outputs}
    assert printed == {str(outcome) for outcome in expected if outcome != DEADLOCK}
    assert bool(result.failures) == (DEADLOCK in expected)
    return result


@pytest.mark.parametrize("part", parts(range(COUNT), PART))
def test_random_programs_have_all_their_outcomes(part: range) -> None:
    for seed in part:
        assert_same(every_order.random_program(seed))


@pytest.mark.parametrize("part", parts(WIDER, 10 if ALL else 2))
def test_random_programs_of_all_calls_have_all_their_outcomes(part: Sequence[int]) -> None:
    for seed in part:
        program = wider.wider_program(seed)
        # In one of three, standard sends wait for their receives.
        assert_same(program, wider_logs, waiting=seed % 3 == 2)


W = ("words",)
ACCESSES = {
    "an accumulate that is not flushed": (
        (("add", 2), ("send", 1, 0), W), (("recv", 0, 0), ("fetch", 2), W), (W,),
    ),
    "an accumulate that is flushed": (
        (("add", 2), ("flush", 2), ("send", 1, 0), W), (("recv", 0, 0), ("fetch", 2), W), (W,),
    ),
    "accumulates of one rank": ((("add", 1), ("fetch", 1), W), (("fetch", 1), W)),
    "a rank's own memory": ((("add", 0), ("send", 1, 0), W), (("recv", 0, 0), ("fetch", 0), W)),
    "an accumulate under a lock": (
        (("lock", 1, False), ("plus", 1), ("unlock", 1), ("send", 1, 0), W),
        (("lock", 1, False), ("plus", 1), ("recv", 0, 0), ("unlock", 1), W),
    ),
    "the shared file pointer": ((("write",), W), (("write",), W)),
}  # fmt: skip


@pytest.mark.parametrize("kind", ACCESSES)
def test_accesses_take_effect_at_any_time_before_their_end(kind: str) -> None:
    result = assert_same(ACCESSES[kind], wider_logs)
    assert result.executions <= 12


@pytest.mark.parametrize("part", parts(range(COUNT), 25))
def test_orders_that_meet_have_all_their_outcomes(part: range) -> None:
    results = [assert_meets(every_order.random_program(seed, 6)) for seed in part]
    assert not MEETS or sum(result.meetings for result in results) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_cancelled_receives_have_all_outcomes(seed: int) -> None:
    assert_same(every_order.random_program(seed))


SEND, SECOND = ("send", 0, 0), ("send", 0, 1)
KINDS = {
    # Rank 0, and what the others do; one entry for each answer that MPI leaves open.
    "receive after a probe": ((("probe", ANY, 0), ("recv", ANY, ANY)), (SEND,), (SEND,)),
    "receive from the status of a probe": (
        (("follow", ANY, ANY), ("recv", ANY, ANY)), (SEND,), (SECOND,),
    ),
    "matched probe": ((("mprobe", ANY, ANY), ("recv", ANY, ANY)), (SEND,), (SECOND,)),
    "two probes": ((("iprobe", ANY, 0), ("probe", ANY, 0), ("recv", ANY, 0)), (SEND,), (SEND,)),
    "tests of two ranks": (
        (("iprobe", ANY, 0), ("send", 1, 0), ("recv", 1, 0)),
        (("iprobe", ANY, 0), ("send", 0, 0), ("recv", 0, 0)),
    ),
    "test of a send": (
        (("recv", ANY, 0), ("recv", ANY, 0)),
        (("issend", 0, 0), ("test",), ("waitall",)),
        (SEND,),
    ),
    "sends in waitany": (
        (("issend", 1, 0), ("issend", 2, 0), ("waitany",), ("waitall",)),
        (("recv", 2, 0), ("recv", 0, 0)),
        (("recv", 0, 0), ("send", 1, 0)),
    ),
    "waitany": (
        (("irecv", ANY, 0), ("irecv", ANY, 0), ("waitany",), ("waitany",)), (SEND,), (SEND,),
    ),
    "waitany beside decisions of other ranks": (
        (("irecv", 1, 0), ("irecv", 2, 0), ("waitany",), ("waitall",)),
        (("recv", ANY, 0), SEND),
        (("send", 3, 0), SEND),
        (("recv", ANY, 0), ("send", 1, 0)),
    ),
    "testany": (
        (("irecv", 1, 0), ("irecv", 2, 0), ("testany",), ("waitall",)), (SEND,), (SEND,),
    ),
    "waitsome": (
        (
            ("irecv", 1, 0), ("irecv", 2, 0), ("irecv", 3, 0), ("waitsome",), ("waitsome",),
            ("waitall",),
        ),
        (SEND,), (SEND,), (SEND,),
    ),
    "cancel": (
        (("irecv", ANY, 0), ("irecv", 1, ANY), ("cancel",), ("waitall",)),
        (SEND, ("send", 0, 0)),
    ),
    "matched probe frees a sender": (
        (("recv", ANY, 0), ("mprobe", ANY, ANY)),
        (("mprobe", ANY, ANY), ("recv", ANY, ANY)),
        (SEND, ("send", 1, 1)),
        (("ssend", 0, 0), ("send", 1, 0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_answer_that_mpi_leaves_open_is_tried(kind: str) -> None:
    assert_same(KINDS[kind])


def pairs(steps: int, call: str) -> None:
    """Two ranks exchange messages: each receive has one possible message."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for step in range(steps):
        part = np.empty(1)
        send = comm.Isend(np.ones(1), dest=1 - comm.rank, tag=step)
        receive = comm.Irecv(part, source=MPI.ANY_SOURCE, tag=step)
        if call == "Wait":
            receive.Wait()
        else:
            getattr(MPI.Request, call)([receive])
        send.Wait()


@pytest.mark.parametrize("call", ["Wait", "Waitany", "Waitsome", "Waitall"])
def test_a_request_that_only_one_message_completes_leaves_nothing_open(call: str) -> None:
    result = search(pairs, 2, 6, call)
    assert (result.executions, result.redundant, result.complete) == (1, 0, True)


def test_the_report_names_the_matched_probe_as_the_remedy() -> None:
    program: Program = ((("probe", ANY, 0), ("recv", ANY, 0)), (SEND,), (SEND,))

    def main() -> None:
        log = every_order.run(program)
        assert not log or log[0] == log[1] // 100

    failure = search(main, 3).failures[0]
    assert any(
        "its probe saw that of rank 1: receive it with Mprobe and Mrecv" in site
        for site in failure.sites
    )
