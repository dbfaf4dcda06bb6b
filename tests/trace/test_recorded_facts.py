"""Each fact of a recording, in a program that is known line by line."""

from __future__ import annotations

import inspect
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import pysmpi
from pysmpi.trace import events
from pysmpi.trace.lines import read_lines
from pysmpi.trace.model import Recording

SMALL, LARGE = 1_000, 1_000_000


def program(path: str) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    me, size = comm.rank, comm.size
    after, before = (me + 1) % size, (me - 1) % size
    # Rank 3 is late, and ends the waits of rank 2.
    if me == 3:
        time.sleep(0.1)
    request = comm.Isend(np.zeros(SMALL, "u1"), before, 7)
    comm.Recv(np.zeros(SMALL, "u1"), after, 7)
    request.Wait()
    # A synchronous send, and one that is larger than an eager message.
    requests = [
        comm.Issend(np.zeros(SMALL, "u1"), after, 8), comm.Isend(np.zeros(LARGE, "u1"), after, 9),
        comm.Irecv(np.zeros(SMALL, "u1"), before, 8), comm.Irecv(np.zeros(LARGE, "u1"), before, 9),
    ]  # fmt: skip
    while MPI.Request.Waitany(requests) >= 0:
        pass
    # Ranks in the reverse order, and in it a root that is not the rank 0 of the run.
    half = comm.Split(me % 2, -me)
    half.Bcast(np.zeros(SMALL, "u1"), root=1)
    half.Iallreduce(np.zeros(100), np.zeros(100)).Wait()
    half.Allgather(MPI.IN_PLACE, np.zeros(20 * half.size))
    # A datatype with a stride.
    column = MPI.DOUBLE.Create_vector(10, 1, 5).Commit()
    comm.Sendrecv([np.zeros(50), 1, column], after, 0, [np.zeros(50), 1, column], before, 0)
    # One-sided communication.
    window = MPI.Win.Allocate(SMALL, 1, comm=comm)
    window.Post(comm.group.Incl([before]))
    window.Start(comm.group.Incl([after]))
    window.Put(np.zeros(300, "u1"), after)
    window.Complete()
    window.Wait()
    window.Free()
    # Files, threads, sleeps and a wildcard.
    file = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
    file.Write_at(40, np.zeros(8, "u1"))
    file.Close()
    thread = threading.Thread(target=lambda: half.Barrier())
    thread.start()
    thread.join()
    if me == 1:
        comm.Recv(np.zeros(2 * SMALL, "u1"), MPI.ANY_SOURCE, MPI.ANY_TAG)
    elif me == 2:
        comm.Send(np.zeros(SMALL, "u1"), 1, 33)
    time.sleep(0.25)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("facts")
    path = folder / "run.jsonl"
    pysmpi.run(
        program, 4, trace=path, platform="graphene", compute="5us", args=(str(folder / "data"),),
        coll={"bcast": "flattree"},
    )  # fmt: skip
    return read_lines(path)


def calls(found: Recording, rank: int, name: str):
    return [call for call in found.calls_of(rank) if call.name == name]


def operations(call, kind: str):
    return [one for one in call.operations if one[0] == kind]


def line_of(text: str) -> int:
    lines, first = inspect.getsourcelines(program)
    (number,) = [i for i, line in enumerate(lines, first) if text in line]
    return number


def rows(found: Recording, kind: int):
    """The events of a kind: process, date, a, b, x; in their order."""
    return [
        row[1:]
        for block in found.event_rows
        for row in zip(*(column.tolist() for column in block))
        if row[0] == kind
    ]


