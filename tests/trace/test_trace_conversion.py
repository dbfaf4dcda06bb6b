"""Conversions of recordings: a converted file has the contents of the recording."""

from __future__ import annotations

import base64
import csv
import importlib.util
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from test_trace_formats import exchange

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.replay import Replay
from pysmpi.trace.conversion import convert
from pysmpi.trace.lines import read_lines


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "run.jsonl"
    pysmpi.run(exchange, 4, trace=path, platform="graphene", compute="2us")
    return path


@pytest.mark.parametrize("suffix", ["json", "csv", "ti", "jsonl", "paje", "goal"])
def test_a_conversion_is_what_the_run_would_have_written(suffix, recording, tmp_path):
    convert(str(recording), str(tmp_path / f"converted.{suffix}"))
    pysmpi.run(exchange, 4, trace=tmp_path / f"run.{suffix}", platform="graphene", compute="2us")
    one, other = (tmp_path / f"{name}.{suffix}" for name in ("converted", "run"))
    assert one.read_text() == other.read_text()


def test_paje(recording, tmp_path):
    convert(str(recording), str(tmp_path / "run.paje"))
    lines = (tmp_path / "run.paje").read_text().splitlines()
    begin = max(i for i, line in enumerate(lines) if line.startswith("%")) + 1
    names = re.findall(r"%EventDef (\w+) (\d+)", "\n".join(lines[:begin]))
    kinds = {number: name for name, number in names}
    depth: Counter[str] = Counter()
    links: dict[str, list[str]] = defaultdict(list)
    last, calls = 0.0, 0
    for line in lines[begin:]:
        kind, *fields = line.split()
        kind = kinds[kind]
        if kind.startswith("PajeDefine"):
            continue
        assert float(fields[0]) >= last
        last = float(fields[0])
        if kind == "PajePushState":
            depth[fields[2]] += 1
            calls += 1
            assert depth[fields[2]] == 1
        elif kind == "PajePopState":
            depth[fields[2]] -= 1
            assert depth[fields[2]] == 0
        elif kind in ("PajeStartLink", "PajeEndLink"):
            links[fields[5]].append(kind)
    known = read_lines(recording)
    assert calls == len(known.calls) and last == pytest.approx(known.seconds)
    assert len(links) == len(known.messages)
    assert all(ends == ["PajeStartLink", "PajeEndLink"] for ends in links.values())


def test_goal(recording, tmp_path):
    convert(str(recording), str(tmp_path / "run.goal"))
    text = (tmp_path / "run.goal").read_text()
    assert text.startswith("num_ranks 4\n")
    messages: Counter[tuple[int, int, int, int]] = Counter()
    for rank, body in re.findall(r"rank (\d+) \{\n(.*?)\}", text, re.S):
        labels: set[str] = set()
        for line in body.splitlines():
            if found := re.fullmatch(r"(l\d+) requires (l\d+)", line):
                assert found[1] in labels and found[2] in labels and found[1] != found[2]
                continue
            found = re.fullmatch(r"(l\d+): (?:calc \d+|(send|recv) (\d+)b (?:to|from) (\d+) "
                                 r"tag (\d+))", line)  # fmt: skip
            assert found is not None, line
            labels.add(found[1])
            if found[2]:
                ends = (int(rank), int(found[4]))
                key = (*(ends if found[2] == "send" else ends[::-1]), int(found[5]), int(found[3]))
                messages[key] += 1 if found[2] == "send" else -1
    known = read_lines(recording)
    assert set(messages.values()) == {0} and len(messages) > 4
    assert text.count(": send ") == len(known.messages)


def test_goal_grows_in_proportion_to_the_messages(tmp_path):
    def barriers(count: int) -> int:
        def main() -> None:
            from mpi4py import MPI

            for _ in range(count):
                MPI.COMM_WORLD.Barrier()

        pysmpi.run(main, 8, trace=tmp_path / "run.goal", compute="none")
        return (tmp_path / "run.goal").read_text().count("requires")

    few = barriers(10)
    assert barriers(30) < 3.2 * few


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_parquet_loses_nothing(recording, tmp_path):
    import pyarrow.parquet

    table, back = str(tmp_path / "run.parquet"), str(tmp_path / "back.jsonl")
    convert(str(recording), table)
    convert(table, back)
    assert Path(back).read_text() == recording.read_text()
    columns = pyarrow.parquet.read_table(table).to_pydict()
    known = read_lines(recording)
    names = [name for kind, name in zip(columns["kind"], columns["name"]) if kind == "call"]
    assert names.count("Isend") == sum(call.name == "Isend" for call in known.calls)
    result = Replay([(table, 0.0)]).run()
    assert result.seconds == pytest.approx(known.seconds, rel=1e-9)


