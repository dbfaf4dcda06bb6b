"""A rank catches an error of a call, and the others wait for it: the report names that call.

The end is the one of a real MPI: errors that are returned leave the others waiting, and an error
handler that is fatal ends the job with the class of the error.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pysmpi
from pysmpi.reports.result import Result

HEAD = """\
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
x, y = np.ones(2 * size), np.zeros(2 * size)
one = [1] * size
ring = comm.Create_cart([size], [True])
win = MPI.Win.Create(x, comm=comm)
group = comm.group.Incl([1 - rank])
def done(request):
    request.Wait()
def started(request):
    request.Start()
    request.Wait()
def caught(call):
    try:
        call()
    except Exception:
        pass
"""

#: The call of rank 0, which is refused, and that of rank 1, which waits.
BLOCKING = {
    "Allreduce": ("x, x", "x, y"),
    "Reduce": ("object(), x", "x, None, MPI.SUM, 0"),
    "Scan": ("object(), x", "x, y"),
    "Exscan": ("x, object()", "x, y"),
    "Reduce_scatter_block": ("x, x", "x, y[:size]"),
    "Reduce_scatter": ("x, x, [size, size]", "x, y[:size], [size, size]"),
    "Alltoall": ("x, x", "x, y"),
    "Alltoallv": ("x, object()", "[x, one], [y, one]"),
    "Alltoallw": ("x, y", "[x, (one, [0] * size), [MPI.DOUBLE] * size], "
                          "[y, (one, [0] * size), [MPI.DOUBLE] * size]"),
    "Allgather": ("x[:2], x", "x[:2], y"),
    "Allgatherv": ("x[:1], [x, one]", "x[:1], [y, one]"),
    "Gather": ("x[:2], y, 9", "x[:2], None"),
    "Scatter": ("x, y[:2], -5", "None, y[:2]"),
    "Scatterv": ("[x, [2]], y[:2]", "None, y[:2]"),
    "Bcast": ("object()", "x"),
}  # fmt: skip
OBJECTS = {
    "allreduce": ("1, 9", "1"), "bcast": ("lambda: 0", "None"), "scatter": ("[1]", "None"),
    "allgather": ("lambda: 0", "1"), "alltoall": ("[1]", "[1, 2]"),
}  # fmt: skip
NEIGHBOURS = {
    "Neighbor_allgather": ("object(), y", "x[:2], y"),
    "Neighbor_alltoall": ("x, None", "x, y"),
}
OTHERS = {
    "dup": ("comm.Dup(3)", "comm.Dup()"),
    "split": ("comm.Split('a')", "comm.Split(1)"),
    "window": ("win.Fence('x')", "win.Fence()"),
    "new window": ("MPI.Win.Allocate(-3, comm=comm)", "MPI.Win.Allocate(8, comm=comm)"),
    "send": ("comm.Send(x, 1, -7)", "comm.Recv(x, 0)"),
    "Isend": ("done(comm.Isend(object(), 1))", "comm.Recv(x, 0)"),
    "Issend": ("done(comm.Issend([x, 99], 1))", "done(comm.Irecv(x, 0))"),
    "Ssend": ("comm.Ssend([x, -1], 1)", "comm.Recv(x)"),
    "send of an object": ("comm.send(lambda: 0, 1)", "comm.recv(source=0)"),
    "persistent send": ("started(comm.Send_init(x, 1, -7))", "started(comm.Recv_init(x, 0))"),
    "Sendrecv": ("comm.Sendrecv(x, 1, 0, x, 1, -8)", "comm.Sendrecv(x, 0, 0, y, 0)"),
    "receive": ("comm.Recv(object(), 1)", "comm.Ssend(x, 0)"),
    "Irecv": ("done(comm.Irecv([x, -1], 1))", "comm.Ssend(x, 0)"),
    "probe": ("comm.Probe(1, -8)", "comm.Probe(0)"),
    "start of a window": ("win.Start('x')", "win.Post(group); win.Wait()"),
    "complete of a window": ("win.Complete()", "win.Post(group); win.Wait()"),
    "post of a window": ("win.Post(3)", "win.Start(group); win.Put(y, 0); win.Complete()"),
    "file": ("MPI.File.Open(comm, 3)", "MPI.File.Open(comm, 'made', MPI.MODE_CREATE)"),
}  # fmt: skip


def cases() -> dict[str, tuple[str, str]]:
    found = dict(OTHERS)
    for where, calls in (("comm", BLOCKING), ("comm", OBJECTS), ("ring", NEIGHBOURS)):
        for name, (wrong, right) in calls.items():
            found[name] = f"{where}.{name}({wrong})", f"{where}.{name}({right})"
            if name not in OBJECTS:
                low = "I" + name.lower()
                found[low] = f"done({where}.{low}({wrong}))", f"done({where}.{low}({right}))"
                init = f"{name}_init"
                found[init] = tuple(f"started({where}.{init}({given}))" for given in (wrong, right))
    return found


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> Result:
    (tmp_path / "prog.py").write_text(HEAD + code)
    monkeypatch.chdir(tmp_path)
    return pysmpi.run("prog.py", 2, compute="none", check=False)


LINE = HEAD.count("\n") + 2


@pytest.mark.parametrize("case", cases())
def test_the_report_names_the_error(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong, right = cases()[case]
    result = run(
        tmp_path, monkeypatch,
        f"if rank == 0:\n    caught(lambda: {wrong})\nelse:\n    {right}\ncomm.Barrier()\n",
    )  # fmt: skip
    assert result.exit_status == 3, result.error
    first = re.search("why: (.*)", result.error)[1]
    assert re.match(rf"rank 0 caught an error of its \w+ at prog.py:{LINE} and ", first)


def test_an_error_before_a_right_call_is_no_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "if rank == 0: comm.Recv(x, 1)\n"
        "caught(lambda: comm.Alltoall(x, object()))\ncomm.Alltoall(x, y)\n"
    )
    result = run(tmp_path, monkeypatch, code)
    assert result.exit_status == 3
    assert "and took no part in it" not in result.error
    assert "rank 0 has not entered Alltoall of WORLD: is in Recv" in result.error


#: Calls with errors, and those for which the other rank waits, by the object with the handler.
HANDLED = {
    "comm.Allreduce(x, x)": ("comm", "Allreduce", "comm.Allreduce(x, y)"),
    "comm.Send(x, 1, -7)": ("comm", "Send", "comm.Recv(x, 0)"),
    "done(comm.Ibcast(x, 9))": ("comm", "Ibcast", "done(comm.Ibcast(x, 0))"),
    "ring.Alltoall(x, object())": ("ring", "Alltoall", "ring.Alltoall(x, y)"),
    "win.Start(group); win.Put(y, 9); win.Complete()": (
        "win", "Put", "win.Post(group); win.Wait()"
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", HANDLED)
def test_handlers_of_the_program_are_called_and_the_error_is_named(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a handler of its own, the program may catch the error, as under MPICH."""
    owner, name, right = HANDLED[wrong]
    result = run(
        tmp_path, monkeypatch,
        "called = []\n"
        f"handler = type({owner}).Create_errhandler(lambda one, code: called.append(code))\n"
        f"{owner}.Set_errhandler(handler)\n"
        "if rank == 0:\n"
        f"    def refused(): {wrong}\n"
        "    caught(refused)\n"
        "    print('classes', [MPI.Get_error_class(code) for code in called])\n"
        f"else:\n    {right}\ncomm.Barrier()\n",
    )  # fmt: skip
    assert result.exit_status == 3, result.error
    assert f"rank 0 caught an error of its {name} at prog.py:{LINE + 3}" in result.error