def test_lines_partners_and_communicators(found):
    for name, text, peers in (
        ("Isend", "request = comm.Isend", (("dest", 1),)),
        ("Recv", "comm.Recv(np.zeros(SMALL", (("source", 3),)),
        ("Bcast", "half.Bcast", (("root", 1),)),
        ("Sendrecv", "comm.Sendrecv", (("dest", 3), ("source", 1))),
    ):
        call = calls(found, 2, name)[0]
        assert Path(call.site).name == f"test_recorded_facts.py:{line_of(text)}"
        assert call.peers == peers
    members = {one.name: one.members for one in found.communicators.values()}
    assert members["COMM_WORLD"] == (0, 1, 2, 3)
    assert len(members["COMM_SELF"]) == 1
    groups = {calls(found, rank, "Bcast")[0].communicator for rank in (0, 2)}
    (number,) = groups
    of_half = {c.members for c in found.communicators.values() if c.communicator == number}
    assert of_half == {(2, 0)}
    world = calls(found, 2, "Isend")[0].communicator
    assert found.communicators[world].name == "COMM_WORLD"
    assert [place.host for place in found.places] == [f"graphene-{i}" for i in range(4)]
    assert {place.speed for place in found.places} == {3.542e9}


def test_compute_sleeps_and_the_time_after_the_last_call(found):
    for rank in range(4):
        for call in found.calls_of(rank):
            blocks = operations(call, "compute")
            if call.name and not call.thread:
                assert call.operations.index(blocks[0]) == 0 if blocks else True
            # A call of Python that is no call of MPI may have ended a block without an event.
            assert all(one[1] in (pytest.approx(5e-6), pytest.approx(1e-5)) for one in blocks)
        passed = [one[1] for call in found.calls_of(rank, 0) for one in call.operations
                  if one[0] == "pass" and not call.name]  # fmt: skip
        assert passed[-1] == pytest.approx(0.25)
        assert (rank == 3) == (passed[0] == pytest.approx(0.1))
        assert found.calls_of(rank, 0)[-1].end == found.ends[rank]


def test_collective_calls(found):
    bcasts = [calls(found, rank, "Bcast")[0] for rank in (0, 2)]
    assert {call.algorithm for call in bcasts} == {"flattree"}
    (first,), (second,) = (operations(call, "collective") for call in bcasts)
    assert first[1] == second[1] and first[5] == {"op": "bcast", "count": SMALL, "root": 1}
    assert found.communicators[first[2]].members == (2, 0) and first[4] is False
    (started,) = operations(calls(found, 2, "Iallreduce")[0], "collective")
    assert started[4] is True and started[5]["type_size"] == 8 and started[5]["count"] == 100
    assert found.communicators[started[2]].members == (2, 0)
    wait = calls(found, 2, "Wait")[1]
    assert operations(wait, "wait") == [("wait", [-started[1]], True)]
    assert wait.sent >= 800 and wait.received >= 800
    gathered = operations(calls(found, 2, "Allgather")[0], "collective")[0][5]
    assert gathered["in_place"] is True
    inside = {message.collective for message in found.messages if message.nbytes == SMALL}
    assert first[1] in inside and 0 in inside
    assert started[1] in {message.collective for message in found.messages}


def test_datatypes_epochs_and_files(found):
    from pysmpi.mpi import MPI

    call = calls(found, 1, "Sendrecv")[0]
    record = call.details["datatypes"]["sendbuf"]
    assert (record["size"], record["extent"]) == (80, 8 * (9 * 5 + 1))
    assert record["combiner"] == MPI.COMBINER_VECTOR
    numbers = [*record["integers"], *record["counts"]]
    assert sorted(numbers)[-3:] == [1, 5, 10] and call.sent == call.received == 80
    epochs = [
        (call.name, epoch) for call in found.calls_of(1) for epoch in call.details.get("epochs", [])
    ]
    assert epochs == [
        ("Post", ["open", "post", [0]]), ("Start", ["open", "start", [2]]),
        ("Complete", ["close", "start", [2]]), ("Wait", ["close", "post", [0]]),
    ]  # fmt: skip
    put = calls(found, 1, "Put")[0]
    (moved,) = operations(put, "transfer")
    assert moved[3:] == (1, 2, 300) and (put.sent, put.received) == (300, 0)
    ((path, kind, offset, nbytes),) = calls(found, 1, "Write_at")[0].details["files"]
    assert (Path(path).name, kind, offset, nbytes) == ("data", "write", 40, 8)


