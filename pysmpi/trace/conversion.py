"""Conversion of recordings to other formats."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.io.output import OutputFile
from pysmpi.trace.events import Format
from pysmpi.trace.formats import find_format, is_packed
from pysmpi.trace.lines import WRONG, made_events, made_messages, made_route
from pysmpi.trace.messages import listener_of
from pysmpi.trace.recorded_lines import (
    Wrong,
    check_dates,
    is_recording,
    learn_site,
    made_call,
    made_communicator,
    made_match,
    made_place,
    read_facts,
    whole_lines,
)
from pysmpi.trace.recorded_machine import recorded_machine


def convert(source: str, target: str, format: str | None = None) -> None:
    """Write the recording in file `source` to file `target`, in a format or that of its suffix.

    The recording is read once, and not kept. Raises UsageError for a file that is no recording, a
    wrong line, or a target that cannot be written.
    """
    if not is_recording(source):
        raise UsageError(
            f"{source}: expected a file of pysmpi run --trace FILE.jsonl, of pysmpi.record, or one "
            "that was converted to parquet, got no recording"
        )
    facts = read_facts(source)
    chosen = find_format(target, format)
    with ExitStack() as stack:
        file = stack.enter_context(OutputFile("convert", target, direct=chosen.several))
        stack.enter_context(file.writing())
        writer = chosen.open(file.path, is_packed(target))
        stack.callback(writer.close)
        describe = getattr(writer, "describe", None)
        if describe is not None:
            describe(facts)
        choose = getattr(writer, "choose", None)
        if choose is not None:
            nprocs = facts.get("nprocs")
            ranks = nprocs if isinstance(nprocs, int) and 0 < nprocs < 1 << 24 else 1
            choose(recorded_machine(source, facts, ranks).selection)
        feed(source, writer)
        writer.close()
        file.keep()


def feed(source: str, writer: Format) -> None:
    """Pass the records of a recording on to a format, in their order."""
    sites: dict[int, str] = {}
    dates: dict[int, float] = {}
    ended = False
    number = ranks = 0
    listener = listener_of(writer)
    for number, line in enumerate(whole_lines(source), 1):
        if number == 1:
            continue
        try:
            record = json.loads(line)
            if record[0] == "end":
                ended = True
                _complete(listener)
            elif record[0] == "rank":
                ranks += 1
            ended_of = _pass_on(writer, listener, record, sites)
            if ended_of is not None:
                rank, date = ended_of
                dates[rank] = max(date, dates.get(rank, 0.0))
        except Wrong as error:
            raise UsageError(f"{source}, line {number}: {error}") from None
        except WRONG as error:
            what = line[:60].decode("utf-8", "replace")
            raise UsageError(
                f"{source}, line {number}: expected a record of a recording, got {what!r}"
            ) from error
    if not ended:
        # The run was stopped: each rank ends with its last record.
        _complete(listener)
        writer.end([dates.get(rank, 0.0) for rank in range(ranks)])


def _complete(listener: object) -> None:
    finish = getattr(listener, "finish", None)
    if finish is not None:
        finish()


def _pass_on(
    writer: Any, listener: Any, record: list[Any], sites: dict[int, str]
) -> tuple[int, float] | None:
    """Pass one record on; the rank and date of its end if it belongs to a rank."""
    kind = record[0]
    if kind == "call":
        call = made_call(record, sites)
        if call.name:
            writer.call(call)
        elif hasattr(writer, "between"):
            writer.between(call)
        return call.rank, call.end
    if kind == "events":
        if listener is not None:
            listener.add_events(made_events(record))
    elif kind == "messages":
        if listener is not None:
            listener.add_messages(made_messages(record))
    elif kind == "route":
        if listener is not None:
            listener.add_route(made_route(record))
    elif kind == "site":
        learn_site(record, sites)
    elif kind == "rank":
        place = made_place(record)
        writer.begin([place])
        return place.rank, 0.0
    elif kind == "end":
        check_dates(record[1])
        writer.end(record[1])
    elif kind == "communicator":
        if hasattr(writer, "communicator"):
            writer.communicator(made_communicator(record))
    elif kind == "match":
        if hasattr(writer, "match"):
            writer.match(made_match(record))
    else:
        raise Wrong(f"no such record: {kind!r}")
    return None
