"""OTF2 archives have the contents of the recording: OTF2's own reader reads them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_trace_formats import exchange

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.trace.conversion import convert
from pysmpi.trace.lines import read_lines

otf2 = pytest.importorskip("otf2", reason="OTF2 archives need the extra pysmpi[otf2]")


def events_of(path: Path) -> tuple[Any, list[tuple[Any, Any]]]:
    with otf2.reader.open(str(path)) as trace:
        return trace.definitions, list(trace.events)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, pysmpi.Result]:
    folder = tmp_path_factory.mktemp("archive")
    path = folder / "run.jsonl"
    result = pysmpi.run(exchange, 4, trace=path, platform="graphene", compute="2us")
    convert(str(path), str(folder / "run.otf2"))
    return path, folder / "run.otf2", result


def test_calls_nest_and_have_their_lines(archive):
    source, path, result = archive
    definitions, events = events_of(path)
    assert definitions.clock_properties.timer_resolution == 10**12
    names = Counter(call.name for call in read_lines(source).calls)
    entered: Counter[str] = Counter()
    stacks: dict[str, list[str]] = {}
    last = 0
    for location, event in events:
        assert event.time >= last
        last = event.time
        stack = stacks.setdefault(location.group.name, [])
        if isinstance(event, otf2.events.Enter):
            entered[event.region.name] += 1
            stack.append(event.region.name)
            if event.region.name != "program":
                assert event.region.source_file.endswith("test_trace_formats.py")
                assert event.region.begin_line_number > 0
        elif isinstance(event, otf2.events.Leave):
            assert stack.pop() == event.region.name
    assert not any(stacks.values()) and set(stacks) == {f"rank {rank}" for rank in range(4)}
    assert entered == names + Counter({"program": 4})
    assert last == pytest.approx(result.seconds * 1e12, abs=1)


def test_messages_and_collective_calls(archive):
    source, path, _ = archive
    definitions, events = events_of(path)
    known = [one for one in read_lines(source).messages if not one.collective]
    sent = Counter(
        (
            location.group.name,
            event.communicator.location(event.receiver).group.name,
            event.msg_tag,
            event.msg_length,
        )
        for location, event in events
        if isinstance(event, otf2.events.MpiSend)
    )
    expected = Counter(
        (f"rank {one.source}", f"rank {one.destination}", one.tag, one.nbytes) for one in known
    )
    assert sent == expected and len(known) > 12
    received = [event for _, event in events if isinstance(event, otf2.events.MpiRecv)]
    assert sum(event.msg_length for event in received) == sum(one.nbytes for one in known)
    ends = [event for _, event in events if isinstance(event, otf2.events.MpiCollectiveEnd)]
    operations = Counter(
        (event.collective_op, event.root, len(event.communicator.group.members)) for event in ends
    )
    # The objects of an allreduce are combined, and the result is broadcast.
    assert operations == {
        (otf2.CollectiveOp.BARRIER, 0xFFFFFFFF, 4): 4, (otf2.CollectiveOp.BCAST, 1, 4): 4,
        (otf2.CollectiveOp.BCAST, 0, 2): 4,
    }  # fmt: skip
    assert len(definitions.comms) >= 3


def test_a_folder_of_others_is_not_touched(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other files"):
        pysmpi.run(exchange, 2, trace=tmp_path / "run.otf2", compute="2us")
    assert (tmp_path / "run" / "mine.txt").read_text() == "mine"
    (tmp_path / "run" / "mine.txt").unlink()
    for _ in range(2):  # an archive is replaced
        pysmpi.run(exchange, 2, trace=tmp_path / "run.otf2", compute="2us")
        assert len(events_of(tmp_path / "run.otf2")[1]) > 50