def test_parquet_without_pyarrow(recording, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pip install 'pysmpi\\[parquet\\]'"):
        convert(str(recording), str(tmp_path / "run.parquet"))
    assert list(tmp_path.iterdir()) == []


def test_the_columns_of_pipit(recording, tmp_path):
    convert(str(recording), str(tmp_path / "run.csv"))
    with open(tmp_path / "run.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {"Timestamp (ns)", "Event Type", "Name", "Process"} <= rows[0].keys()
    assert {row["Event Type"] for row in rows} == {"Enter", "Leave"}


def test_what_cannot_be_converted(recording, tmp_path):
    with pytest.raises(UsageError, match="none.jsonl: cannot be read: No such file"):
        convert(str(tmp_path / "none.jsonl"), str(tmp_path / "out.csv"))
    with pytest.raises(UsageError, match=r"out.xyz: expected the suffix .csv"):
        convert(str(recording), str(tmp_path / "out.xyz"))
    with pytest.raises(UsageError, match="no such format of timelines"):
        convert(str(recording), str(tmp_path / "out.csv"), "xyz")
    lines = recording.read_text().splitlines(keepends=True)
    (tmp_path / "wrong.jsonl").write_text("".join(lines[:3]) + '["call",1]\n')
    with pytest.raises(UsageError, match="wrong.jsonl, line 4: expected a record"):
        convert(str(tmp_path / "wrong.jsonl"), str(tmp_path / "out.csv"))
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.jsonl"]


def test_a_recording_without_its_end_is_converted_as_far_as_it_goes(recording, tmp_path):
    lines = recording.read_text().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_text("".join(lines[: len(lines) // 2])[:-5])
    convert(str(tmp_path / "cut.jsonl"), str(tmp_path / "cut.csv"))
    with open(tmp_path / "cut.csv", newline="") as stream:
        names = Counter(row["Name"] for row in csv.DictReader(stream))
    assert names["program"] == 8 and names["Isend"] > 0


def test_columns_are_texts_or_lists(recording, tmp_path):
    lines, texts = [], 0
    for number, line in enumerate(recording.read_text().splitlines()):
        record = json.loads(line)
        if number == 0:
            record["version"] = 2
        elif record[0] in ("events", "messages"):
            for i, column in enumerate(record[1:], 1):
                kind, data = column.split(":")
                record[i] = np.frombuffer(base64.b64decode(data), f"<{kind}").tolist()
                texts += 1
        lines.append(json.dumps(record))
    other = tmp_path / "lists.jsonl"
    other.write_text("\n".join(lines) + "\n")
    assert texts >= 15
    found, expected = read_lines(other), read_lines(recording)
    assert found.messages == expected.messages
    assert found.waits == expected.waits
    for one, same in zip(found.event_rows, expected.event_rows, strict=True):
        for column, values in zip(one, same, strict=True):
            assert column.dtype == values.dtype
            assert (column == values).all()


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("u1:AAAA", "different lengths"),
        ("u3:AAAA", "expected a column of u1, u2"),
        ("f8:AAAAAAAAAAA=", "expected columns of whole numbers"),
        ("u1:A", "expected a record"),
        ("u4:AAAA", "expected a record"),
    ],
)
def test_wrong_columns(column, reason, recording, tmp_path):
    lines = recording.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith('["events"'))
    record = json.loads(lines[at])
    record[1] = column
    lines[at] = json.dumps(record)
    other = tmp_path / "wrong.jsonl"
    other.write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError, match=f"line {at + 1}: .*{reason}"):
        read_lines(other)


def test_the_graph_of_goal_takes_as_long_as_the_program(tmp_path):
    """On a network that costs nothing; a token goes from rank to rank, and a call takes 10 us."""

    def token() -> None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        blocks = comm.rank % 2 == 0
        if comm.rank > 0 and blocks:
            comm.Recv(bytearray(8), comm.rank - 1, 5)
        elif comm.rank > 0:
            comm.Irecv(bytearray(8), comm.rank - 1, 5).Wait()
        if comm.rank < comm.size - 1 and blocks:
            comm.Send(bytes(8), comm.rank + 1, 5)
        elif comm.rank < comm.size - 1:
            comm.Isend(bytes(8), comm.rank + 1, 5).Wait()

    pysmpi.run(token, 4, trace=tmp_path / "run.goal", platform="graphene", compute="10us")
    needs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    costs: dict[tuple[str, str], int] = {}
    sends: dict[tuple[str, str], tuple[str, str]] = {}
    for rank, body in re.findall(
        r"rank (\d+) \{\n(.*?)\}", (tmp_path / "run.goal").read_text(), re.S
    ):
        for line in body.splitlines():
            if found := re.fullmatch(r"(l\d+) requires (l\d+)", line):
                needs[rank, found[1]].append((rank, found[2]))
                continue
            label, what, amount, *rest = line.replace(":", "").split()
            needs[rank, label] = []
            costs[rank, label] = int(amount) if what == "calc" else 0
            if what == "send":
                sends[rank, rest[1]] = rank, label
            elif what == "recv":
                needs[rank, label].append(sends[rest[1], rank])
    ends: dict[tuple[str, str], int] = {}
    for one in needs:  # ranks are in order, and so are the operations of each
        ends[one] = max((ends[other] for other in needs[one]), default=0) + costs[one]
    last = [max(end for (rank, _), end in ends.items() if rank == str(one)) for one in range(4)]
    assert last == [20_000, 50_000, 50_000, 50_000]
