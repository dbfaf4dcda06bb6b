"""Events of recordings that hold only calls, as of another MPI library."""

from __future__ import annotations

from typing import Any

import pytest

from pysmpi.trace import events
from pysmpi.trace.events import EventRows, MessageRows, TracedCall, TracedCommunicator
from pysmpi.trace.measured import measured_events
from pysmpi.trace.model import Recording

WORLD = 1


def recorded(*calls: tuple[int, float, float, list[tuple[Any, ...]]]) -> Recording:
    """A recording of calls of two ranks: their rank, begin and end (s), and operations."""
    recording = Recording()
    recording.places = [None, None]  # type: ignore[list-item]
    recording.ends = [2.0, 2.0]
    recording.communicators[WORLD] = TracedCommunicator(WORLD, WORLD, "WORLD", (0, 1))
    for number, (rank, start, end, operations) in enumerate(calls, start=1):
        call = TracedCall("Call", rank, 0, "program.py:1")
        call.number, call.start, call.end = number, start, end
        call.operations = operations
        recording.calls.append(call)
    return recording


def send(number: int, nbytes: int = 8) -> tuple[Any, ...]:
    return (events.SEND, number, WORLD, 0, 1, 5, nbytes, 0, False)


def receive(number: int, source: int = 0, tag: int = 5) -> tuple[Any, ...]:
    return (events.RECEIVE, number, WORLD, source, 1, tag, 64)


def wait(*numbers: int) -> tuple[Any, ...]:
    return (events.WAIT, numbers, True)


def dates(rows: EventRows, kind: int) -> list[tuple[float, int]]:
    """The date (s) of each event of a kind, and its message or receive."""
    return [(rows.date[i], rows.a[i]) for i in range(len(rows.kind)) if rows.kind[i] == kind]


def only(table: MessageRows) -> dict[str, int]:
    assert len(table.number) == 1
    return {name: int(column[0]) for name, column in table._asdict().items()}


@pytest.mark.parametrize(
    ("sent", "received", "left", "arrived", "eager"),
    [
        ((0.0, 0.1), (0.5, 0.6), 0.0, 0.6, True),  # the sender does not wait
        ((0.0, 1.0), (0.9, 1.0), 0.9, 1.0, False),  # it waits for a late receiver
        ((0.8, 0.9), (0.0, 1.0), 0.8, 1.0, False),  # the receiver waits for a late sender
    ],
)
def test_a_message_leaves_and_arrives(
    sent: tuple[float, float], received: tuple[float, float], left: float, arrived: float,
    eager: bool,
) -> None:  # fmt: skip
    rows, table = measured_events(
        recorded((0, *sent, [send(1), wait(1)]), (1, *received, [receive(2), wait(2)]))
    )
    assert dates(rows, events.START_SEND) == [(sent[0], 1)]
    assert dates(rows, events.START_RECEIVE) == [(received[0], 2)]
    assert dates(rows, events.DEPART) == [(left, 1)]
    assert dates(rows, events.ARRIVE) == [(arrived, 1)]
    assert sorted(dates(rows, events.COMPLETE)) == sorted([(arrived, 2), (sent[1], 1)])
    assert only(table) == {
        "number": 1, "source": 0, "destination": 1, "tag": 5, "nbytes": 8, "route": 0,
        "mode": events.EAGER if eager else 0, "communicator": WORLD, "collective": 0,
    }  # fmt: skip
    # Each rank waits in its call for the message, and goes on at its end.
    assert sorted(dates(rows, events.RESUME)) == sorted([(sent[1], 1), (received[1], 2)])
    assert sorted(rows.date) == list(rows.date)


def test_messages_of_one_source_and_tag_match_in_their_order() -> None:
    _, table = measured_events(
        recorded(
            (0, 0.0, 0.1, [send(1, 8)]), (0, 0.1, 0.2, [send(2, 16)]),
            (1, 0.5, 0.6, [receive(3), wait(3)]), (1, 0.7, 0.8, [receive(4), wait(4)]),
        )
    )  # fmt: skip
    assert (list(table.number), list(table.nbytes)) == ([1, 2], [8, 16])


def test_a_receive_from_any_source_has_the_message_that_it_has_taken() -> None:
    calls = (0, 0.0, 0.1, [send(1)]), (1, 0.5, 0.6, [receive(2, -1, -1), wait(2)])
    recording = recorded(*calls)
    recording.matches[2] = 0, 5, 8
    assert only(measured_events(recording)[1])["number"] == 1
    rows, table = measured_events(recorded(*calls))  # it has got none
    assert not len(table.number) and not dates(rows, events.ARRIVE)


def test_a_message_that_nobody_receives_does_not_arrive() -> None:
    rows, table = measured_events(recorded((0, 0.0, 0.1, [send(1), wait(1)])))
    assert dates(rows, events.START_SEND) == [(0.0, 1)]
    assert not len(table.number) and not dates(rows, events.DEPART)


def test_a_rank_waits_for_the_last_one_that_enters_a_collective_call() -> None:
    entered = (events.COLLECTIVE, 7, WORLD, 0, False, {})
    rows, _ = measured_events(recorded((0, 0.0, 0.6, [entered]), (1, 0.5, 0.6, [entered])))
    assert dates(rows, events.ENTER) == [(0.0, 7), (0.5, 7)]
    assert [(rows.process[i], rows.date[i], rows.b[i]) for i in range(len(rows.kind))
            if rows.kind[i] == events.RESUME] == [(1, 0.6, 2)]  # fmt: skip