def test_sends_waits_and_wildcards(found):
    issend = operations(calls(found, 0, "Issend")[0], "send")[0]
    large = operations(calls(found, 0, "Isend")[1], "send")[0]
    assert issend[3:] == (0, 1, 8, SMALL, 1, True) and large[3:] == (0, 1, 9, LARGE, 0, True)
    waits = [one for call in calls(found, 0, "Waitany") for one in operations(call, "wait")]
    assert any(not one[2] and len(one[1]) > 1 for one in waits)
    (receive,) = operations(calls(found, 1, "Recv")[1], "receive")
    match = receive[7:] or found.matches[receive[1]]
    assert tuple(match)[-3:] == (2, 33, SMALL) and receive[6] == 2 * SMALL
    assert calls(found, 1, "Recv")[1].received == SMALL
    assert {call.thread for call in calls(found, 0, "Barrier")} == {1}


def test_events_of_messages_and_waits(found):
    mains = {int(a): process for process, _, a, b, _ in rows(found, events.PROCESS) if b == 0}
    assert sorted(mains) == [0, 1, 2, 3]
    number_of = {(m.source, m.tag): m.number for m in found.messages if m.tag in (7, 8, 9)}
    taken = {int(a): int(b) for _, _, a, b, _ in rows(found, events.MATCH)}
    resumed = [row for row in rows(found, events.RESUME) if row[0] == mains[2]]
    # Rank 2 waits for the message of rank 3, which is late.
    late = number_of[3, 7]
    ((_, _, cause, _, message),) = [row for row in resumed if row[4] == late]
    assert cause == taken[late]
    (wait,) = [one for one in found.waits if one.rank == 2 and one.message == late]
    assert wait.request == taken[late] and wait.end - wait.start == pytest.approx(0.1, rel=0.1)
    # A non-blocking collective ends a wait: a process in the background.
    background = {p for p, _, _, b, _ in rows(found, events.PROCESS) if b == events.BACKGROUND}
    assert {-1 - int(row[2]) for row in rows(found, events.RESUME) if row[2] < 0} & background
    kinds = [(int(a), int(b)) for p, _, a, b, _ in rows(found, events.START_WAIT) if p == mains[0]]
    assert (0, 4) in kinds and (1, 1) in kinds
    awaited = {int(a) for _, _, a, _, _ in rows(found, events.AWAITED)}
    assert taken[late] in awaited and any(one < 0 for one in awaited)
    modes = {
        int(number): int(mode)
        for block in found.message_rows
        for number, mode in zip(block.number.tolist(), block.mode.tolist())
    }
    assert modes[number_of[0, 7]] == events.EAGER | events.DETACHED
    assert modes[number_of[0, 8]] == 0 and modes[number_of[0, 9]] == 0
    assert [mode for mode in modes.values() if mode & events.ONE_SIDED]
    # Two hops of the switch at 1.25e8 bytes/s, and nothing else on the way.
    ((_, begun, _, latency, alone),) = [
        row for row in rows(found, events.DEPART) if row[2] == number_of[3, 7]
    ]
    ((_, arrived, *_),) = [row for row in rows(found, events.ARRIVE) if row[2] == late]
    assert arrived - begun == pytest.approx(latency + alone, rel=1e-6)
    links = {link for route in found.routes.values() for link in route.links}
    assert {capacity for _, capacity in links} and min(c for _, c in links) > 1e6


def test_a_failed_run_keeps_its_events_and_its_status(tmp_path):
    def main():
        from mpi4py import MPI

        MPI.COMM_WORLD.Barrier()
        if MPI.COMM_WORLD.rank == 1:
            raise SystemExit(7)

    pysmpi.run(main, 2, trace=tmp_path / "run.jsonl", compute="none", check=False)
    found = read_lines(tmp_path / "run.jsonl")
    assert sorted(int(x) for *_, x in rows(found, events.END)) == [0, 7]


