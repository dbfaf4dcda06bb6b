"""Listeners hear of calls, collectives, epochs and accesses to files."""

import numpy as np
import pytest
from simulated import simulate

from pysmpi.mpi import MPI


class Calls:
    """Writes down the calls of all ranks."""

    def __init__(self):
        self.heard = []

    def call_begun(self, call):
        self.heard.append(("begun", call.rank.index, call.name, call.kind.value))

    def call_ended(self, call):
        self.heard.append(("ended", call.rank.index, call.name, call.kind.value))


class Events:
    """Writes down the other events of the layer of MPI."""

    def __init__(self):
        self.heard = []

    def collective_entered(self, contribution, rank):
        self.heard.append(("entered", rank.index, contribution.call.op))

    def collective_left(self, contribution, rank):
        self.heard.append(("left", rank.index, contribution.call.op))

    def epoch_opened(self, window, rank, kind, peers):
        self.heard.append(("opened", rank.index, kind, peers))

    def epoch_closed(self, window, rank, kind, peers):
        self.heard.append(("closed", rank.index, kind, peers))

    def file_accessed(self, file, rank, kind, offset, nbytes):
        self.heard.append((kind, rank.index, offset, nbytes))


def listening(listener, main, size=2):
    """Run `main()` on ranks while `listener` listens."""

    def body():
        from pysmpi.mpi.base.ranks import current

        if current().index == 0:
            current().universe.listen(listener)
        MPI.COMM_WORLD.Barrier()
        main()

    simulate(size, lambda rank: body())
    return listener.heard


def test_calls_are_told_with_their_kind_and_the_outermost_only():
    def main():
        comm = MPI.COMM_WORLD
        comm.Get_rank()
        comm.allreduce(1)
        with pytest.raises(MPI.Exception):
            comm.Send(np.zeros(1), 77)

    heard = listening(Calls(), main)
    mine = [event for event in heard if event[1] == 0 and event[2] != "Barrier"]
    assert mine == [
        ("begun", 0, "allreduce", "collective"), ("ended", 0, "allreduce", "collective"),
        ("begun", 0, "Send", "point-to-point"), ("ended", 0, "Send", "point-to-point"),
    ]  # fmt: skip


def test_nobody_is_told_after_a_listener_has_left():
    calls = Calls()

    def main():
        from pysmpi.mpi.base.ranks import current

        comm = MPI.COMM_WORLD
        comm.Barrier()
        if comm.rank == 0:
            current().universe.ignore(calls)
            assert current().watchers is None
        comm.Barrier()
        comm.bcast(1)

    heard = listening(calls, main)
    assert not [event for event in heard if event[2] == "bcast"]


def test_collectives_are_left_when_their_result_is_taken():
    def main():
        comm = MPI.COMM_WORLD
        request = comm.Ibarrier()
        comm.Bcast(np.zeros(1))
        request.Wait()

    heard = [event for event in listening(Events(), main) if event[1] == 1]
    assert heard[-4:] == [
        ("entered", 1, "barrier"), ("entered", 1, "bcast"), ("left", 1, "bcast"),
        ("left", 1, "barrier"),
    ]  # fmt: skip


def test_epochs_are_told_with_their_kind_and_peers():
    def main():
        comm = MPI.COMM_WORLD
        window = MPI.Win.Allocate(8, 1, comm=comm)
        window.Fence()
        window.Fence(MPI.MODE_NOSUCCEED)
        if comm.rank == 0:
            window.Lock(1)
            window.Unlock(1)
        comm.Barrier()
        group = comm.group.Incl([1 - comm.rank])
        if comm.rank == 0:
            window.Start(group)
            window.Complete()
        else:
            window.Post(group)
            window.Wait()
        window.Lock_all()
        window.Unlock_all()
        window.Free()

    heard = [event for event in listening(Events(), main) if event[0] in ("opened", "closed")]
    assert [event for event in heard if event[1] == 0] == [
        ("opened", 0, "fence", (0, 1)), ("closed", 0, "fence", (0, 1)),
        ("opened", 0, "lock", (1,)), ("closed", 0, "lock", (1,)),
        ("opened", 0, "start", (1,)), ("closed", 0, "start", (1,)),
        ("opened", 0, "lock_all", (0, 1)), ("closed", 0, "lock_all", (0, 1)),
    ]  # fmt: skip
    assert ("opened", 1, "post", (0,)) in heard and ("closed", 1, "post", (0,)) in heard


def test_accesses_to_files_are_told(tmp_path):
    def main():
        comm = MPI.COMM_WORLD
        name = str(tmp_path / "f")
        file = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_RDWR)
        file.Write_at(comm.rank * 10, np.full(10, comm.rank, np.uint8))
        file.Sync()
        comm.Barrier()
        file.Read_at(0, np.zeros(15, np.uint8))
        file.Close()

    heard = listening(Events(), main)
    assert ("write", 1, 10, 10) in heard and ("read", 1, 0, 15) in heard


def test_the_site_of_a_call_is_the_programs_line_in_a_listener_of_any_module():
    lines = []

    class Sites:
        heard = []

        def call_begun(self, call):
            lines.append((call.name, call.site[1]))

    def main():
        MPI.COMM_WORLD.Barrier()

    listening(Sites(), main)
    assert ("Barrier", main.__code__.co_firstlineno + 1) in lines


class Started:
    """Writes down what each call has started."""

    def __init__(self):
        self.heard = []

    def call_ended(self, call):
        kinds = [type(request).__name__ for request in call.started]
        self.heard.append((call.rank.index, call.name, kinds))


def test_calls_know_what_they_have_started():
    listener = Started()

    def main(rank):
        if rank.index == 0:
            rank.universe.listen(listener)
        comm = MPI.COMM_WORLD
        other = 1 - comm.rank
        values = np.zeros(4)
        comm.Barrier()
        requests = [comm.Isend(np.ones(4), other), comm.Irecv(values, other)]
        MPI.Request.Waitall(requests)
        comm.Sendrecv(np.ones(4), other, recvbuf=values, source=other)
        if rank.index == 0:
            rank.universe.ignore(listener)

    simulate(2, main)
    mine = [(name, kinds) for index, name, kinds in listener.heard if index == 0]
    assert mine[1:] == [
        ("Isend", ["Send"]),
        ("Irecv", ["Receive"]),
        ("Waitall", []),
        ("Sendrecv", ["Send", "Receive"]),
    ]
    name, kinds = mine[0]
    assert name == "Barrier" and set(kinds) == {"Send", "Receive"}
