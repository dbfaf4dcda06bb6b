"""The bytes of each call in a timeline agree with the program's own count."""

import csv
import gzip
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import pysmpi


def calls(path):
    """The calls of a table: (rank, name, sent, received), in the order of their ends."""
    opened = gzip.open(path, "rt") if str(path).endswith(".gz") else open(path)
    with opened as stream:
        return [
            (int(row["Process"]), row["Name"], int(row["Sent"]), int(row["Received"]))
            for row in csv.DictReader(stream)
            if row["Event Type"] == "Leave" and row["Name"] != "program"
        ]


def of(found, rank, name):
    """The bytes that one rank's calls of a name sent and received."""
    return [(sent, received) for who, what, sent, received in found if (who, what) == (rank, name)]


def test_a_send_belongs_to_the_call_that_starts_it(tmp_path):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        data = np.zeros(1 << 20, np.uint8)
        if comm.rank == 0:
            request = comm.Isend(data, 1)
        else:
            request = comm.Irecv(data, 0)
        comm.Barrier()
        request.Wait()

    pysmpi.run(main, nprocs=2, compute="none", trace=tmp_path / "t.csv")
    found = calls(tmp_path / "t.csv")
    assert of(found, 0, "Isend") == [(1 << 20, 0)]
    assert of(found, 0, "Wait") == [(0, 0)]
    assert of(found, 1, "Irecv") == [(0, 0)]
    assert of(found, 1, "Wait") == [(0, 1 << 20)]
    assert all(sent == received == 0 or sent < 100 for sent, received in of(found, 0, "Barrier"))


def test_a_collective_in_the_background_belongs_to_the_call_that_completes_it(tmp_path):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        out, back = np.zeros(1000), np.zeros(1000)
        request = comm.Iallreduce(out, back)
        comm.Send(np.zeros(10, np.uint8), (comm.rank + 1) % 2, 9)
        comm.Recv(np.zeros(10, np.uint8), (comm.rank + 1) % 2, 9)
        request.Wait()

    pysmpi.run(main, nprocs=2, compute="none", trace=tmp_path / "t.csv")
    found = calls(tmp_path / "t.csv")
    for rank in (0, 1):
        assert of(found, rank, "Iallreduce") == [(0, 0)]
        assert of(found, rank, "Send") == [(10, 0)] and of(found, rank, "Recv") == [(0, 10)]
        ((sent, received),) = of(found, rank, "Wait")
        assert sent >= 8000 and received >= 8000


OPERATIONS = ("send", "isend", "sendrecv", "isendrecv", "object", "persistent", "bcast", "put")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 70_000)), min_size=1,
             max_size=8),
    st.integers(2, 4),
)  # fmt: skip
def test_random_programs_count_the_same(tmp_path_factory, steps, ranks):
    path = tmp_path_factory.mktemp("trace") / "t.csv"

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        me, size = comm.rank, comm.size
        after, before = (me + 1) % size, (me - 1) % size
        mine = Counter()
        window = MPI.Win.Allocate(70_000, 1, comm=comm)
        for operation, nbytes in steps:
            out, back = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
            if operation == "send":
                if me % 2 == 0:
                    comm.Send(out, after)
                    comm.Recv(back, before)
                else:
                    comm.Recv(back, before)
                    comm.Send(out, after)
                mine["Send", "sent"] += nbytes
                mine["Recv", "received"] += nbytes
            elif operation == "isend":
                requests = [comm.Irecv(back, before), comm.Isend(out, after)]
                MPI.Request.Waitall(requests)
                mine["Isend", "sent"] += nbytes
                mine["Waitall", "received"] += nbytes
            elif operation == "sendrecv":
                comm.Sendrecv(out, after, 0, back, before, 0)
                mine["Sendrecv", "sent"] += nbytes
                mine["Sendrecv", "received"] += nbytes
            elif operation == "isendrecv":
                comm.Isendrecv(out, after, 0, back, before, 0).Wait()
                mine["Isendrecv", "sent"] += nbytes
                mine["Wait", "received"] += nbytes
            elif operation == "object":
                request = comm.irecv(1 << 20, before, 3)
                comm.send(bytes(nbytes), after, 3)
                size_of = len(MPI.pickle.dumps(bytes(nbytes)))
                assert len(request.wait()) == nbytes
                mine["send", "sent"] += size_of
                mine["wait", "received"] += size_of
            elif operation == "persistent":
                send, receive = comm.Send_init(out, after), comm.Recv_init(back, before)
                MPI.Prequest.Startall([receive, send])
                MPI.Request.Waitall([send, receive])
                mine["Startall", "sent"] += nbytes
                mine["Waitall", "received"] += nbytes
                send.Free(), receive.Free()
            elif operation == "bcast" and size == 2:
                comm.Bcast(out, 0)
                mine["Bcast", "sent" if me == 0 else "received"] += nbytes
            elif operation == "put":
                window.Fence()
                window.Put(out, after)
                window.Fence()
        window.Free()
        return {f"{name} {what}": count for (name, what), count in mine.items() if count}

    result = pysmpi.run(main, nprocs=ranks, compute="none", trace=path)
    counted = [Counter() for _ in range(ranks)]
    names = {key.split()[0] for mine in result.returns for key in mine}
    for rank, name, sent, received in calls(path):
        counted[rank][f"{name} sent"] += sent
        counted[rank][f"{name} received"] += received
    for mine, recorded in zip(result.returns, counted):
        there = {
            key: count for key, count in recorded.items() if count and key.split()[0] in names
        }
        assert mine == {key: count for key, count in there.items()}
    found = calls(path)
    assert sum(call[2] for call in found) >= sum(sum(mine.values()) for mine in result.returns) / 2
