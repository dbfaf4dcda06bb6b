"""Paraver's format: the records, names and rows of a run, read back."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from test_trace_formats import exchange

import pysmpi
from pysmpi.trace.conversion import convert
from pysmpi.trace.lines import read_lines


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("recording") / "run.jsonl"
    pysmpi.run(exchange, 4, trace=path, platform="graphene", compute="2us")
    return path


def read_names(path):
    """The values of events, by type and value."""
    found, kind, part = {}, 0, ""
    for line in path.read_text().splitlines():
        if line in ("STATES", "EVENT_TYPE", "VALUES", "STATES_COLOR"):
            part = line
        elif part == "EVENT_TYPE" and line:
            kind = int(line.split()[1])
        elif part in ("STATES", "VALUES") and line:
            value, name = re.fullmatch(r"(\d+)\s+(.*)", line).groups()
            found[kind if part == "VALUES" else 1, int(value)] = name
    return found


def test_the_records_are_those_of_the_run(recording, tmp_path):
    convert(str(recording), str(tmp_path / "run.prv"))
    kept = read_lines(str(recording))
    names = read_names(tmp_path / "run.pcf")
    head, communicator, *records = (tmp_path / "run.prv").read_text().splitlines()
    seconds = round(max(kept.ends) * 1e9)
    assert head == (
        f"#Paraver (01/01/2000 at 00:00):{seconds}_ns:4(1,1,1,1):1:4(1:1,1:2,1:3,1:4),1"
    )
    assert communicator == "c:1:1:4:1:2:3:4"
    rows = [tuple(map(int, record.split(":"))) for record in records]
    times = [row[5] for row in rows]
    assert times == sorted(times) and times[0] == 0
    # States of a thread follow each other, from the start of the run to its end.
    last = dict.fromkeys(range(1, 5), 0)
    for _, cpu, _, task, thread, begin, end, state in (row for row in rows if row[0] == 1):
        assert (cpu, thread) == (task, 1) and begin == last[task] < end and (1, state) in names
        last[task] = end
    assert [last[task] for task in range(1, 5)] == [round(end * 1e9) for end in kept.ends]
    # Each call is an event that begins and ends.
    calls = defaultdict(list)
    for _, _, _, task, _, time, *pairs in (row for row in rows if row[0] == 2):
        for kind, value in zip(pairs[::2], pairs[1::2]):
            if value:
                calls[task - 1].append([names[kind, value], time, None])
            else:
                assert calls[task - 1][-1][2] is None and names[kind, 0] == "Outside MPI"
                calls[task - 1][-1][2] = time
    wanted = defaultdict(list)
    for call in sorted(kept.calls, key=lambda one: (one.start, one.end)):
        begin, end = round(call.start * 1e9), round(call.end * 1e9)
        wanted[call.rank].append([f"MPI_{call.name[:1].upper()}{call.name[1:]}", begin, end])
    assert calls == wanted and len(calls) == 4
    # Messages of the program are communications between the ranks that sent and received them.
    sent = sorted((row[3] - 1, row[9] - 1, row[13], row[14]) for row in rows if row[0] == 3)
    messages = [one for one in kept.messages if not one.collective and not one.internal]
    assert sent == sorted((one.source, one.destination, one.nbytes, one.tag) for one in messages)
    assert sent
    for row in (row for row in rows if row[0] == 3):
        assert row[5] <= row[6] <= row[12] and row[11] <= row[12]


def test_the_names_of_the_rows(recording, tmp_path):
    convert(str(recording), str(tmp_path / "run.prv"))
    levels = re.split(r"LEVEL (\w+) SIZE (\d+)\n", (tmp_path / "run.row").read_text())[1:]
    found = {
        name: rows.split("\n")[: int(size)]
        for name, size, rows in zip(levels[::3], levels[1::3], levels[2::3])
    }
    hosts = [place.host for place in read_lines(str(recording)).places]
    assert found == {
        "CPU": [f"{host} core 0" for host in hosts],
        "NODE": hosts,
        "TASK": [f"rank {rank}" for rank in range(4)],
        "THREAD": [f"rank {rank}" for rank in range(4)],
    }


def test_ranks_of_one_host_share_its_node_and_cores(tmp_path):
    pysmpi.run(exchange, 4, trace=tmp_path / "a.prv", platform="multicore-cluster", compute="2us")
    head = (tmp_path / "a.prv").read_text().splitlines()[0]
    assert re.search(r"_ns:1\(4\):1:4\(1:1,1:1,1:1,1:1\),1$", head), head


def test_a_run_writes_what_a_conversion_writes(recording, tmp_path):
    pysmpi.run(exchange, 4, trace=tmp_path / "a.prv", platform="graphene", compute="2us")
    convert(str(recording), str(tmp_path / "b.prv"))
    for suffix in ("prv", "pcf", "row"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
