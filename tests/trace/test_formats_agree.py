"""Each format says of calls and messages what the recording says."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from test_recorded_facts import program

import pysmpi
from pysmpi.trace.conversion import convert
from pysmpi.trace.lines import read_lines
from pysmpi.trace.model import Recording


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("run")
    pysmpi.run(
        program, 4, trace=found / "run.jsonl", platform="graphene", compute="5us",
        args=(os.fspath(found / "data"),),
    )  # fmt: skip
    for suffix in ("json", "csv", "paje", "ti"):
        convert(str(found / "run.jsonl"), str(found / f"run.{suffix}"))
    return found


@pytest.fixture(scope="module")
def recording(folder: Path) -> Recording:
    return read_lines(folder / "run.jsonl")


def test_a_message_is_received_by_a_call_of_its_destination(recording):
    ends = defaultdict(set)
    for message in recording.messages:
        if message.receive and not message.collective and not message.internal:
            call = recording.call_by_number[message.receive_call]
            assert call.rank == message.destination
            assert call.start <= message.ready <= call.end
            sender = recording.call_by_number[message.send_call]
            assert sender.rank == message.source
            assert sender.start <= message.posted <= message.start <= message.end
            ends[recording.call_by_number[message.send_call].name].add(call.name)
    assert ends == {
        "Isend": {"Recv", "Irecv"}, "Issend": {"Irecv"}, "Sendrecv": {"Sendrecv"}, "Send": {"Recv"},
    }  # fmt: skip


def test_chrome(folder, recording):
    events = json.loads((folder / "run.json").read_text())["traceEvents"]
    slices = sorted(
        (event["name"], event["tid"], event["ts"], event["dur"], event["args"].get("sent", 0),
         event["args"].get("received", 0))
        for event in events
        if event["ph"] == "X" and event["name"] != "program" and event["tid"] < 4
    )  # fmt: skip
    expected = sorted(
        (call.name, call.rank, call.start * 1e6, (call.end - call.start) * 1e6, call.sent,
         call.received)
        for call in recording.calls if not call.thread
    )  # fmt: skip
    assert [(*one[:2], *one[4:]) for one in slices] == [(*one[:2], *one[4:]) for one in expected]
    assert [one[2:4] for one in slices] == [pytest.approx(one[2:4], abs=1e-3) for one in expected]
    rows = {event["tid"]: event["args"]["name"] for event in events
            if event["name"] == "thread_name"}  # fmt: skip
    ranks = Counter(rows[event["tid"]] for event in events if event["ph"] == "X")
    threads = Counter(
        f"rank {call.rank}" + (f" thread {call.thread}" if call.thread else "")
        for call in recording.calls
    )
    assert ranks == threads + Counter(f"rank {rank}" for rank in range(4))
    arrows = {}
    for event in events:
        if event["ph"] in "sf":
            arrows.setdefault(event["id"], []).append((event["tid"], event["ts"]))
    assert arrows == {
        one.number: [(one.source, pytest.approx(one.start * 1e6, abs=1e-3)),
                     (one.destination, pytest.approx(one.end * 1e6, abs=1e-3))]
        for one in recording.messages
    }  # fmt: skip


def test_table(folder, recording):
    with open(folder / "run.csv", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["Name"] != "program"]
    expected = []
    for call in recording.calls:
        peer = str(call.peers[0][1]) if call.peers else ""
        for kind, date, sizes in (
            ("Enter", call.start, ("", "")),
            ("Leave", call.end, (str(call.sent), str(call.received))),
        ):
            expected.append((kind, call.name, str(call.rank), str(call.thread), peer, *sizes, date))
    names = ("Event Type", "Name", "Process", "Thread", "Peer", "Sent", "Received")
    found = [
        (*(row[name] for name in names),
         pytest.approx(float(row["Timestamp (ns)"]) * 1e-9, abs=1e-12)) for row in rows
    ]  # fmt: skip
    assert Counter(row[:-1] for row in found) == Counter(row[:-1] for row in expected)
    assert [row[-1] for row in found] == sorted(row[-1] for row in expected)


def test_paje(folder, recording):
    lines = (folder / "run.paje").read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("%")]
    links = {}
    for row in rows:
        if row[0] in "89":
            _, date, _, _, nbytes, rank, number = row
            links.setdefault(int(number), []).append((float(date), int(nbytes), rank))
    assert links == {
        one.number: [(pytest.approx(one.start, abs=1e-11), one.nbytes, f"r{one.source}"),
                     (pytest.approx(one.end, abs=1e-11), one.nbytes, f"r{one.destination}")]
        for one in recording.messages
    }  # fmt: skip


def test_parquet(folder, recording):
    pytest.importorskip("pyarrow", reason="tables need the extra pysmpi[parquet]")
    import pyarrow.parquet

    convert(str(folder / "run.jsonl"), str(folder / "run.parquet"))
    rows = pyarrow.parquet.read_table(folder / "run.parquet").to_pylist()
    calls = [row for row in rows if row["kind"] == "call" and row["name"]]
    names = ("number", "name", "rank", "thread", "start", "end", "sent", "received", "site",
             "algorithm", "communicator")  # fmt: skip
    assert [tuple(row[name] for name in names) for row in calls] == [
        tuple(getattr(call, name) for name in names) for call in recording.calls
    ]
    messages = {row["number"]: row for row in rows if row["kind"] == "message"}
    for one in recording.messages:
        row = messages.pop(one.number)
        assert (row["rank"], row["peer"], row["tag"], row["sent"], row["start"], row["end"]) == (
            one.source, one.destination, one.tag, one.nbytes, one.start, one.end,
        )  # fmt: skip
    assert not messages
    waits = [(row["rank"], row["start"], row["end"]) for row in rows if row["kind"] == "wait"]
    assert waits == [(wait.rank, wait.start, wait.end) for wait in recording.waits]


def test_time_independent_traces_have_the_bytes_of_messages(folder):
    """Also of one that is smaller than its buffer, with a wildcard."""
    lines = [line.split() for line in (folder / "run.ti").read_text().splitlines()]
    size = {(line[0], line[2]): line[4] for line in lines if line[1] == "recv"}
    assert size["1", "2"] == "1000"


def test_messages_of_two_communicators_have_other_tags_in_time_independent_traces(tmp_path):
    def main() -> None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comms = [comm, comm.Dup(), comm.Dup()]
        for size, one in enumerate(comms, 100):
            if comm.rank == 0:
                one.Send(bytes(size), 1, 5)
        for size, one in reversed(list(enumerate(comms, 100))):
            if comm.rank == 1:
                one.Recv(bytearray(size), 0, 5)

    pysmpi.run(main, 2, trace=tmp_path / "run.ti", platform="graphene")
    lines = [line.split() for line in (tmp_path / "run.ti").read_text().splitlines()]
    tags = {
        kind: {line[4]: line[3] for line in lines if line[1] == kind and int(line[4]) >= 100}
        for kind in ("send", "recv")
    }
    assert tags["send"] == tags["recv"]
    assert tags["send"]["100"] == "5" and len(set(tags["send"].values())) == 3


def test_a_wait_for_one_request_is_that_in_time_independent_traces(tmp_path):
    def main() -> None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        other = 1 - comm.rank
        requests = [comm.Irecv(bytearray(8), other, tag) for tag in (1, 2, 3)]
        for tag in (2, 1, 3):
            comm.Send(bytes(8), other, tag)
            requests[tag - 1].Wait()

    pysmpi.run(main, 2, trace=tmp_path / "run.ti", platform="graphene")
    lines = (tmp_path / "run.ti").read_text().splitlines()
    kinds = [line.split()[1:] for line in lines if line.startswith("0 ")]
    order = [words[:4] for words in kinds if words[0] in ("send", "wait")]
    assert order == [
        words for tag in "213" for words in (["send", "1", tag, "8"], ["wait", "1", "0", tag])
    ]


def test_a_message_that_nobody_receives_is_in_the_table(tmp_path):
    pytest.importorskip("pyarrow", reason="tables need the extra pysmpi[parquet]")
    import pyarrow.parquet

    def main() -> None:
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 0:
            MPI.COMM_WORLD.Send(bytes(33), 1, 5)

    pysmpi.run(main, 2, trace=tmp_path / "run.parquet", platform="graphene")
    rows = pyarrow.parquet.read_table(tmp_path / "run.parquet").to_pylist()
    (row,) = [row for row in rows if row["kind"] == "message"]
    assert (row["rank"], row["peer"], row["tag"], row["sent"]) == (0, 1, 5, 33)