#: Calls of rank 0 with errors, and the classes that MPICH ends with.
FATAL = {
    "comm.Allreduce(x, x)": (1, "Allreduce"),
    "comm.Bcast(x, 9)": (7, "Bcast"),
    "comm.Send(x, 77)": (6, "Send"),
    "done(comm.Irecv(x[:1], 1))": (14, "Wait"),
}


@pytest.mark.parametrize("handler", ["ERRORS_ARE_FATAL", "ERRORS_ABORT"])
@pytest.mark.parametrize("wrong", FATAL)
def test_fatal_handlers_end_the_job(
    wrong: str, handler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, call = FATAL[wrong]
    result = run(
        tmp_path, monkeypatch,
        f"comm.Set_errhandler(MPI.{handler})\n"
        f"if rank == 0: caught(lambda: {wrong})\n"
        "else: comm.Isend(x, 0); comm.Recv(x, 0, 5)\n",
    )  # fmt: skip
    assert result.exit_status == status, result.error
    assert f"rank 0 was ended by {handler} after an error in {call} at prog.py:" in result.error


@pytest.mark.parametrize(
    ("wrong", "status"), [("comm.Allreduce(x, x)", 3), ("comm.Send(object(), 1)", 1)]
)
def test_an_error_that_nobody_catches_ends_the_job(
    wrong: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(tmp_path, monkeypatch, f"if rank == 0: {wrong}\nelse: comm.Recv(x, 0)\n")
    assert result.exit_status == status
    assert "rank 0: Traceback" in result.error
    assert "rank 1 was still running" in result.error
    assert "During handling" not in result.error
