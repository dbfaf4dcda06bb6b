"""One-sided accesses beside other MPI calls that use the same memory, each with a right twin.

The memory is the local buffer of the access in rank 0, or the window of rank 1. The two conflict if
one of them writes. In the twin, the epoch ends before the other call.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pysmpi

HEAD = """
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.rank
memory, local, spare = np.zeros(8), np.zeros(8), np.zeros(8)
win = MPI.Win.Create(memory, 8, comm=comm)
user = {user}
part = {part} if rank == user else np.zeros(8)
file = MPI.File.Open(MPI.COMM_SELF, "data" + str(rank), MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(64 * rank, spare)
"""

# The access of rank 0, and whether it writes to the local buffer and to the window.
ACCESSES = {
    "Put": ("win.Put(local, 1)", False, True),
    "Get": ("win.Get(local, 1)", True, False),
    "Accumulate": ("win.Accumulate(local, 1)", False, True),
    "Get_accumulate": ("win.Get_accumulate(spare, local, 1)", True, True),
}

EPOCHS = {
    "fence": ("win.Fence()", "win.Fence()", "win.Fence()"),
    "lock": ("if rank == 0: win.Lock(1)", "if rank == 0: win.Unlock(1)", "comm.Barrier()"),
    "flush": ("win.Lock_all()", "if rank == 0: win.Flush_all()", "comm.Barrier()"),
}

# A call of both ranks, and whether it writes to the memory.
CALLS = {
    "Send": ("comm.Send(part, 1 - rank) if rank == user else comm.Recv(part)", False),
    "Ssend": ("comm.Ssend(part, 1 - rank) if rank == user else comm.Recv(part)", False),
    "Recv": ("comm.Recv(part) if rank == user else comm.Send(part, 1 - rank)", True),
    "Isend": ("(comm.Isend(part, user ^ 1) if rank == user else comm.Irecv(part)).Wait()", False),
    "Irecv": ("(comm.Irecv(part) if rank == user else comm.Isend(part, user)).Wait()", True),
    "Sendrecv": ("comm.Sendrecv(part, 1 - rank, recvbuf=np.zeros(8))", False),
    "Sendrecv of its receive buffer": ("comm.Sendrecv(np.zeros(8), 1 - rank, recvbuf=part)", True),
    "Sendrecv_replace": ("comm.Sendrecv_replace(part, 1 - rank)", True),
    "Bcast at the root": ("comm.Bcast(part, root=user)", False),
    "Bcast": ("comm.Bcast(part, root=1 - user)", True),
    "Ibcast": ("comm.Ibcast(part, root=1 - user).Wait()", True),
    "Allreduce": ("comm.Allreduce(part, np.zeros(8))", False),
    "Allreduce of its result": ("comm.Allreduce(np.zeros(8), part)", True),
    "Allreduce in place": ("comm.Allreduce(MPI.IN_PLACE, part)", True),
    "Iallreduce": ("comm.Iallreduce(np.zeros(8), part).Wait()", True),
    "Reduce": ("comm.Reduce(part, np.zeros(8), root=0)", False),
    "Gatherv": ("comm.Gatherv(np.zeros(4), [part, (4, 4)], root=user)", True),
    "Scatter": ("comm.Scatter(part, np.zeros(4), root=user)", False),
    "Alltoall": ("comm.Alltoall(np.zeros(8), part)", True),
    "Allgather": ("comm.Allgather(part, np.zeros(16))", False),
    "Scan": ("comm.Scan(np.zeros(8), part)", True),
    "Start": (
        "request = comm.Send_init(part, user ^ 1) if rank == user else comm.Recv_init(part); "
        "request.Start(); request.Wait(); request.Free()",
        False,
    ),
    "Write_at": ("file.Write_at(64 * rank, part)", False),
    "Read_at": ("file.Read_at(64 * rank, part)", True),
    "Write_at_all": ("file.Write_at_all(64 * rank, part)", False),
    "Read_all": ("file.Read_all(part)", True),
}


def program(access: str, call: str, epoch: str, part: str, right: bool) -> str:
    """The text of a program; the right one ends the epoch before the call."""
    opens, ends, meets = EPOCHS[epoch]
    access = ACCESSES[access][0]
    call = CALLS[call][0]
    first = [opens, f"if rank == 0: {access}"]
    between = [ends, meets] if right else []
    last = [] if right else [ends, meets]
    if epoch == "flush":
        last.append("win.Unlock_all()")
    if epoch == "fence" and right:
        between = ["win.Fence(MPI.MODE_NOSUCCEED)"]
    head = HEAD.format(user=0 if part == "local" else 1, part=part)
    return "\n".join([head, *first, *between, call, *last, "file.Close()", "win.Free()"])


def codes(text: str, folder: Path) -> set[str]:
    """The codes of the findings in a program."""
    path = folder / "program.py"
    path.write_text(text)
    try:
        result = pysmpi.run(path, 2, compute="none", check="all")
    except pysmpi.ProgramError as error:
        result = error.result
    report = result.error or ""
    assert "Traceback" not in report
    return set(re.findall(r"^(PSM\d+) ", report, flags=re.M))


def combinations() -> list[tuple[str, str, str, str]]:
    """Each call with some accesses, each access with all epochs."""
    chosen = []
    accesses, epochs = list(ACCESSES), list(EPOCHS)
    for i, call in enumerate(CALLS):
        for part in ("local", "memory"):
            j = i + (part == "memory")
            chosen.append((accesses[j % 2], call, epochs[i % 3], part))
            if i % 3 == 0:
                chosen.append((accesses[2 + j % 2], call, epochs[(i + 1) % 3], part))
    return chosen


@pytest.mark.parametrize(("access", "call", "epoch", "part"), combinations())
def test_a_conflict_is_reported_and_its_twin_is_not(
    access: str, call: str, epoch: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    writes = ACCESSES[access][1 if part == "local" else 2] or CALLS[call][1]
    expected = {"PSM124"} if writes else set()
    assert codes(program(access, call, epoch, part, right=False), tmp_path) == expected
    assert codes(program(access, call, epoch, part, right=True), tmp_path) == set()
