"""Ranks fail and the others go on: they learn of the failures, and continue without these ranks."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

import pysmpi


def run(main: Any, *args: Any, nprocs: int = 4, **options: Any) -> pysmpi.Result:
    chosen = {"compute": "none", "on_failure": "continue", "check": False, **options}
    return pysmpi.run(main, args=args, nprocs=nprocs, **chosen)


def mend(how: str) -> Any:
    """Rank 1 dies while all sum up their ranks; the others repair the communicator."""
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.Barrier()
    time.sleep(1)
    if comm.rank == 1:
        if how == "raise":
            raise ValueError("no more")
        if how == "exit":
            os._exit(3)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(9)  # until a fault
    failed = ""
    try:
        comm.allreduce(comm.rank)
    except MPI.Exception as error:
        failed = MPI.Get_error_string(error.Get_error_class())
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED
        comm.Revoke()
    lost = comm.Get_failed()
    assert MPI.Group.Translate_ranks(lost, None, comm.Get_group()) == [1]
    assert comm.Ack_failed() == 1
    assert comm.Agree(comm.rank | 8) == 8
    rest = comm.Shrink()
    assert (rest.size, rest.rank) == (3, comm.rank - (comm.rank > 1))
    return failed, rest.allreduce(comm.rank)


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("raise", "rank 1: ValueError: no more"),
        ("exit", "rank 1: os._exit(3) at "),
        ("kill", "rank 1: was killed by SIGKILL at "),
        ("fault", "rank 1: failed at t=2 s, --fault rank=1@2s"),
    ],
)
def test_survivors_repair_their_communicator(how: str, cause: str) -> None:
    fault = ["rank=1@2s"] if how == "fault" else []
    result = run(mend, how, fault=fault)
    assert result.exit_status == {"raise": 1, "exit": 3, "kill": 137, "fault": 0}[how]
    assert (result.error is None) == (how != "raise")
    assert [result.returns[i][1] for i in (0, 2, 3)] == [5, 5, 5]
    assert len(result.lost) == 1 and result.lost[0].startswith(cause)
    if how == "fault":
        assert result.seconds > 2


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_without_survivors_the_job_ends(how: str) -> None:
    result = run(mend, how, on_failure="end")
    assert result.exit_status == (3 if how == "exit" else 137)
    text = "called os._exit(3)" if how == "exit" else "was killed by SIGKILL"
    assert f"PSM103 job aborted: rank 1 {text} before MPI.Finalize" in str(result.error)


def waits(kind: str) -> Any:
    """Rank 0 waits in some call for rank 1, which fails at 1 s."""
    import time

    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.Barrier()
    if comm.rank == 1:
        time.sleep(9)
    if comm.rank:
        time.sleep(3)
        return None
    data = numpy.zeros(100_000)
    request = MPI.REQUEST_NULL
    if kind == "irecv":
        request = comm.Irecv(data, source=1)
    elif kind == "any":
        request = comm.Irecv(data, source=MPI.ANY_SOURCE)
    elif kind == "issend":
        request = comm.Issend(data, dest=1)
    elif kind == "ibarrier":
        request = comm.Ibarrier()
    elif kind == "late":
        time.sleep(2)
    try:
        if kind == "recv":
            comm.Recv(data, source=1)
        elif kind == "probe":
            comm.Probe(source=1)
        elif kind == "send":
            comm.Send(data, dest=1)
        elif kind == "sendrecv":
            comm.Sendrecv(data[:1], 2, 0, data[1:], 1, 0)
        elif kind == "dup":
            comm.Dup()
        elif kind == "late":
            comm.send(1, dest=1)
        else:
            request.Wait()
    except MPI.Exception as error:
        return error.Get_error_class() == MPI.ERR_PROC_FAILED, MPI.Wtime()
    return None


@pytest.mark.parametrize(
    "kind",
    ["recv", "irecv", "any", "probe", "send", "issend", "sendrecv", "ibarrier", "dup", "late"],
)
def test_waits_for_a_failed_rank_end(kind: str) -> None:
    failed, date = run(waits, kind, fault="rank=1@1s").returns[0]
    assert failed
    assert date == pytest.approx(2.0 if kind == "late" else 1.0, abs=1e-2)


def keeps() -> Any:
    """A message of a failed rank arrives; receives from any source work once it is acknowledged."""
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 1:
        comm.send("last words", dest=0, tag=5)
        time.sleep(9)
    time.sleep(2)
    if comm.rank == 2:
        comm.send("alive", dest=0, tag=6)
    if comm.rank:
        return None
    got = [comm.recv(source=1, tag=5)]
    try:
        comm.recv(source=MPI.ANY_SOURCE, tag=6)
    except MPI.Exception as error:
        got.append(error.Get_error_class() == MPI.ERR_PROC_FAILED)
    comm.Ack_failed()
    got.append(comm.recv(source=MPI.ANY_SOURCE, tag=6))
    return got


def test_messages_of_a_failed_rank_arrive_and_failures_are_acknowledged() -> None:
    assert run(keeps, nprocs=3, fault="rank=1@1s").returns[0] == ["last words", True, "alive"]


def agrees() -> Any:
    """No rank acknowledges the failure of rank 2: all learn of it in the same agreement."""
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    time.sleep(comm.rank)
    try:
        return comm.Agree(1)
    except MPI.Exception as error:
        return error.Get_error_class() == MPI.ERR_PROC_FAILED


def test_an_agreement_is_the_same_for_all_survivors() -> None:
    result = run(agrees, fault="rank=2@1500ms")
    assert [result.returns[i] for i in (0, 1, 3)] == [True, True, True]
    assert run(agrees).returns == [1, 1, 1, 1]


def steps() -> Any:
    """Work in steps that the survivors of failures continue."""
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD.Dup()
    done = 0
    while done < 20:
        time.sleep(0.1)
        try:
            comm.Barrier()
            fine = 1
        except MPI.Exception:
            fine = 0
        comm.Ack_failed()
        try:
            fine = comm.Agree(fine)
        except MPI.Exception:
            fine = 0
        if fine:
            done += 1
        else:
            comm = comm.Shrink()
    return comm.size


@pytest.mark.parametrize("seed", range(4))
def test_random_failures_one_after_the_other(seed: int) -> None:
    result = run(steps, nprocs=8, fault="random:rate=0.2", seed=seed)
    assert result.error is None
    sizes = {size for size in result.returns if size is not None}
    assert sizes == {8 - len(result.lost)} or len(result.lost) == 8
    again = run(steps, nprocs=8, fault="random:rate=0.2", seed=seed)
    assert (again.returns, again.lost, again.seconds) == (
        result.returns, result.lost, result.seconds,
    )  # fmt: skip


def test_ranks_of_a_failed_host_fail_together() -> None:
    host = run(steps, nprocs=4, platform="cluster", map_by="ppr:2:node").ranks[3]["host"]
    result = run(
        steps, nprocs=4, platform="cluster", map_by="ppr:2:node", fault=f"host={host}@0.5s"
    )
    assert result.returns[:2] == [2, 2] and len(result.lost) == 2


def partitioned(turns: list[int], woken: list[int]) -> None:
    """Ranks receive from rank 0, which fails, and note the order in which they go on."""
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        time.sleep(9)
    time.sleep(0.01 * turns.index(comm.rank))
    request = comm.Precv_init(bytearray(8), 2, 0, 9)
    request.Start()
    try:
        request.Wait()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED
        woken.append(comm.rank)


def test_operations_that_a_failure_ends_go_on_in_the_order_of_their_calls() -> None:
    turns = [(5 * i) % 17 for i in range(1, 17)]
    woken: list[int] = []
    run(partitioned, turns, woken, nprocs=17, fault="rank=0@1s")
    assert woken == turns
