"""The buffers of all calls that return a request belong to MPI until it is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pysmpi

HEAD = """
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank
part, spare = np.zeros(16), np.zeros(16)
cart = comm.Create_cart([2], [True])
file = MPI.File.Open(MPI.COMM_SELF, f"data{rank}", MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(0, np.zeros(32))
MPI.Attach_buffer(bytearray(4096))
counts = (8, 8)
words = ([64, 64], [0, 64], [MPI.BYTE, MPI.BYTE])
"""
TAIL = """
file.Close()
cart.Free()
MPI.Detach_buffer()
"""

# Calls of both ranks, and whether MPI writes to `part` in rank 0.
SENDS = {
    name: (f"comm.{name}(part, other) if rank == 0 else comm.Irecv(spare)", False)
    for name in ("Isend", "Issend", "Ibsend", "Irsend")
}
OTHERS = {
    "Irecv": ("comm.Irecv(part) if rank == 0 else comm.Isend(spare, other)", True),
    "Imrecv": ("comm.Mprobe().Irecv(part) if rank == 0 else comm.Isend(spare, other)", True),
    "Isendrecv": ("comm.Isendrecv(part, other, recvbuf=spare)", False),
    "Isendrecv, received": ("comm.Isendrecv(spare, other, recvbuf=part)", True),
    "Isendrecv_replace": ("comm.Isendrecv_replace(part, other)", True),
    "Ibcast at the root": ("comm.Ibcast(part, 0)", False),
    "Ibcast": ("comm.Ibcast(part, 1)", True),
    "Ireduce": ("comm.Ireduce(part, spare, root=1)", False),
    "Ireduce at the root": ("comm.Ireduce(spare, part)", True),
    "Iallreduce": ("comm.Iallreduce(part, spare)", False),
    "Iallreduce in place": ("comm.Iallreduce(MPI.IN_PLACE, part)", True),
    "Iscan": ("comm.Iscan(spare, part)", True),
    "Iexscan": ("comm.Iexscan(part, spare)", False),
    "Igather": ("comm.Igather(part[:8], spare, 1)", False),
    "Igatherv": ("comm.Igatherv(spare[:8], [part, counts], 0)", True),
    "Iscatter": ("comm.Iscatter(part, spare[:8], 0)", False),
    "Iscatterv": ("comm.Iscatterv([spare, counts], part[:8], 1)", True),
    "Iallgather": ("comm.Iallgather(spare[:8], part)", True),
    "Iallgatherv": ("comm.Iallgatherv(part[:8], [spare, counts])", False),
    "Ialltoall": ("comm.Ialltoall(part, spare)", False),
    "Ialltoallv": ("comm.Ialltoallv([spare, counts], [part, counts])", True),
    "Ialltoallw": ("comm.Ialltoallw([part, *words], [spare, *words])", False),
    "Ireduce_scatter": ("comm.Ireduce_scatter(part, spare[:8], counts)", False),
    "Ireduce_scatter_block": ("comm.Ireduce_scatter_block(spare, part[:8])", True),
    "Ineighbor_allgather": ("cart.Ineighbor_allgather(part[:8], spare)", False),
    "Ineighbor_allgatherv": ("cart.Ineighbor_allgatherv(spare[:8], [part, counts])", True),
    "Ineighbor_alltoall": ("cart.Ineighbor_alltoall(spare, part)", True),
    "Ineighbor_alltoallv": ("cart.Ineighbor_alltoallv([part, counts], [spare, counts])", False),
    "Ineighbor_alltoallw": ("cart.Ineighbor_alltoallw([spare, *words], [part, *words])", True),
    "Iwrite_at": ("file.Iwrite_at(16 * rank, part)", False),
    "Iread_at": ("file.Iread_at(16 * rank, part)", True),
    "Iwrite": ("file.Iwrite(part)", False),
    "Iread": ("file.Iread(part)", True),
    "Iwrite_shared": ("file.Iwrite_shared(part)", False),
    "Iread_shared": ("file.Iread_shared(part)", True),
    "Iwrite_at_all": ("file.Iwrite_at_all(16 * rank, part)", False),
    "Iread_at_all": ("file.Iread_at_all(16 * rank, part)", True),
    "Iwrite_all": ("file.Iwrite_all(part)", False),
    "Iread_all": ("file.Iread_all(part)", True),
}  # fmt: skip
PERSISTENT = {
    "Send_init": ("comm.Send_init(part, other) if rank == 0 else comm.Recv_init(spare)", False),
    "Recv_init": ("comm.Recv_init(part) if rank == 0 else comm.Send_init(spare, other)", True),
    "Ssend_init": ("comm.Ssend_init(part, other) if rank == 0 else comm.Recv_init(spare)", False),
    "Bsend_init": ("comm.Bsend_init(part, other) if rank == 0 else comm.Recv_init(spare)", False),
    "Bcast_init": ("comm.Bcast_init(part, 1)", True),
    "Allreduce_init": ("comm.Allreduce_init(part, spare)", False),
    "Gather_init": ("comm.Gather_init(part[:8], spare, 1)", False),
    "Alltoallv_init": ("comm.Alltoallv_init([spare, counts], [part, counts])", True),
    "Neighbor_alltoall_init": ("cart.Neighbor_alltoall_init(spare, part)", True),
    "Psend_init": (
        "comm.Psend_init(part, 2, 1, 0) if rank == 0 else comm.Precv_init(spare, 2, 0, 0)", False,
    ),
    "Precv_init": (
        "comm.Precv_init(part, 2, 1, 0) if rank == 0 else comm.Psend_init(spare, 2, 0, 0)", True,
    ),
}  # fmt: skip
SPLIT = {
    "Write_all_begin": ("file.Write_all_begin(part)", False),
    "Read_all_begin": ("file.Read_all_begin(part)", True),
    "Write_at_all_begin": ("file.Write_at_all_begin(128 * rank, part)", False),
    "Read_at_all_begin": ("file.Read_at_all_begin(128 * rank, part)", True),
    "Write_ordered_begin": ("file.Write_ordered_begin(part)", False),
    "Read_ordered_begin": ("file.Read_ordered_begin(part)", True),
}
CALLS = SENDS | OTHERS | PERSISTENT | SPLIT
READ, WRITE = "if rank == 0: value = float(part[0])", "if rank == 0: part[0] = 7"


def codes(name: str, touch: str, early: bool, folder: Path) -> set[str]:
    """The codes of the findings in a program that touches the buffer early or at the right time."""
    lines = [HEAD, f"request = {CALLS[name][0]}"]
    if name in PERSISTENT:
        lines.append("request.Start()")
    if name[0] == "P":
        sender = 0 if name == "Psend_init" else 1
        lines.append(f"if rank == {sender}: request.Pready_range(0, 1)")
    end = f"file.{name.removesuffix('begin')}end(part)" if name in SPLIT else "request.Wait()"
    lines += [touch, end] if early else [end, touch]
    if name in PERSISTENT:
        lines.append("request.Free()")
    return codes_of([*lines, TAIL], folder)


def codes_of(lines: list[str], folder: Path) -> set[str]:
    """The codes of the findings in a program."""
    path = folder / "program.py"
    path.write_text("\n".join(lines))
    try:
        result = pysmpi.run(path, 2, compute="none", check="all")
    except pysmpi.ProgramError as error:
        result = error.result
    report = result.error or ""
    assert "Traceback" not in report, report
    return set(re.findall(r"^(PSM\d+) ", report, flags=re.M))


@pytest.mark.parametrize("name", CALLS)
def test_a_buffer_that_is_touched_early_is_reported(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert codes(name, WRITE, True, tmp_path) == {"PSM115"}
    assert codes(name, READ, True, tmp_path) == ({"PSM115"} if CALLS[name][1] else set())
    assert codes(name, WRITE, False, tmp_path) == set()


ARRIVED = """
while not request.Parrived(0):
    pass
value = float(part[0])
"""


def test_a_partition_belongs_to_the_program_before_it_is_ready_and_after_it_has_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ready = "if rank == 0: part[0] = 7"
    lines = [HEAD, f"request = {CALLS['Psend_init'][0]}", "request.Start()"]
    end = ["request.Wait()", "request.Free()", TAIL]
    right = [*lines, ready, "if rank == 0: request.Pready_range(0, 1)", *end]
    half = [*lines, "if rank == 0: request.Pready(1)", ready, "if rank == 0: request.Pready(0)"]
    wrong = [*lines, "if rank == 0: request.Pready(0)", ready, "if rank == 0: request.Pready(1)"]
    assert codes_of(right, tmp_path) == codes_of([*half, *end], tmp_path) == set()
    assert codes_of([*wrong, *end], tmp_path) == {"PSM115"}

    lines = [HEAD, f"request = {CALLS['Precv_init'][0]}", "request.Start()"]
    sends = "if rank == 1: request.Pready_list([0, 1])"
    loop = [f"if rank == 0:{ARRIVED}".replace("\n", "\n    ")]
    assert codes_of([*lines, sends, *loop, *end], tmp_path) == set()
    other = [loop[0].replace("part[0]", "part[8]")]
    assert codes_of([*lines, sends, *other, *end], tmp_path) == {"PSM115"}
