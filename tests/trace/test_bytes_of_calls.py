"""The bytes of each call agree with the program's own count, in random programs of all kinds."""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import pysmpi
from pysmpi.trace.lines import read_lines


def calls_of_table(path):
    """The calls of a table: (rank, name, sent, received), in the order of their ends."""
    with open(path) as stream:
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
    found = calls_of_table(tmp_path / "t.csv")
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
    found = calls_of_table(tmp_path / "t.csv")
    for rank in (0, 1):
        assert of(found, rank, "Iallreduce") == [(0, 0)]
        assert of(found, rank, "Send") == [(10, 0)] and of(found, rank, "Recv") == [(0, 10)]
        ((sent, received),) = of(found, rank, "Wait")
        assert sent >= 8000 and received >= 8000


# Algorithms whose messages a program can count.
FLAT = {
    "bcast": "flattree", "reduce": "default", "allreduce": "flat", "gather": "default",
    "gatherv": "default", "scatter": "default", "scatterv": "default", "allgather": "default",
    "allgatherv": "default", "alltoall": "basic_linear", "alltoallv": "default",
    "reduce_scatter": "flat", "scan": "default", "exscan": "default",
}  # fmt: skip
COLLECTIVES = (*FLAT, "neighbor_allgather", "neighbor_alltoall")
OTHERS = (
    "send", "issend", "mprobe", "sendrecv", "isendrecv", "object", "any", "persistent",
    "partitioned", "put", "get", "rput", "accumulate", "fetch", "write", "read",
)  # fmt: skip
FORMS = ("blocking", "background", "persistent")
BLOCK = 5_000


def run_collective(comm, name, nbytes, form, count):
    """Make one collective call in one of its forms, and count the bytes of its algorithm."""
    from mpi4py import MPI

    me, size = comm.rank, comm.size
    root = nbytes % size
    others = size - 1
    one = np.zeros(nbytes, np.uint8)
    many, back = np.zeros(nbytes * size, np.uint8), np.zeros(nbytes * size, np.uint8)
    uneven = [nbytes + 3 * rank for rank in range(size)]  # of the block of each rank
    mine, parts = np.zeros(uneven[me], np.uint8), np.zeros(sum(uneven), np.uint8)
    blocks = [parts, uneven, None, MPI.BYTE]
    is_root = me == root
    arguments, sent, received = {
        "bcast": lambda: ((one, root), others * nbytes * is_root, nbytes * (not is_root)),
        "reduce": lambda: (
            (one, one.copy(), MPI.MAX, root), nbytes * (not is_root), others * nbytes * is_root
        ),
        "allreduce": lambda: ((one, one.copy(), MPI.MAX), others * nbytes, others * nbytes),
        "gather": lambda: (
            (one, back, root), nbytes * (not is_root), others * nbytes * is_root
        ),
        "gatherv": lambda: (
            (mine, blocks, root), uneven[me] * (not is_root), (sum(uneven) - uneven[me]) * is_root
        ),
        "scatter": lambda: ((many, one, root), others * nbytes * is_root, nbytes * (not is_root)),
        "scatterv": lambda: (
            (blocks, mine, root), (sum(uneven) - uneven[me]) * is_root, uneven[me] * (not is_root)
        ),
        "allgather": lambda: ((one, back), others * nbytes, others * nbytes),
        "allgatherv": lambda: ((mine, blocks), others * uneven[me], sum(uneven) - uneven[me]),
        "alltoall": lambda: ((many, back), others * nbytes, others * nbytes),
        "alltoallv": lambda: (
            ([parts, uneven, None, MPI.BYTE],
             [np.zeros(uneven[me] * size, np.uint8), [uneven[me]] * size, None, MPI.BYTE]),
            sum(uneven) - uneven[me], others * uneven[me],
        ),
        "reduce_scatter": lambda: (
            (parts, mine, uneven, MPI.MAX), sum(uneven) - uneven[me], others * uneven[me]
        ),
        "scan": lambda: ((one, one.copy(), MPI.MAX), (others - me) * nbytes, me * nbytes),
        "exscan": lambda: ((one, one.copy(), MPI.MAX), (others - me) * nbytes, me * nbytes),
        "neighbor_allgather": lambda: (
            (one, np.zeros(2 * nbytes, np.uint8)), 2 * nbytes, 2 * nbytes
        ),
        "neighbor_alltoall": lambda: (
            (np.zeros(2 * nbytes, np.uint8), np.zeros(2 * nbytes, np.uint8)), 2 * nbytes, 2 * nbytes
        ),
    }[name]()  # fmt: skip
    method = name.capitalize()
    if form == "blocking":
        getattr(comm, method)(*arguments)
        count[method, "sent"] += sent
        count[method, "received"] += received
        return
    if form == "background":
        getattr(comm, f"I{name}")(*arguments).Wait()
    else:
        request = getattr(comm, f"{method}_init")(*arguments)
        request.Start()
        request.Wait()
        request.Free()
    count["Wait", "sent"] += sent
    count["Wait", "received"] += received


