"""Reports of deadlocks, for one program a cause."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import pysmpi
from pysmpi.reports.deadlock import DeadlockError, DeadlockReport

HEAD = "import numpy as np\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD\nrank = comm.rank\n"

Stuck = Callable[..., DeadlockReport]


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stuck:
    """Run a program to its deadlock, on four ranks unless said otherwise."""
    monkeypatch.chdir(tmp_path)

    def run(program: str, nprocs: int = 4, **options: object) -> DeadlockReport:
        path = tmp_path / "prog.py"
        path.write_text(HEAD + textwrap.dedent(program))
        options.setdefault("compute", "none")
        result = pysmpi.run(str(path), nprocs, check=False, **options)
        assert result.exit_status == 3, result.error
        assert result.deadlock is not None
        assert result.error == str(result.deadlock)
        return result.deadlock

    return run


def plain(found: DeadlockReport) -> str:
    """The report without its date."""
    return re.sub(r" t=\S+ \S+ ", " t=... ", str(found))


def test_tags_differ(stuck: Stuck):
    found = stuck(
        """
        def exchange():
            comm.Barrier()
        def halo():
            comm.Recv(np.zeros(64), source=0, tag=7)
        if rank == 0:
            comm.Send(np.zeros(64), dest=1, tag=8)
        if rank == 1:
            halo()
        exchange()
        """
    )
    assert plain(found) == textwrap.dedent(
        """\
        PSM101 deadlock at t=... (simulated): 4 ranks wait, none can go on
          ranks 0,2-3  wait in Barrier()                          prog.py:7 in exchange
          rank 1       waits in Recv(source=0, tag=7, 512 bytes)  prog.py:9 in halo      <- odd one out
          why: rank 0's unmatched message to rank 1 is one with dest=1, tag=8, 512 bytes: tags differ (8 sent, 7 expected)
               rank 1 has not entered Barrier of WORLD: is in Recv
          cycle: 0 -> 1 (Barrier)   1 -> 0 (Recv)
          real MPI: hangs for ever.   help: pysmpi explain PSM101"""  # noqa: E501
    )


def test_a_send_that_waits_shows_its_line(stuck: Stuck):
    found = stuck(
        """
        if rank == 0:
            comm.Ssend(np.zeros(64), dest=1, tag=8)
        if rank == 1:
            comm.Recv(np.zeros(64), source=0, tag=7)
        """,
        2,
    )
    report = str(found)
    assert "rank 0's unmatched message to rank 1 is Ssend(dest=1, tag=8, 512 bytes) at " in report
    assert "cycle: 0 -> 1 (Ssend)   1 -> 0 (Recv)" in report


def test_sources_differ(stuck: Stuck):
    found = stuck(
        """
        if rank == 0:
            comm.send(1, dest=2, tag=4)
        if rank == 2:
            comm.recv(source=1, tag=4)
        """
    )
    report = str(found)
    assert "rank 0 has sent a message to rank 2 with this tag (4), but rank 2 receives" in report
    assert "rank 1 has finished: it will not send any more" in report
    assert "1 rank waits" in report
    assert found.finished == [0, 1, 3]


def test_sent_to_somebody_else(stuck: Stuck):
    found = stuck(
        """
        if rank == 0:
            comm.send(1, dest=3, tag=4)
        if rank == 2:
            comm.recv(source=0, tag=4)
        """
    )
    assert "rank 0's unmatched message with this tag goes to rank 3, not to rank 2" in str(found)


def test_communicators_differ(stuck: Stuck):
    found = stuck(
        """
        other = comm.Dup()
        other.Set_name("halo")
        if rank == 0:
            other.send(1, dest=1, tag=5)
        if rank == 1:
            comm.recv(source=0, tag=5)
        """
    )
    assert "is in halo, the receive in WORLD: communicators differ" in str(found)


def test_nobody_is_left_to_send(stuck: Stuck):
    found = stuck("if rank == 0:\n    comm.recv()\n")
    assert "every other rank has finished: no rank is left to send" in str(found)
    assert not found.cycle


def test_a_ring_of_receives(stuck: Stuck):
    found = stuck("comm.recv(source=(rank - 1) % comm.size)\ncomm.send(1, (rank + 1) % comm.size)")
    assert len(found.groups) == 1
    assert found.groups[0].what == "recv(source=rank-1, tag=ANY_TAG)"
    assert not found.groups[0].odd
    assert [rank for rank, _ in found.cycle] == [0, 3, 2, 1]


def test_head_to_head(stuck: Stuck):
    found = stuck(
        """
        data = np.zeros(1 << 20)
        comm.Send(data, 1 - rank)
        comm.Recv(data, 1 - rank)
        """,
        2,
    )
    report = str(found)
    assert "ranks 0 and 1 send to each other first and receive later" in report
    assert "hangs, unless it buffers messages of 8,388,608 bytes" in report
    assert found.cycle == [(0, "Send"), (1, "Send")]


def test_to_itself(stuck: Stuck):
    report = str(stuck("comm.Ssend(np.zeros(3), rank)", 2))
    assert "rank 0 sends to itself and has posted no receive that fits" in report
    assert "Ssend(dest=rank, tag=0, 24 bytes)" in report


def test_collectives_differ(stuck: Stuck):
    found = stuck("comm.Barrier() if rank % 2 else comm.allreduce(1)")
    assert len(found.why) == 1
    assert found.why[0].startswith(
        "ranks 0,2 are in allreduce at prog.py:5, ranks 1,3 are in Barrier at prog.py:5, "
        "as call number 1 of WORLD: "
        "every rank must make the same collective calls in the same order"
    )


def test_a_collective_that_let_its_root_go(stuck: Stuck):
    found = stuck("comm.bcast(3) if rank == 0 else comm.barrier()")
    assert "rank 0 called bcast at prog.py:5, ranks 1-3 are in barrier at prog.py:5" in str(found)


def test_a_rank_that_left_early(stuck: Stuck):
    found = stuck("for step in range(4 if rank == 2 else 5):\n    comm.Barrier()\n")
    assert found.why == [
        "rank 2 has finished without entering Barrier of WORLD, call number 5: it made 4"
    ]


def test_roots_differ(stuck: Stuck):
    found = stuck("comm.gather(np.zeros(100000), root=rank % 2)", 2)
    report = str(found)
    assert "gather(root=0/1)" in report or "roots differ in gather" in report


def test_non_blocking_collective(stuck: Stuck):
    found = stuck(
        """
        if rank == 3:
            comm.Recv(np.zeros(1), 0)
        else:
            comm.Ibarrier().Wait()
        """
    )
    report = str(found)
    assert "wait in Wait() for Ibarrier()" in report
    assert "rank 3 has not entered Ibarrier of WORLD: is in Recv" in report


def test_several_requests(stuck: Stuck):
    found = stuck(
        """
        requests = [comm.Irecv(np.zeros(4), (rank + d) % comm.size, tag=d) for d in (1, 2)]
        requests.append(comm.Isend(np.zeros(4), (rank - 1) % comm.size, tag=1))
        MPI.Request.Waitall(requests)
        """
    )
    assert found.groups[0].what == "Waitall() for Irecv(source=rank+2, tag=2, 32 bytes)"


def test_communicators_of_a_split(stuck: Stuck):
    found = stuck(
        """
        row = comm.Split(rank // 2)
        if rank != 3:
            row.Barrier()
        """
    )
    where = r"comm of ranks 2-3 \(Split at prog\.py:6\)"
    assert re.search(rf"rank 2 +waits in Barrier\(\) on {where}", str(found))


def test_intercommunicator(stuck: Stuck):
    found = stuck(
        """
        half = comm.Split(rank // 2)
        inter = half.Create_intercomm(0, comm, 2 - 2 * (rank // 2))
        if rank == 1:
            inter.recv(source=1)
        """
    )
    assert "rank 3 has finished: it will not send any more" in str(found)


def test_probe(stuck: Stuck):
    assert "Probe(source=0, tag=3)" in str(stuck("if rank:\n    comm.Probe(0, 3)\n", 2))


def test_threads(stuck: Stuck):
    found = stuck(
        """
        import threading
        def work():
            comm.recv(source=1 - rank, tag=1)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """,
        2,
    )
    report = str(found)
    assert "2 ranks wait, none can go on" in report
    assert re.search(r"ranks 0-1  wait in join\(\) +prog.py:11", report)
    assert "recv(source=rank+1, tag=1) in thread Thread-1 (" in report
    assert [rank for rank, _ in found.cycle] == [0, 1]


def test_locks(stuck: Stuck):
    report = str(stuck("import queue\nqueue.Queue().get()\n", 1))
    assert "rank 0  waits in get()  prog.py:6" in report
    assert "rank 0 waits in get for another of its own threads" in report


def test_the_odd_one_out_is_a_minority(stuck: Stuck):
    found = stuck("comm.recv(source=0, tag=1) if rank == 2 else comm.Barrier()", 5)
    assert [(group.pids, group.odd) for group in found.groups] == [
        ([0, 1, 3, 4], False),
        ([2], True),
    ]


def test_many_ranks_fit_a_screen(stuck: Stuck):
    found = stuck("comm.recv() if rank % 2 else comm.barrier()", 300)
    assert "ranks 0,2,4,6,8,10,... (150)" in str(found)
    assert len(str(found).splitlines()) < 10


def test_raised_in_the_ranks(tmp_path: Path):
    caught = []

    def main() -> str:
        from mpi4py import MPI

        try:
            MPI.COMM_WORLD.recv(source=0)
        except MPI.Exception as error:
            caught.append(error)
            return str(error.Get_error_class() == MPI.ERR_PENDING)
        return "nothing"

    result = pysmpi.run(main, nprocs=3, on_deadlock="raise", compute="none")
    assert result.returns == ["True"] * 3
    assert all(isinstance(error, DeadlockError) for error in caught)
    assert len({id(error) for error in caught}) == 3
    assert "3 ranks wait" in str(caught[0])


def test_raised_and_not_caught():
    def main() -> None:
        from mpi4py import MPI

        MPI.COMM_WORLD.recv(source=0)

    with pytest.raises(pysmpi.ProgramError, match="PSM101 deadlock") as failure:
        pysmpi.run(main, nprocs=3, on_deadlock="raise", compute="none")
    assert failure.value.exit_status == 3


def test_after_a_deadlock_was_caught_the_run_goes_on():
    def main() -> int:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        try:
            comm.recv(source=comm.rank, tag=9)
        except MPI.Exception:
            pass
        return comm.allreduce(comm.rank)

    result = pysmpi.run(main, nprocs=4, on_deadlock="raise", compute="none")
    assert result.returns == [6] * 4


def test_ranks_that_left_by_sys_exit_are_named_with_their_line():
    def program():
        import sys

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank in (1, 2):
            sys.exit(4)
        if comm.rank != 3:
            comm.Barrier()

    line = program.__code__.co_firstlineno + 7
    result = pysmpi.run(program, 5, check=False, compute="none")
    rows = [row.split() for row in result.error.splitlines()]
    assert ["ranks", "1-2", "ended", "by", "sys.exit(4)"] == rows[2][:5]
    assert rows[2][5].endswith(f"test_deadlock_reports.py:{line}")
    assert ["rank", "3", "has", "finished"] in rows


def test_partitioned_requests(stuck: Stuck):
    """Their reports have the ranks of the other group of an intercommunicator."""
    found = stuck(
        """
        side = rank // 2
        other = comm.Split(side).Create_intercomm(0, comm, 0 if side else 2)
        if rank == 3:
            request = other.Precv_init(bytearray(30), 3, 0, 7)
            request.Start()
            request.Wait()
        elif rank == 0:
            request = other.Psend_init(bytearray(30), 3, 1, 7)
            request.Start()
            request.Pready(1)
            request.Wait()
        """
    )
    text = plain(found)
    assert "Precv" in text and "(source=0, tag=7, 30 bytes)" in text
    assert "Psend" in text and "(dest=1, tag=7, 30 bytes)" in text
    assert "cycle: 0 -> 3 (Wait)   3 -> 0 (Wait)" in text
    assert "rank 0 has not called Pready for partitions 0,2 of its Psend_init at prog.py:13" in text
