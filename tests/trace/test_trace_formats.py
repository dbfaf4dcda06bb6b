"""Timelines: their contents, in both formats, and no remains of recorders."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.replay import Replay
from pysmpi.trace.conversion import convert
from pysmpi.trace.kinds.json import ChromeFormat
from pysmpi.trace.lines import read_lines
from pysmpi.trace.recorder import recorder_for


def exchange() -> None:
    """A program with some of everything."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = numpy.full(100, float(comm.rank))
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for _ in range(3):
        request = comm.Isend(data, right, tag=5)
        comm.Recv(data.copy(), left, tag=5)
        MPI.Request.Waitall([request])
    comm.Sendrecv(data, right, recvbuf=data.copy(), source=left)
    comm.bcast(None, root=1)
    half = comm.Split(comm.rank % 2)
    half.allreduce(1)
    comm.Get_size()
    comm.Barrier()


def record(path: Path, main: Any = exchange, nprocs: int = 4, **options: Any) -> pysmpi.Result:
    options.setdefault("compute", "2us")
    return pysmpi.run(main, nprocs, trace=path, platform="graphene", **options)


def load(path: Path) -> list[dict[str, Any]]:
    text = gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text()
    return json.loads(text)["traceEvents"]


def test_slices(tmp_path: Path):
    result = record(tmp_path / "t.json")
    events = load(tmp_path / "t.json")
    slices = [event for event in events if event["ph"] == "X"]
    names = Counter(event["name"] for event in slices)
    for name, count in {
        "Isend": 12, "Recv": 12, "Waitall": 12, "Sendrecv": 4, "bcast": 4, "Split": 4,
        "allreduce": 4, "Barrier": 4, "program": 4,
    }.items():  # fmt: skip
        assert names[name] == count
    assert "Get_size" not in names
    for event in slices:
        assert event["dur"] >= 0.0
        if event["name"] != "program":
            assert "test_trace_formats.py:" in event["args"]["at"]
    send = next(event for event in slices if event["name"] == "Isend" and event["tid"] == 1)
    assert send["args"]["dest"] == 2
    assert send["args"]["sent"] == 800
    lives = [event for event in slices if event["name"] == "program"]
    longest = max(event["dur"] for event in lives)
    assert longest == pytest.approx(result.seconds * 1e6, abs=1e-3)


def test_slices_of_a_rank_nest(tmp_path: Path):
    record(tmp_path / "t.json")
    by_rank: dict[int, list[tuple[float, float]]] = {}
    for event in load(tmp_path / "t.json"):
        if event["ph"] == "X":
            by_rank.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    assert sorted(by_rank) == [0, 1, 2, 3]
    for spans in by_rank.values():
        spans.sort(key=lambda span: (span[0], -span[1]))
        program, *calls = spans
        for before, after in zip(calls, calls[1:]):
            assert before[1] <= after[0] + 1e-3
        assert calls[-1][1] <= program[1] + 1e-3


def test_arrows(tmp_path: Path):
    result = record(tmp_path / "t.json")
    events = load(tmp_path / "t.json")
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert len(starts) == result.messages
    assert starts.keys() == ends.keys()
    assert sum(event["args"]["bytes"] for event in starts.values()) == result.bytes
    for number, start in starts.items():
        assert start["ts"] <= ends[number]["ts"]
    neighbours = Counter(
        (start["tid"], ends[number]["tid"])
        for number, start in starts.items()
        if start["args"]["bytes"] == 800
    )
    assert neighbours == {(rank, (rank + 1) % 4): 4 for rank in range(4)}
    tags = Counter(start["args"].get("tag") for start in starts.values())
    assert tags == {5: 12, 0: 4, None: result.messages - 16}