def run_other(comm, window, file, operation, nbytes, count, accesses):
    """Communicate in another way, and count."""
    from mpi4py import MPI

    me, size = comm.rank, comm.size
    after, before = (me + 1) % size, (me - 1) % size
    out, back = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    if operation == "send":
        request = comm.Irecv(back, before, 1)
        comm.Send(out, after, 1)
        request.Wait()
        count["Send", "sent"] += nbytes
        count["Wait", "received"] += nbytes
    elif operation == "issend":
        requests = [comm.Issend(out, after, 1), comm.Irecv(back, before, 1)]
        MPI.Request.Waitsome(requests)
        MPI.Request.Waitall(requests)
        count["Issend", "sent"] += nbytes
        count["requests", "received"] += nbytes
    elif operation == "mprobe":
        request = comm.Isend(out, after, 2)
        message = comm.Mprobe(before, 2)
        message.Recv(back)
        request.Wait()
        count["Isend", "sent"] += nbytes
        count["Recv", "received"] += nbytes
    elif operation == "sendrecv":
        comm.Sendrecv_replace(out, after, 0, before, 0)
        count["Sendrecv_replace", "sent"] += nbytes
        count["Sendrecv_replace", "received"] += nbytes
    elif operation == "isendrecv":
        comm.Isendrecv(out, after, 0, back, before, 0).Wait()
        count["Isendrecv", "sent"] += nbytes
        count["Wait", "received"] += nbytes
    elif operation == "object":
        request = comm.irecv(1 << 20, before, 3)
        comm.send(bytes(nbytes), after, 3)
        size_of = len(MPI.pickle.dumps(bytes(nbytes)))
        assert len(request.wait()) == nbytes
        count["send", "sent"] += size_of
        count["wait", "received"] += size_of
    elif operation == "any":
        # A larger buffer than the message, and a source that is not known.
        request = comm.Irecv(np.zeros(nbytes + 100, np.uint8), MPI.ANY_SOURCE, 4)
        comm.Send(out, after, 4)
        MPI.Request.Waitany([request])
        count["Send", "sent"] += nbytes
        count["Waitany", "received"] += nbytes
    elif operation == "persistent":
        send, receive = comm.Send_init(out, after), comm.Recv_init(back, before)
        for _ in range(2):
            MPI.Prequest.Startall([receive, send])
            MPI.Request.Waitall([send, receive])
        count["requests", "sent"] += 2 * nbytes
        count["requests", "received"] += 2 * nbytes
        send.Free(), receive.Free()
    elif operation == "partitioned":
        many = np.zeros(4 * nbytes, np.uint8)
        send = comm.Psend_init(many, 4, after, 5)
        receive = comm.Precv_init(many.copy(), 4, before, 5)
        MPI.Prequest.Startall([send, receive])
        for part in (2, 0, 3, 1):
            send.Pready(part)
        MPI.Request.Waitall([send, receive])
        count["requests", "sent"] += 4 * nbytes
        count["requests", "received"] += 4 * nbytes
        send.Free(), receive.Free()
    elif operation in ("put", "get", "rput", "accumulate", "fetch"):
        if size == 1:
            return  # a rank's own memory needs no message
        if operation == "put":
            window.Fence()
            window.Put(out, after)
            window.Fence()
            count["Put", "sent"] += nbytes
        elif operation == "get":
            window.Lock(after, MPI.LOCK_SHARED)
            window.Get(back, after)
            window.Unlock(after)
            count["Get", "received"] += nbytes
        elif operation == "rput":
            window.Lock_all()
            window.Rput(out, after).Wait()
            window.Unlock_all()
            count["Rput", "sent"] += nbytes
        elif operation == "accumulate":
            window.Fence()
            window.Accumulate(out, after, op=MPI.SUM)
            window.Fence()
            count["Accumulate", "sent"] += nbytes
        else:
            window.Lock_all()
            window.Fetch_and_op(np.zeros(1), np.zeros(1), after)
            window.Unlock_all()
            count["Fetch_and_op", "sent"] += 8
            # The returned value is in no call, but among the messages.
        comm.Barrier()
    elif operation == "write":
        file.Write_at(me * BLOCK, out)
        accesses.append(["write", me * BLOCK, nbytes])
    elif operation == "read":
        file.Read_at(after * BLOCK, back[: (nbytes + 1) // 2])
        accesses.append(["read", after * BLOCK, (nbytes + 1) // 2])


steps_of_programs = st.lists(
    st.tuples(
        st.sampled_from(COLLECTIVES + OTHERS), st.integers(1, BLOCK), st.booleans(),
        st.sampled_from(FORMS),
    ),
    min_size=1, max_size=10,
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(steps_of_programs, st.integers(1, 6))
def test_random_programs_of_all_kinds_count_the_same(tmp_path_factory, steps, ranks):
    folder = tmp_path_factory.mktemp("trace")
    path, data = folder / "t.jsonl", folder / "data"
    data.write_bytes(bytes(8 * BLOCK))

    def main():
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        half = world.Split(world.rank % 2, -world.rank)
        both = (half, world)
        rings = [comm.Create_cart([comm.size], [True], reorder=False) for comm in both]
        windows = [MPI.Win.Allocate(8 * BLOCK, 1, comm=comm) for comm in both]
        file = MPI.File.Open(world, str(data), MPI.MODE_RDWR)
        count, accesses = Counter(), []
        for name, nbytes, everybody, form in steps:
            if name.startswith("neighbor"):
                run_collective(rings[everybody], name, nbytes, form, count)
            elif name in FLAT:
                run_collective(both[everybody], name, nbytes, form, count)
            else:
                comm, window = both[everybody], windows[everybody]
                run_other(comm, window, file, name, nbytes, count, accesses)
        file.Close()
        for window in windows:
            window.Free()
        return {key: number for key, number in count.items() if number}, accesses

    result = pysmpi.run(
        main, nprocs=ranks, compute="none", trace=path, platform="graphene", coll=FLAT
    )
    recording = read_lines(path)
    # Parts leave when they are ready, or later, when the other side knows of them.
    names = dict.fromkeys(("Waitsome", "Waitall", "Pready", "Startall"), "requests")
    counted = [Counter() for _ in range(ranks)]
    accessed = [[] for _ in range(ranks)]
    for call in recording.calls:
        name = names.get(call.name, call.name)
        counted[call.rank][name, "sent"] += call.sent
        counted[call.rank][name, "received"] += call.received
        accessed[call.rank] += [one[1:] for one in call.details.get("files", [])]
    for rank, (mine, accesses) in enumerate(result.returns):
        wanted = {name for name, _ in mine}
        there = {key: n for key, n in counted[rank].items() if n and key[0] in wanted}
        assert there == mine
        assert accessed[rank] == accesses
    assert sum(message.nbytes for message in recording.messages) == result.bytes
