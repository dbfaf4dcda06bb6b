"""Each kind of wait has its cause in the report: the call that is missing, with its line."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import pysmpi

HEAD = """\
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
x, y = np.ones(2), np.zeros(2)
"""

FIRST = HEAD.count("\n") + 1  # the line at which each program below begins

# The ranks, the program, and parts of its report; L1 is the line of the program's first line.
WAITS = {
    "in place on all ranks of Reduce": (
        3, "comm.Reduce(MPI.IN_PLACE, x, root=0)",
        ["sizes differ in Reduce, call number 1 of WORLD: 0 bytes in ranks 1-2, 16 bytes in rank 0"
         "; MPI.IN_PLACE is for the root"],
    ),
    "in place on all ranks of Gather": (
        3, "comm.Gather(MPI.IN_PLACE, np.zeros(2 * size), root=0)",
        ["sizes differ in Gather, call number 1 of WORLD", "MPI.IN_PLACE is for the root"],
    ),
    "roots that differ in reduce": (
        3, "comm.barrier(); comm.reduce(rank, root=rank)",
        ["roots differ in reduce: rank 0 called reduce(root=0), rank 1 is in reduce(root=1) at "
         "prog.py:L1, rank 2 is in reduce(root=2)", "as call number 2 of WORLD"],
    ),
    "roots that differ in reduce, and all go on": (
        3, "comm.reduce(rank, root=2 - rank)\ncomm.barrier()",
        ["roots differ in reduce: rank 0 called reduce(root=2)"],
    ),
    "in place on all ranks of one of several requests": (
        3, "MPI.Request.Waitall([comm.Ireduce(MPI.IN_PLACE, np.zeros(6)), comm.Ibarrier()])",
        ["MPI.IN_PLACE is for the root, the other ranks must give their buffers: "
         "ranks 1-2 give it as sendbuf of Ireduce at prog.py:L1"],
    ),
    "partition that is not ready": (
        2,
        """\
        if rank == 0:
            request = comm.Psend_init(bytearray(40), 4, 1, 7)
            request.Start()
            request.Pready_list([0, 1, 3])
        else:
            request = comm.Precv_init(bytearray(40), 4, 0, 7)
            request.Start()
        request.Wait()
        """,
        ["rank 0 has not called Pready for partition 2 of its Psend_init at prog.py:L2"],
    ),
    "partitioned send that is not started": (
        2,
        """\
        if rank == 0:
            request = comm.Psend_init(bytearray(40), 4, 1, 7)
        else:
            request = comm.Precv_init(bytearray(40), 4, 0, 7)
            request.Start()
        request.Wait()
        comm.Barrier()
        """,
        ["rank 0 has not called Start for Psend_init at prog.py:L2"],
    ),
    "partitioned send of another tag": (
        2,
        """\
        if rank == 0:
            request = comm.Psend_init(bytearray(40), 4, 1, 8)
            request.Start()
            request.Pready_range(0, 3)
        else:
            request = comm.Precv_init(bytearray(40), 4, 0, 7)
            request.Start()
        request.Wait()
        """,
        ["Psend_init at prog.py:L2 of rank 0 has tag 8, Precv_init at prog.py:L6 of rank 1 tag 7"],
    ),
    "persistent send that is not started": (
        2,
        """\
        request = comm.Send_init(x, 1, tag=3) if rank == 0 else comm.Recv_init(y, 0, tag=3)
        if rank == 1:
            request.Start()
        request.Wait()
        """,
        ["rank 0 has not called Start for Send_init at prog.py:L1"],
    ),
    "persistent send that is not started again": (
        2,
        """\
        request = comm.Send_init(x, 1, tag=3) if rank == 0 else comm.Recv_init(y, 0, tag=3)
        for i in range(3):
            if rank == 1 or i < 2:
                request.Start()
            request.Wait()
        """,
        ["rank 0 has not called Start again for Send_init at prog.py:L1"],
    ),
    "persistent receive that is not started": (
        2,
        """\
        large = np.ones(100_000)
        if rank == 1:
            request = comm.Recv_init(large, 0, tag=3)
            comm.Barrier()
        else:
            comm.Send(large, 1, tag=3)
        """,
        ["rank 1 has not called Start for Recv_init at prog.py:L3"],
    ),
    "persistent collective that is not started": (
        3,
        """\
        request = comm.Allreduce_init(x, y)
        if rank != 1:
            request.Start()
        request.Wait()
        comm.Barrier()
        """,
        ["wait in Wait() for Allreduce_init()",
         "rank 1 has not called Start for Allreduce_init at prog.py:L1"],
    ),
    "Disconnect that one side leaves out": (
        4,
        """\
        half = comm.Split(rank // 2)
        inter = half.Create_intercomm(0, comm, 2 - 2 * (rank // 2))
        if rank > 1:
            inter.Disconnect()
        """,
        ["ranks 0-1 have finished without entering Disconnect of intercomm of ranks 0-1 and 2-3 "
         "(Create_intercomm at prog.py:L2), call number 1: they made none"],
    ),
    "spawned process that disconnects": (
        1,
        """\
        import sys
        parent = MPI.Comm.Get_parent()
        if parent == MPI.COMM_NULL:
            MPI.COMM_SELF.Spawn(sys.executable, [__file__])
        else:
            parent.Disconnect()
        """,
        ["rank 0 has finished without entering Disconnect of intercomm of ranks 0 and 1 "
         "(Spawn at prog.py:L4)"],
    ),
    "Accept without Connect": (
        2, "rank or MPI.COMM_SELF.Accept(MPI.Open_port())",
        ["no process connects at the port of rank 0 (Connect with port_name 'pysmpi://"],
    ),
    "Connect without Accept": (
        2,
        """\
        port = MPI.Open_port()
        rank or MPI.COMM_SELF.Connect(port)
        """,
        ["no process accepts any more at the port of rank 0 (Accept with port_name"],
    ),
    "port names that differ": (
        2, "(MPI.COMM_SELF.Connect if rank else MPI.COMM_SELF.Accept)(MPI.Open_port())",
        ["port names differ"],
    ),
    "Start without Post": (
        3,
        """\
        window = MPI.Win.Allocate(8, comm=comm)
        if rank == 1:
            window.Start(comm.group.Incl([0]))
            window.Complete()
        """,
        ["for Post(rank=0)", "rank 0 has finished: it will not call Post any more"],
    ),
    "Wait without Complete": (
        3,
        """\
        window = MPI.Win.Allocate(8, comm=comm)
        if rank == 0:
            window.Post(comm.group.Incl([1, 2]))
            window.Wait()
        elif rank == 1:
            window.Start(comm.group.Incl([0]))
            window.Complete()
        """,
        ["for Complete(rank=2)", "rank 2 has finished: it will not call Complete any more"],
    ),
    "Fence": (
        3,
        """\
        window = MPI.Win.Allocate(8, comm=comm)
        if rank == 1:
            comm.Barrier()
        window.Fence()
        """,
        ["in Fence of window of ranks 0-2 (Allocate at prog.py:L1) at prog.py:L4"],
    ),
    "collective access to a file": (
        3,
        """\
        file = MPI.File.Open(comm, "data", MPI.MODE_CREATE | MPI.MODE_RDWR)
        if rank != 1:
            file.Write_at_all(16 * rank, x)
        file.Close()
        """,
        ["ranks 0,2 are in Write_at_all at prog.py:L3, rank 1 is in Close at prog.py:L4, "
         "as call number 1 of file of ranks 0-2 (Open at prog.py:L1)"],
    ),
    "non-blocking access to a file": (
        3,
        """\
        file = MPI.File.Open(comm, "data", MPI.MODE_CREATE | MPI.MODE_RDWR)
        if rank != 1:
            file.Iwrite_at_all(16 * rank, x).Wait()
        """,
        ["for Iwrite_at_all()", "rank 1 has finished without entering Iwrite_at_all of file"],
    ),
    "ordered access to a file": (
        3,
        """\
        file = MPI.File.Open(comm, "data", MPI.MODE_CREATE | MPI.MODE_RDWR)
        if rank != 1:
            file.Write_ordered(x)
        """,
        ["rank 1 has finished without entering Write_ordered of file of ranks 0-2"],
    ),
    "leader of an intercommunicator that is late": (
        4,
        """\
        half = comm.Split(rank // 2)
        if rank < 2:
            half.Create_intercomm(0, comm, 2, tag=5)
        """,
        ["waits in Create_intercomm(remote_leader=2, tag=5)",
         "rank 2 has finished: it will not call Create_intercomm any more"],
    ),
    "leaders with different tags": (
        4,
        """\
        half = comm.Split(rank // 2)
        half.Create_intercomm(0, comm, 2 - 2 * (rank // 2), tag=5 + rank // 2)
        """,
        ["rank 2 has called Create_intercomm with tag 6 at prog.py:L2, rank 0 with tag 5 at "
         "prog.py:L2: tags differ"],
    ),
    "duplicate in the background": (
        3,
        """\
        if rank < 2:
            other, request = comm.Idup()
            request.Wait()
        """,
        ["wait in Wait() for Idup()", "rank 2 has finished without entering Idup of WORLD"],
    ),
    "communicator of a group": (
        4,
        """\
        group = comm.group.Incl([0, 1, 2])
        if rank < 2:
            comm.Create_group(group, tag=3)
        """,
        ["rank 2 has finished without entering Create_group of WORLD"],
    ),
    "agreement after failures": (
        3, "rank and comm.Agree(1)", ["rank 0 has finished without entering Agree of WORLD"],
    ),
    "shrinking": (
        3, "rank and comm.Shrink()", ["rank 0 has finished without entering Shrink of WORLD"],
    ),
    "buffered message": (
        2,
        """\
        MPI.Attach_buffer(bytearray(10_000_000))
        if rank == 0:
            comm.Bsend(np.zeros(1_000_000), 1, 4)
        MPI.Detach_buffer()
        """,
        ["rank 1 has not received the buffered message of rank 0 with tag 4, 8,000,000 bytes: "
         "Detach_buffer waits until it has"],
    ),
    "both halves of Isendrecv": (
        2, "comm.Isendrecv(x, 1 - rank, 1, y, 1 - rank, 2).Wait()",
        ["tags differ (1 sent, 2 expected)"],
    ),
    "socket without another end": (
        2,
        """\
        import socket
        a, b = socket.socketpair()
        MPI.Comm.Join(a.fileno())
        """,
        ["no process calls Join with the other end of the socket of rank 0"],
    ),
    "sub-communicator": (
        4,
        """\
        row = comm.Split(rank // 2)
        if rank != 3:
            row.Barrier()
        """,
        ["without entering Barrier of comm of ranks 2-3 (Split at prog.py:L1), call number 1"],
    ),
}  # fmt: skip


def report(tmp_path: Path, nprocs: int, program: str) -> str:
    """The report of a program that deadlocks."""
    path = tmp_path / "prog.py"
    path.write_text(HEAD + textwrap.dedent(program))
    result = pysmpi.run(str(path), nprocs, check=False, compute="none")
    assert result.exit_status == 3, result.error
    assert result.deadlock is not None
    return str(result.error)


def placed(line: str) -> str:
    """The text with numbers of lines in place of L1, L2, ..."""
    return re.sub(r"\bL(\d+)", lambda found: str(FIRST + int(found[1]) - 1), line)


@pytest.mark.parametrize("kind", WAITS)
def test_the_cause_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nprocs, program, expected = WAITS[kind]
    found = report(tmp_path, nprocs, program)
    for line in expected:
        assert placed(line) in found
    # No number of MPI's own: of a communicator, of a collective call's messages.
    assert not re.search(r"tag=\d{4,}|\b(comm|intercomm|window|file) \d", found), found


def test_a_partition_that_is_tested_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = """\
        if rank == 0:
            request = comm.Psend_init(bytearray(40), 4, 1, 7)
            request.Start()
            request.Pready_range(0, 1)
            comm.Barrier()
        else:
            request = comm.Precv_init(bytearray(40), 4, 0, 7)
            request.Start()
            while not request.Parrived(3):
                pass
        """
    path = tmp_path / "prog.py"
    path.write_text(HEAD + textwrap.dedent(program))
    result = pysmpi.run(str(path), 2, check=False, compute="none", cfg={"smpi/most-polls": "1000"})
    line = "rank 0 has not called Pready for partitions 2-3 of its Psend_init at prog.py:L2"
    assert placed(line) in str(result.error)


# Calls in which ranks that are not the root give MPI.IN_PLACE, and the argument.
IN_PLACE = [
    *((f"comm.{name}(MPI.IN_PLACE, long)", "sendbuf") for name in ("Reduce", "Ireduce", "Gather")),
    ("comm.Reduce_init(MPI.IN_PLACE, long)", "sendbuf"),
    *(
        (f"comm.{name}(long, MPI.IN_PLACE)", "recvbuf")
        for name in (
            "Scatter", "Iscatter", "Scatter_init", "Scatterv", "Iscatterv", "Scatterv_init"
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "argument"), IN_PLACE)
@pytest.mark.parametrize("wait", ["request.Wait()", "MPI.Request.Waitall([request])"])
def test_in_place_is_for_the_root(
    call: str, argument: str, wait: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = call[5 : call.index("(")]
    program = f"comm.Barrier()\nlong = np.zeros(2 * size)\nrequest = {call}\n"
    if name.endswith("_init"):
        program += "request.Start()\n"
    if request_of(name):
        program += wait + "\n"
    path = tmp_path / "prog.py"
    path.write_text(HEAD + program)
    result = pysmpi.run(str(path), 3, check=False, compute="none")
    assert result.exit_status != 0
    expected = (
        "MPI.IN_PLACE is for the root, the other ranks must give their buffers: "
        f"ranks 1-2 give it as {argument} of {name} at prog.py:L3"
    )
    assert placed(expected) in str(result.error)


def request_of(name: str) -> bool:
    """Whether a call returns a request."""
    return name.startswith("I") or name.endswith("_init")