def test_a_trace_replaces_an_older_one(tmp_path):
    def main(count):
        from mpi4py import MPI

        for _ in range(count):
            MPI.COMM_WORLD.Barrier()

    for count in (50, 2):
        pysmpi.run(main, 2, args=(count,), trace=tmp_path / "run.jsonl", compute="none")
        assert len(read_lines(tmp_path / "run.jsonl").calls) == 2 * count


def test_ranks_of_both_groups_enter_one_collective_call(tmp_path):
    def main() -> None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        side = comm.rank > 1
        both = comm.Split(side).Create_intercomm(0, comm, 0 if side else 2)
        for _ in range(3):
            both.Barrier()
        request = both.Barrier_init()
        request.Start()
        request.Wait()

    pysmpi.run(main, 5, trace=tmp_path / "run.jsonl", platform="graphene", compute="5us")
    entered = [int(a) for _, _, a, _, _ in rows(read_lines(tmp_path / "run.jsonl"), events.ENTER)]
    assert sorted(entered.count(one) for one in set(entered)) == [5, 5, 5, 5]


def test_calls_that_only_compute_begin_and_end_after_it(tmp_path):
    """The compute is billed later."""

    def main() -> None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        sum(range(200_000))
        request = comm.Psend_init(bytes(8), 1, (comm.rank + 1) % 2)
        request.Free()
        comm.Barrier()

    pysmpi.run(main, 2, trace=tmp_path / "run.jsonl", platform="graphene", compute="native")
    for rank in range(2):
        first = read_lines(tmp_path / "run.jsonl").calls_of(rank)[0]
        assert first.name == "Psend_init" and first.start >= 1e-3
        assert first.start <= first.end < first.start + 1e-3


def test_costs_of_the_start_of_sends(tmp_path):
    def main() -> None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.Send(bytes(100), 1) if comm.rank == 0 else comm.Recv(bytearray(100), 0)

    pysmpi.run(main, 2, trace=tmp_path / "run.jsonl", platform="graphene", compute="none",
               cfg={"smpi/os": "0:3e-3:1e-5"})  # fmt: skip
    ((_, _, _, nbytes, cost),) = rows(read_lines(tmp_path / "run.jsonl"), events.START_SEND)
    assert nbytes == 100 and cost == pytest.approx(3e-3 + 100 * 1e-5)


def test_each_request_that_is_started_is_awaited(tmp_path):
    """Also if it is complete before the wait, which takes no time."""

    def main() -> None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        other = 1 - comm.rank
        for wait in ("Wait", "Waitall", "Waitany", "Test", "Testall"):
            requests = [
                comm.Isend(bytes(8), other), comm.Irecv(bytearray(8), other), comm.Ibarrier(),
            ]  # fmt: skip
            time.sleep(0.1)
            if wait.endswith("all"):
                getattr(MPI.Request, wait)(requests)
            elif wait == "Waitany":
                for _ in requests:
                    MPI.Request.Waitany(requests)
            else:
                for request in requests:
                    getattr(request, wait)()

    pysmpi.run(main, 2, trace=tmp_path / "run.jsonl", platform="graphene", compute="none")
    recording = read_lines(tmp_path / "run.jsonl")
    for rank in range(2):
        operations = [one for call in recording.calls_of(rank) for one in call.operations]
        begun = [one[1] for one in operations if one[0] in ("send", "receive")]
        begun += [-one[1] for one in operations if one[0] == "collective"]
        ended = [number for one in operations if one[0] == "wait" for number in one[1]]
        assert sorted(ended) == sorted(begun) and len(begun) == 15


def test_cores_of_ranks(tmp_path):
    pysmpi.run(lambda: None, 4, trace=tmp_path / "run.jsonl", platform="cluster", map_by="core")
    places = read_lines(tmp_path / "run.jsonl").places
    assert [(place.host, place.core) for place in places] == [("cluster-n0", i) for i in range(4)]