def internal() -> None:
    """Messages with tags of MPI's own, and one message of the program."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = numpy.zeros(10)
    half = comm.Split(comm.rank % 2)
    window = MPI.Win.Allocate(80, comm=comm)
    window.Fence()
    window.Put(data, 0)
    window.Fence()
    group = comm.group.Incl([comm.rank ^ 1])
    window.Post(group)
    window.Start(group)
    window.Complete()
    window.Wait()
    window.Lock(0)
    window.Unlock(0)
    window.Free()
    other = half.Create_intercomm(0, comm, 1 - comm.rank % 2)
    if comm.rank == 0:
        other.Send(data, 1, 77)
        request = other.Psend_init(data, 2, 1, 88)
    elif comm.rank == 3:
        other.Recv(data, 0, 77)
        request = other.Precv_init(data, 2, 0, 88)
    if comm.rank in (0, 3):
        request.Start()
        if comm.rank == 0:
            request.Pready_range(0, 1)
        request.Wait()
    other.Barrier()
    persistent = comm.Barrier_init()
    persistent.Start()
    persistent.Wait()
    other.Free()
    half.Free()
    comm.Dup()


def test_arrows_have_no_internal_tags(tmp_path: Path):
    """Neither those of a run nor those of its replay."""
    result = record(tmp_path / "t.jsonl", internal)
    convert(str(tmp_path / "t.jsonl"), str(tmp_path / "t.json"))
    Replay([(tmp_path / "t.jsonl", 0.0)]).run(ChromeFormat(str(tmp_path / "replay.json")))
    for name in ("t.json", "replay.json"):
        arrows = [event for event in load(tmp_path / name) if event["ph"] == "s"]
        assert len(arrows) == result.messages > 40
        assert [one["args"]["tag"] for one in arrows if "tag" in one["args"]] == [77]


def test_every_message_has_a_communicator_with_a_name(tmp_path: Path):
    record(tmp_path / "t.jsonl", internal)
    recording = read_lines(tmp_path / "t.jsonl")
    names = {one.name for one in recording.communicators.values()}
    assert {name.split()[0] for name in names} == {"COMM_WORLD", "comm", "window"}
    known = {one.communicator: one.name for one in recording.communicators.values()}
    assert all(message.communicator in known for message in recording.messages)
    sizes = {message.nbytes: message for message in recording.messages if message.tag in (0, 1, 77)}
    # A partitioned message (40 bytes) and a usual one belong to the same communicator.
    assert sizes[40].communicator == sizes[80].communicator


def test_places(tmp_path: Path):
    record(tmp_path / "t.json.gz", nprocs=3)
    names = {
        (event["name"], event["pid"], event["tid"]): event["args"]["name"]
        for event in load(tmp_path / "t.json.gz")
        if event["ph"] == "M" and event["name"].endswith("_name")
    }
    for rank in range(3):
        assert names["process_name", rank + 1, 0] == f"graphene-{rank}"
        assert names["thread_name", rank + 1, rank] == f"rank {rank}"


def test_intercommunicator(tmp_path: Path):
    def main() -> None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        side = comm.rank // 2
        inter = comm.Split(side).Create_intercomm(0, comm, 2 - 2 * side)
        if side == 0:
            inter.send(b"x" * 1234, dest=comm.rank)
        else:
            inter.recv(source=comm.rank - 2)

    record(tmp_path / "t.json", main)
    events = load(tmp_path / "t.json")
    big = {e["id"]: e["tid"] for e in events if e["ph"] == "s" and e["args"]["bytes"] > 1000}
    ends = {e["id"]: e["tid"] for e in events if e["ph"] == "f"}
    assert {(rank, ends[number]) for number, rank in big.items()} == {(0, 2), (1, 3)}


def test_table(tmp_path: Path):
    result = record(tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    dates = [float(row["Timestamp (ns)"]) for row in rows]
    assert dates == sorted(dates)
    assert dates[-1] == pytest.approx(result.seconds * 1e9)
    stacks: dict[str, list[str]] = {}
    for row in rows:
        stack = stacks.setdefault(row["Process"], [])
        if row["Event Type"] == "Enter":
            stack.append(row["Name"])
        else:
            assert row["Event Type"] == "Leave"
            assert stack.pop() == row["Name"]
    assert all(not stack for stack in stacks.values())
    sent = sum(int(row["Sent"] or 0) for row in rows)
    assert sent == result.bytes


def test_a_run_that_fails_has_a_timeline(tmp_path: Path):
    def main() -> None:
        from mpi4py import MPI

        MPI.COMM_WORLD.recv(source=0)

    result = record(tmp_path / "t.json", main, check=False)
    assert result.exit_status == 3
    names = Counter(event["name"] for event in load(tmp_path / "t.json") if event["ph"] == "X")
    assert names == {"recv": 4, "program": 4}


def test_nothing_stays(tmp_path: Path):
    from pysmpi.mpi import MPI
    from pysmpi.mpi.groups.communicator import Communicator

    before = (MPI.Comm.Send, MPI.Comm.Barrier, vars(MPI.Request)["Waitall"], Communicator.__init__)
    record(tmp_path / "t.json")
    with pytest.raises(pysmpi.ProgramError):
        record(tmp_path / "t.json", lambda: 1 / 0)
    after = (MPI.Comm.Send, MPI.Comm.Barrier, vars(MPI.Request)["Waitall"], Communicator.__init__)
    assert all(one is other for one, other in zip(before, after))
    assert not hasattr(MPI.Comm.Send, "__wrapped__")


def test_recorded_compute_is_played_back_under_a_recording(tmp_path: Path):
    blocks = str(tmp_path / "blocks")
    pysmpi.run(exchange, 4, platform="graphene", record_compute=blocks)
    plain = pysmpi.run(exchange, 4, platform="graphene", compute=blocks)
    traced = record(tmp_path / "t.json", compute=blocks)
    assert traced.ranks == plain.ranks


def test_recording_changes_no_time(tmp_path: Path):
    plain = pysmpi.run(exchange, 4, platform="graphene", compute="2us")
    traced = record(tmp_path / "t.json")
    assert traced.seconds == plain.seconds
    assert traced.ranks == plain.ranks


def test_unknown_suffix(tmp_path: Path):
    with pytest.raises(UsageError, match=r"expected the suffix .csv, .goal, .json, .jsonl"):
        recorder_for(str(tmp_path / "t.unknown"))
    with pytest.raises(UsageError, match="cannot be written"):
        record(tmp_path / "no" / "t.json")
    assert list(tmp_path.iterdir()) == []
